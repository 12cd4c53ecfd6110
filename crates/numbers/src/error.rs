//! What can go wrong while reading, with enough context to find the place and mend it.

use std::fmt;
use std::io;

/// How much of an offending line or column is shown.
const SHOWN_BYTES: usize = 40;

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused a read.
    #[error("{name}: cannot read: {cause}")]
    Io {
        /// Name of the input as given by the caller.
        name: String,
        /// What the operating system said.
        cause: io::Error,
    },
    /// A line is not what the format asks for.
    #[error("{0}")]
    Bad(BadLine),
    /// The layout names another number of columns than the key has dimensions.
    #[error("{columns} columns chosen for a key of {dimensions} dimensions")]
    Layout {
        /// Columns chosen.
        columns: usize,
        /// Dimensions of the key.
        dimensions: usize,
    },
    /// The layout names column 0.
    #[error("columns are counted from 1")]
    ColumnZero,
    /// Binary input ends in the middle of a word.
    #[error(
        "{name}: {bytes} bytes are not a whole number of {width}-byte words: {extra} left over at the end (is it another format, or cut off?)"
    )]
    Torn {
        /// Name of the input as given by the caller.
        name: String,
        /// Bytes in the whole input.
        bytes: u64,
        /// Bytes in one word.
        width: usize,
        /// Bytes after the last whole word.
        extra: usize,
    },
}

/// A line that could not be read: where, what it says, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Name of the input as given by the caller.
    pub name: String,
    /// Line number, from 1.
    pub line: u64,
    /// The column that is wrong, or the line if it is not there; control characters escaped, cut after 40 bytes.
    pub text: String,
    /// What is wrong with it.
    pub reason: Reason,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: \"{}\"", self.name, self.line, self.reason, self.text)
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Neither decimal digits nor `0x` and hexadecimal digits.
    #[error("not a whole number (decimal or 0x hexadecimal)")]
    NotANumber,
    /// A number with a minus sign.
    #[error("negative numbers are not supported")]
    Negative,
    /// The number does not fit the key type.
    #[error("number does not fit in {bits} bits")]
    TooLarge {
        /// Width of the key type.
        bits: u32,
    },
    /// Not a dotted quad.
    #[error("not an IPv4 address")]
    NotIpv4,
    /// Neither an IPv6 nor an IPv4 address.
    #[error("not an IPv6 address")]
    NotIpv6,
    /// No column was chosen but the line has several.
    #[error("several columns where one number was expected (choose one with a column option)")]
    SeveralColumns,
    /// The line ends before the wanted column.
    #[error("no column {wanted}, the line has {have}")]
    MissingColumn {
        /// The wanted column, from 1.
        wanted: usize,
        /// How many there are.
        have: usize,
    },
    /// The wanted column holds nothing.
    #[error("column {column} is empty")]
    EmptyColumn {
        /// The wanted column, from 1.
        column: usize,
    },
    /// The line is longer than the reader accepts.
    #[error("line longer than {limit} bytes")]
    LineTooLong {
        /// The longest accepted line.
        limit: usize,
    },
    /// Binary input that ends in the middle of a word; the line number is the word's.
    #[error("only {extra} of {width} bytes in the last word")]
    TornWord {
        /// Bytes in one word.
        width: usize,
        /// Bytes that are there.
        extra: usize,
    },
}

impl BadLine {
    /// A line that is too long shows only its allowed beginning: all that is known of it wherever a block ends.
    pub(crate) fn new(name: &str, line: u64, text: &[u8], reason: Reason) -> Self {
        let text = match reason {
            Reason::LineTooLong { limit } => shown(&text[..limit.min(SHOWN_BYTES)]) + "...",
            _ => shown(text.strip_suffix(b"\r").unwrap_or(text)),
        };
        BadLine { name: name.into(), line, text, reason }
    }
}

/// Makes a line printable: control and non-ASCII bytes escaped, the end cut off.
fn shown(line: &[u8]) -> String {
    let cut = &line[..line.len().min(SHOWN_BYTES)];
    let mut text = cut.escape_ascii().to_string();
    if cut.len() < line.len() {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_lines_are_escaped_and_cut() {
        assert_eq!(shown(b"a\0b\x1b[31m"), "a\\x00b\\x1b[31m");
        assert_eq!(shown(&[b'x'; 41]), format!("{}...", "x".repeat(40)));
        assert_eq!(shown(&[b'x'; 40]), "x".repeat(40));
    }

    #[test]
    fn a_bad_line_names_place_and_text() {
        let bad = BadLine { name: "in.txt".into(), line: 3, text: "abc".into(), reason: Reason::NotANumber };
        let said = ReadError::Bad(bad).to_string();
        assert_eq!(said, "in.txt:3: not a whole number (decimal or 0x hexadecimal): \"abc\"");
    }
}
