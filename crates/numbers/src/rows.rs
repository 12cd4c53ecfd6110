//! The fast way through lines whose wanted columns are all their columns, such as `key weight` or `x,y`: plain numbers,
//! one separator between them, nothing behind. Any other line is left to the careful way, which decides alone what is
//! an error; this one may only say "not for me".

use crate::format::{Notation, Separator, TextFormat};
use crate::key::{NumberKey, Scalar};
use crate::swar;
use crate::text::behind_line_end;

/// Columns are at most the dimensions and a weight.
const MOST: usize = 4;

/// What the fast way needs to know about a layout.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    /// Column, counted from 0, of each dimension, then of the weight.
    dimensions: Vec<usize>,
    weight: Option<usize>,
    columns: usize,
    separator: Separator,
    max_line: usize,
}

impl Rows {
    /// `None` if lines of this layout cannot be read in this way.
    pub(crate) fn new(format: &TextFormat, dimensions: usize) -> Option<Self> {
        let chosen: Vec<usize> = match &format.columns {
            none if none.is_empty() => (1..=dimensions).collect(),
            some => some.clone(),
        };
        let mut all: Vec<usize> = chosen.iter().copied().chain(format.weight_column).collect();
        all.sort_unstable();
        // A letter could be part of a hexadecimal number, a digit part of any.
        let safe = !matches!(format.separator, Separator::Byte(byte) if byte.is_ascii_alphanumeric());
        let fits = all.iter().copied().eq(1..=all.len()) && all.len() <= MOST;
        (fits && safe && format.notation == Notation::Number).then(|| Rows {
            dimensions: chosen.iter().map(|column| column - 1).collect(),
            weight: format.weight_column.map(|column| column - 1),
            columns: all.len(),
            separator: format.separator,
            max_line: format.max_line,
        })
    }

    /// The same columns, with another separator.
    pub(crate) fn separated_by(&mut self, separator: Separator) {
        self.separator = separator;
    }

    /// Key, weight, and the position of the next line, if the line at `from` is of the simple kind.
    #[inline]
    pub(crate) fn read<K: NumberKey>(&self, buffer: &[u8], from: usize) -> Option<(K, u64, usize)> {
        let mut values = [0; MOST];
        let mut at = self.skip_blanks(buffer, from);
        let mut separator = None;
        for (column, value) in values[..self.columns].iter_mut().enumerate() {
            if column > 0 {
                let found = self.separates(buffer[at])?;
                if *separator.get_or_insert(found) != found {
                    return None;
                }
                at = self.skip_blanks(buffer, at + 1);
            }
            let (number, length) = swar::number(buffer, at)?;
            *value = number;
            at += length;
        }
        let next = behind_line_end(buffer, at)?;
        if next - from > self.max_line {
            return None;
        }
        let mut key = K::splat(Default::default());
        for (dimension, &column) in self.dimensions.iter().enumerate() {
            key.set(dimension, K::Scalar::from_u64(values[column])?);
        }
        Some((key, self.weight.map_or(1, |column| values[column]), next))
    }

    /// The kind of separator that this byte is: blanks, or a byte for itself.
    #[inline]
    fn separates(&self, byte: u8) -> Option<u8> {
        match self.separator {
            Separator::Byte(only) => (byte == only).then_some(only),
            _ if byte == b' ' || byte == b'\t' => Some(b' '),
            Separator::Auto if byte == b',' => Some(b','),
            _ => None,
        }
    }

    /// Passes over blanks that are no separators by themselves. Ends at the newline at the latest.
    #[inline]
    fn skip_blanks(&self, buffer: &[u8], mut at: usize) -> usize {
        while (buffer[at] == b' ' || buffer[at] == b'\t') && self.separator != Separator::Byte(buffer[at]) {
            at += 1;
        }
        at
    }
}
