//! Cuts a line into columns and picks the wanted ones in one pass from left to right.

use memchr::memchr;

use crate::error::{ReadError, Reason};
use crate::field::{self, is_blank, trim};
use crate::format::{Notation, Separator, TextFormat};
use crate::key::{MAX_DIMS, NumberKey, Scalar};
use crate::swar;

/// What a column is read for. The order decides which error is told when one column serves twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Dimension(usize),
    Weight,
}

/// Why a line's columns could not be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BadColumn {
    pub(crate) reason: Reason,
    /// The column that is wrong, as positions in the buffer; none if it is not there.
    pub(crate) field: Option<(usize, usize)>,
}

/// What stands between the columns of a file, chosen by its first line with data.
pub(crate) fn chosen(separator: Separator, line: &[u8]) -> Separator {
    match separator {
        Separator::Auto if memchr(b',', line).is_some() => Separator::Byte(b','),
        Separator::Auto => Separator::Blanks,
        other => other,
    }
}

/// The wanted columns, leftmost first.
#[derive(Debug, Clone)]
pub(crate) struct Picker {
    wanted: Vec<(usize, Role)>,
    notation: Notation,
    separator: Separator,
}

impl Picker {
    /// Without chosen columns the dimensions are columns 1, 2, ...
    pub(crate) fn new(format: &TextFormat, dimensions: usize) -> Result<Self, ReadError> {
        let columns = match &format.columns {
            chosen if chosen.is_empty() => (1..=dimensions).collect(),
            chosen => chosen.clone(),
        };
        if columns.len() != dimensions || dimensions > MAX_DIMS {
            return Err(ReadError::Layout { columns: columns.len(), dimensions });
        }
        let mut wanted: Vec<_> =
            columns.into_iter().enumerate().map(|(dim, column)| (column, Role::Dimension(dim))).collect();
        wanted.extend(format.weight_column.map(|column| (column, Role::Weight)));
        if wanted.iter().any(|&(column, _)| column == 0) {
            return Err(ReadError::ColumnZero);
        }
        wanted.sort_unstable();
        Ok(Picker { wanted, notation: format.notation, separator: format.separator })
    }

    /// The same columns, with another separator.
    pub(crate) fn separated_by(&mut self, separator: Separator) {
        self.separator = separator;
    }

    /// Reads the wanted columns of the line `buffer[from..to]`, which is not empty.
    #[inline]
    pub(crate) fn pick<K: NumberKey>(
        &self,
        buffer: &[u8],
        from: usize,
        to: usize,
    ) -> Result<(K, u64), BadColumn> {
        let mut key = K::splat(Default::default());
        let mut weight = 1;
        let mut wanted = self.wanted.iter().peekable();
        let mut fields = Fields::new(buffer, from, to, self.separator);
        let mut have = 0;
        while let Some(&&(column, role)) = wanted.peek() {
            let Some((start, end)) = fields.next() else {
                return Err(BadColumn {
                    reason: Reason::MissingColumn { wanted: column, have },
                    field: None,
                });
            };
            have += 1;
            if have < column {
                continue;
            }
            if start == end {
                return Err(BadColumn { reason: Reason::EmptyColumn { column }, field: None });
            }
            // One column may serve several roles, as in a weight equal to the key.
            let mut next = Some(role);
            let bad = |reason| BadColumn { reason, field: Some((start, end)) };
            while let Some(role) = next {
                match role {
                    Role::Dimension(dim) => {
                        key.set(dim, read(buffer, start, end, self.notation).map_err(bad)?)
                    }
                    Role::Weight => weight = read(buffer, start, end, Notation::Number).map_err(bad)?,
                }
                wanted.next();
                next = wanted.peek().filter(|entry| entry.0 == column).map(|entry| entry.1);
            }
        }
        Ok((key, weight))
    }

    /// The largest number in the wanted columns of the line `buffer[..to]`, if they can be read.
    pub(crate) fn widest(&self, buffer: &[u8], to: usize) -> Option<u128> {
        let (key, _) = self.pick::<[u128; MAX_DIMS]>(buffer, 0, to).ok()?;
        key.into_iter().max()
    }
}

#[inline]
fn read<S: Scalar>(buffer: &[u8], start: usize, end: usize, notation: Notation) -> Result<S, Reason> {
    if notation == Notation::Number
        && let Some((value, length)) = swar::number(buffer, start)
        && length == end - start
        && let Some(scalar) = S::from_u64(value)
    {
        return Ok(scalar);
    }
    field::parse(&buffer[start..end], notation)
}

/// The columns of a line, as positions in the buffer, blanks around them left off.
struct Fields<'a> {
    buffer: &'a [u8],
    at: usize,
    to: usize,
    byte: Option<u8>,
    done: bool,
}

impl<'a> Fields<'a> {
    fn new(buffer: &'a [u8], from: usize, to: usize, separator: Separator) -> Self {
        let byte = match chosen(separator, &buffer[from..to]) {
            Separator::Byte(byte) => Some(byte),
            _ => None,
        };
        Fields { buffer, at: from, to, byte, done: false }
    }

    fn next_blank_separated(&mut self) -> Option<(usize, usize)> {
        while self.at < self.to && is_blank(self.buffer[self.at]) {
            self.at += 1;
        }
        let start = self.at;
        while self.at < self.to && !is_blank(self.buffer[self.at]) {
            self.at += 1;
        }
        (self.at > start).then_some((start, self.at))
    }

    fn next_byte_separated(&mut self, byte: u8) -> Option<(usize, usize)> {
        if self.done {
            return None;
        }
        let rest = &self.buffer[self.at..self.to];
        let length = memchr(byte, rest).unwrap_or_else(|| {
            self.done = true;
            rest.len()
        });
        let start = self.at + rest[..length].iter().take_while(|&&b| is_blank(b)).count();
        let field = trim(&rest[..length]);
        self.at += length + 1;
        Some((start, start + field.len()))
    }
}

impl Iterator for Fields<'_> {
    type Item = (usize, usize);
    #[inline]
    fn next(&mut self) -> Option<(usize, usize)> {
        match self.byte {
            None => self.next_blank_separated(),
            Some(byte) => self.next_byte_separated(byte),
        }
    }
}
