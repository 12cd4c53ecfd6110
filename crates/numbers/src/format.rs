//! What the caller says about the text, and what the reader says about what it met.

use crate::error::BadLine;

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notation {
    /// Decimal, or hexadecimal after `0x`; each line may choose.
    #[default]
    Number,
    /// Dotted quads.
    Ipv4,
    /// IPv6 addresses; a dotted quad counts as `::ffff:a.b.c.d`.
    Ipv6,
}

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Separator {
    /// Commas if the first line with data has one, blanks otherwise; the same for the whole input.
    #[default]
    Auto,
    /// Runs of spaces and tabs.
    Blanks,
    /// Every single occurrence of this byte; blanks around a column are ignored.
    Byte(u8),
}

/// What is done about a line that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBad {
    /// Reading ends with [`crate::ReadError::Bad`].
    #[default]
    Stop,
    /// The line is counted in [`Counts::bad_lines`] and left out.
    Skip,
}

/// The layout of text input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFormat {
    /// How numbers are written.
    pub notation: Notation,
    /// Columns of the key's dimensions, from 1, one per dimension; empty: the line is the number.
    pub columns: Vec<usize>,
    /// Column of the weight, from 1; none: every line weighs 1.
    pub weight_column: Option<usize>,
    /// What stands between columns.
    pub separator: Separator,
    /// Lines to pass over at the start, such as a CSV header.
    pub header_lines: u64,
    /// Longer lines are bad lines: this bounds the reader's memory.
    pub max_line: usize,
    /// Bytes read at once. The buffer has at least `max_line` more.
    pub block: usize,
}

impl Default for TextFormat {
    fn default() -> Self {
        TextFormat {
            notation: Notation::Number,
            columns: Vec::new(),
            weight_column: None,
            separator: Separator::Auto,
            header_lines: 0,
            max_line: 64 << 10,
            block: 256 << 10,
        }
    }
}

impl TextFormat {
    /// Whether the whole line is one number, which is the fast path.
    pub(crate) fn whole_line(&self) -> bool {
        self.columns.is_empty() && self.weight_column.is_none()
    }
}

/// What was met in one input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys handed to the sink.
    pub numbers: u64,
    /// Lines with nothing but blanks, left out.
    pub empty_lines: u64,
    /// Header lines passed over.
    pub header_lines: u64,
    /// Lines (for binary input: torn words) that could not be read, left out.
    pub bad_lines: u64,
    /// The first of them.
    pub first_bad: Option<BadLine>,
    /// Bytes read.
    pub bytes: u64,
}

impl Counts {
    /// Lines seen so far.
    pub fn lines(&self) -> u64 {
        self.numbers + self.empty_lines + self.header_lines + self.bad_lines
    }

    /// Adds another input's counts; the first bad line stays the first.
    pub fn absorb(&mut self, other: Counts) {
        self.numbers += other.numbers;
        self.empty_lines += other.empty_lines;
        self.header_lines += other.header_lines;
        self.bad_lines += other.bad_lines;
        self.bytes += other.bytes;
        self.first_bad = self.first_bad.take().or(other.first_bad);
    }
}
