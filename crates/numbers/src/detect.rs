//! Guesses from a beginning of the text what kind of numbers it holds, for `--type auto`.

use crate::blocks::BYTE_ORDER_MARK;
use crate::columns::Picker;
use crate::error::ReadError;
use crate::field::trim;
use crate::format::{Notation, TextFormat};

/// What a text seems to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detected {
    /// Numbers that fit in 64 bits.
    U64,
    /// Numbers, some larger than 64 bits.
    U128,
    /// IPv4 addresses.
    Ipv4,
    /// IPv6 addresses, perhaps among IPv4 addresses.
    Ipv6,
}

/// Looks at the lines in `sample`; the layout's notation is ignored. The first line that can be read decides between
/// numbers and addresses, later ones may only widen the choice. `None`: no line can be read.
pub fn detect(sample: &[u8], format: &TextFormat, dimensions: usize) -> Result<Option<Detected>, ReadError> {
    let mut found = None;
    let header = usize::try_from(format.header_lines).unwrap_or(usize::MAX);
    let text = sample.strip_prefix(BYTE_ORDER_MARK).unwrap_or(sample);
    let lines = text.split(|&byte| byte == b'\n').skip(header);
    for line in lines.filter(|line| !trim(line).is_empty()) {
        let seen = kind_of(line, format, dimensions)?;
        found = match (found, seen) {
            (None, seen) => seen,
            (Some(Detected::U64), Some(Detected::U128)) => Some(Detected::U128),
            (Some(Detected::Ipv4), Some(Detected::Ipv6)) => Some(Detected::Ipv6),
            (found, _) => found,
        };
    }
    Ok(found)
}

fn kind_of(line: &[u8], format: &TextFormat, dimensions: usize) -> Result<Option<Detected>, ReadError> {
    let mut padded = line.to_vec();
    padded.resize(line.len() + crate::swar::PADDING, 0);
    for (notation, kind) in [
        (Notation::Number, Detected::U64),
        (Notation::Ipv4, Detected::Ipv4),
        (Notation::Ipv6, Detected::Ipv6),
    ] {
        let layout = TextFormat { notation, weight_column: None, ..format.clone() };
        let picker = Picker::new(&layout, dimensions)?;
        if let Some(widest) = picker.widest(&padded, line.len()) {
            let wide = kind == Detected::U64 && widest > u128::from(u64::MAX);
            return Ok(Some(if wide { Detected::U128 } else { kind }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Option<Detected> {
        detect(text.as_bytes(), &TextFormat::default(), 1).unwrap()
    }

    #[test]
    fn the_first_readable_line_decides_and_later_ones_widen() {
        assert_eq!(seen(""), None);
        assert_eq!(seen("x\n\n"), None);
        assert_eq!(seen("x\n12\n1.2.3.4\n"), Some(Detected::U64));
        assert_eq!(seen("12\n18446744073709551616"), Some(Detected::U128));
        assert_eq!(seen("1.2.3.4\r\n5\n"), Some(Detected::Ipv4));
        assert_eq!(seen("1.2.3.4\n::1\n"), Some(Detected::Ipv6));
        assert_eq!(seen("::1\n1.2.3.4\n"), Some(Detected::Ipv6));
    }

    #[test]
    fn looks_at_the_chosen_columns_after_the_header() {
        let format = TextFormat { columns: vec![2], header_lines: 1, ..TextFormat::default() };
        assert_eq!(detect(b"1,2\nx,10.0.0.1\n", &format, 1).unwrap(), Some(Detected::Ipv4));
        let format = TextFormat { columns: vec![1, 2], ..TextFormat::default() };
        assert_eq!(detect(b"1 18446744073709551616", &format, 2).unwrap(), Some(Detected::U128));
    }
}
