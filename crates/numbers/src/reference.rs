//! The same reading written for the eye instead of for speed: what tests and fuzzing hold the fast reader against.
//!
//! It shares nothing with the fast reader but the types: the text is one string, cut and parsed by the standard
//! library.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::batch::Collect;
use crate::error::{BadLine, ReadError, Reason};
use crate::format::{Counts, Notation, OnBad, Separator, TextFormat};
use crate::key::{NumberKey, Scalar};

const BLANKS: [char; 3] = [' ', '\t', '\r'];

/// Reads `bytes` as [`crate::read_text`] does.
pub fn read_text_simply<K: NumberKey>(
    name: &str,
    bytes: &[u8],
    format: &TextFormat,
    on_bad: OnBad,
) -> Result<(Collect<K>, Counts), ReadError> {
    let mut out = Collect { keys: Vec::new(), weights: Vec::new() };
    let mut counts = Counts { bytes: bytes.len() as u64, ..Counts::default() };
    // Not a part of the first line: the byte order mark of UTF-8.
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    lines.pop_if(|line| line.is_empty());
    let mut format = format.clone();
    for (line, number) in lines.into_iter().zip(1u64..) {
        // One character per byte, so that arbitrary bytes can be handled as a string.
        let text: String = line.iter().map(|&byte| char::from(byte)).collect();
        if number <= format.header_lines {
            counts.header_lines += 1;
        } else if line.len() <= format.max_line && text.trim_matches(BLANKS).is_empty() {
            counts.empty_lines += 1;
        } else {
            if line.len() <= format.max_line && format.separator == Separator::Auto {
                // The first line with data chooses for all.
                format.separator = if text.contains(',') { Separator::Byte(b',') } else { Separator::Blanks };
            }
            match read_line::<K>(&text, line.len(), &format) {
                Ok((key, weight)) => {
                    counts.numbers += 1;
                    out.keys.push(key);
                    out.weights.extend(format.weight_column.map(|_| weight));
                }
                Err((reason, field)) => {
                    let field: Option<Vec<u8>> = field.map(|f| f.chars().map(|c| c as u8).collect());
                    let bad = BadLine::new(name, number, field.as_deref().unwrap_or(line), reason);
                    if on_bad == OnBad::Stop {
                        return Err(ReadError::Bad(bad));
                    }
                    counts.bad_lines += 1;
                    counts.first_bad.get_or_insert(bad);
                }
            }
        }
    }
    Ok((out, counts))
}

/// What is wrong, and with which column if one is there.
type Bad<'a> = (Reason, Option<&'a str>);

fn read_line<'a, K: NumberKey>(
    text: &'a str,
    bytes: usize,
    format: &TextFormat,
) -> Result<(K, u64), Bad<'a>> {
    if bytes > format.max_line {
        return Err((Reason::LineTooLong { limit: format.max_line }, None));
    }
    if format.columns.is_empty() && format.weight_column.is_none() && K::DIMS == 1 {
        let whole = read_whole(text.trim_matches(BLANKS), format.notation);
        return whole.map(|scalar| (K::splat(scalar), 1)).map_err(|reason| (reason, None));
    }
    let fields = cut(text, format.separator);
    let mut wanted: Vec<(usize, Option<usize>)> = match format.columns.is_empty() {
        true => (0..K::DIMS).map(|dim| (dim + 1, Some(dim))).collect(),
        false => format.columns.iter().enumerate().map(|(dim, &column)| (column, Some(dim))).collect(),
    };
    wanted.extend(format.weight_column.map(|column| (column, None)));
    wanted.sort_by_key(|&(column, dim)| (column, dim.unwrap_or(usize::MAX)));
    let (mut key, mut weight) = (K::splat(Default::default()), 1);
    for (column, dim) in wanted {
        let field = fields
            .get(column - 1)
            .ok_or((Reason::MissingColumn { wanted: column, have: fields.len() }, None))?;
        if field.is_empty() {
            return Err((Reason::EmptyColumn { column }, None));
        }
        let bad = |reason| (reason, Some(*field));
        match dim {
            Some(dim) => key.set(dim, read_field(field, format.notation).map_err(bad)?),
            None => weight = read_field(field, Notation::Number).map_err(bad)?,
        }
    }
    Ok((key, weight))
}

fn cut(text: &str, separator: Separator) -> Vec<&str> {
    match separator {
        Separator::Byte(byte) => {
            text.split(char::from(byte)).map(|field| field.trim_matches(BLANKS)).collect()
        }
        _ => text.split(BLANKS).filter(|field| !field.is_empty()).collect(),
    }
}

fn read_whole<S: Scalar>(text: &str, notation: Notation) -> Result<S, Reason> {
    match (read_field(text, notation), text.split_once([' ', '\t', ','])) {
        (Err(_), Some((first, _))) if read_field::<S>(first.trim_matches(BLANKS), notation).is_ok() => {
            Err(Reason::SeveralColumns)
        }
        (read, _) => read,
    }
}

fn read_field<S: Scalar>(text: &str, notation: Notation) -> Result<S, Reason> {
    let too_large = Reason::TooLarge { bits: S::BITS };
    let v4 = text.parse::<Ipv4Addr>();
    let value = match notation {
        Notation::Number => read_number(text)?.ok_or(too_large)?,
        Notation::Ipv4 => u128::from(u32::from(v4.map_err(|_| Reason::NotIpv4)?)),
        Notation::Ipv6 => match v4 {
            Ok(v4) => u128::from(v4.to_ipv6_mapped()),
            Err(_) => u128::from(text.parse::<Ipv6Addr>().map_err(|_| Reason::NotIpv6)?),
        },
    };
    S::from_u128(value).ok_or(too_large)
}

fn read_number(text: &str) -> Result<Option<u128>, Reason> {
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        _ => (text, 10),
    };
    if radix == 10 && text.strip_prefix('-').is_some_and(|rest| all_digits(rest, 10)) {
        return Err(Reason::Negative);
    }
    if !all_digits(digits, radix) {
        return Err(Reason::NotANumber);
    }
    Ok(u128::from_str_radix(digits, radix).ok())
}

fn all_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_digit(radix))
}
