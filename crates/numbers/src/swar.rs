//! Numbers read eight digits at a time inside a `u64` (SWAR: SIMD within a register).
//!
//! The usual loop, one digit per step, ends in a branch that the processor cannot predict when lengths vary, and
//! costs a multiply in sequence per digit. Here 16 bytes are loaded, the first byte that is no digit is found with bit
//! tricks, the digits are shifted to the top (zero bytes, which are zero digits, move in), and three multiplies per
//! half give the value. The only chain from line to line is load, find, add.
//! Byte-wise additions may carry from a byte that is no digit into the bytes after it; those are never looked at.
//! Explicit AVX2 was left out: calling it needs `unsafe`, and this is already several times faster than required.

/// Bytes that must be readable after any position where a number may start.
pub(crate) const PADDING: usize = 32;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

#[inline(always)]
fn load(buffer: &[u8], at: usize) -> u64 {
    let bytes: [u8; 8] = buffer[at..at + 8].try_into().expect("a slice of 8 bytes");
    u64::from_le_bytes(bytes)
}

/// High bit of each byte that is no decimal digit; exact up to and including the first such byte.
#[inline(always)]
fn non_digits(word: u64) -> u64 {
    let t = word ^ (0x30 * ONES);
    (t.wrapping_add(0x76 * ONES) | t) & HIGH
}

/// High bit of each byte that is no hexadecimal digit; exact up to and including the first such byte.
#[inline(always)]
fn non_hex(word: u64) -> u64 {
    let letter = (word | (0x20 * ONES)) ^ (0x60 * ONES);
    let below_a = !letter.wrapping_add(0x7f * ONES);
    let above_f = letter.wrapping_add(0x79 * ONES) | letter;
    non_digits(word) & (below_a | above_f)
}

/// Eight digits, first digit in the lowest byte, each byte 0-9.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// Eight hexadecimal digits, first digit in the lowest byte, each byte 0-15.
#[inline(always)]
fn eight_nibbles(nibbles: u64) -> u64 {
    let bytes = ((nibbles << 4) | (nibbles >> 8)) & 0x00ff_00ff_00ff_00ff;
    let halves = ((bytes << 8) | (bytes >> 16)) & 0x0000_ffff_0000_ffff;
    ((halves << 16) | (halves >> 32)) & 0xffff_ffff
}

/// Value and number of digits of the decimal number at `at`: `None` if there is no digit, or it overflows.
#[inline(always)]
pub(crate) fn decimal(buffer: &[u8], at: usize) -> Option<(u64, usize)> {
    let low = load(buffer, at);
    let marks = non_digits(low);
    let digits = low ^ (0x30 * ONES);
    if marks != 0 {
        let count = (marks.trailing_zeros() / 8) as usize;
        if count == 0 {
            return None;
        }
        return Some((eight_digits(digits << (64 - 8 * count)), count));
    }
    let high = load(buffer, at + 8);
    let count = (non_digits(high).trailing_zeros() / 8) as usize;
    if count == 8 {
        return long_decimal(buffer, at);
    }
    // In two steps, as a shift by 64 is undefined when no digit follows.
    let rest = ((high ^ (0x30 * ONES)) << 8) << (56 - 8 * count);
    Some((eight_digits(digits) * POWERS[count] + eight_digits(rest), 8 + count))
}

/// Powers of ten by exponent.
const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The longest text that [`number`] reads, by far enough for the 20 digits of `u64::MAX`.
pub(crate) const LONGEST: usize = 24;

/// Decimal numbers of 16 digits and more.
#[inline(never)]
fn long_decimal(buffer: &[u8], at: usize) -> Option<(u64, usize)> {
    let halves = [load(buffer, at), load(buffer, at + 8)].map(|half| eight_digits(half ^ (0x30 * ONES)));
    let mut value = halves[0] * 100_000_000 + halves[1];
    let mut count = 16;
    while let digit @ b'0'..=b'9' = buffer[at + count] {
        value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        count += 1;
        if count > LONGEST {
            return None;
        }
    }
    Some((value, count))
}

/// Value and number of digits of the hexadecimal number at `at`, after its `0x`: `None` if there is no digit, or if
/// there are more than 16.
#[inline(always)]
pub(crate) fn hexadecimal(buffer: &[u8], at: usize) -> Option<(u64, usize)> {
    let nibbles = |w: u64| (w & (0x0f * ONES)).wrapping_add(((w >> 6) & ONES).wrapping_mul(9));
    let low = load(buffer, at);
    let marks = non_hex(low);
    if marks != 0 {
        let count = (marks.trailing_zeros() / 8) as usize;
        if count == 0 {
            return None;
        }
        return Some((eight_nibbles(nibbles(low) << (64 - 8 * count)), count));
    }
    let high = load(buffer, at + 8);
    let count = (non_hex(high).trailing_zeros() / 8) as usize;
    if count == 8 && buffer[at + 16].is_ascii_hexdigit() {
        return None;
    }
    let rest = if count == 0 { 0 } else { nibbles(high) << (64 - 8 * count) };
    Some(((eight_nibbles(nibbles(low)) << (4 * count)) | eight_nibbles(rest), 8 + count))
}

/// Value and length in bytes of the number at `at`, decimal or `0x` hexadecimal. `None` says only that this way of
/// reading does not apply: the caller then looks at the text with care.
#[inline(always)]
pub(crate) fn number(buffer: &[u8], at: usize) -> Option<(u64, usize)> {
    if buffer[at] == b'0' && buffer[at + 1] | 0x20 == b'x' {
        let (value, count) = hexadecimal(buffer, at + 2)?;
        return Some((value, count + 2));
    }
    decimal(buffer, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(text: &str) -> Vec<u8> {
        let mut buffer = text.as_bytes().to_vec();
        buffer.resize(text.len() + PADDING, 0);
        buffer
    }

    #[test]
    fn decimals_of_every_length() {
        let digits = "98765432109876543210";
        for count in 1..=19 {
            for end in ["\n", " ", ",", "\0", "\u{ff}", ":", "/", "99"] {
                let text = format!("{}{end}", &digits[20 - count..]);
                let all: String = text.chars().take_while(char::is_ascii_digit).collect();
                let expected = all.parse::<u64>().ok().map(|value| (value, all.len()));
                assert_eq!(decimal(&padded(&text), 0), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn the_largest_decimal_and_the_next() {
        assert_eq!(number(&padded("18446744073709551615\n"), 0), Some((u64::MAX, 20)));
        assert_eq!(number(&padded("18446744073709551616\n"), 0), None);
    }

    #[test]
    fn hexadecimals_of_every_length() {
        let digits = "0123456789abcDEF";
        for count in 1..=16 {
            for end in ["\n", "g", "G", "@", "`", "/", ":", "\u{ff}"] {
                let text = format!("0x{}{end}", &digits[16 - count..]);
                let value = u64::from_str_radix(&digits[16 - count..], 16).unwrap();
                assert_eq!(number(&padded(&text), 0), Some((value, count + 2)), "{text:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_long() {
        for text in ["", "\n", "x", "-1", "0x", "0xg", " 1", "0x11112222333344445"] {
            assert_eq!(number(&padded(text), 0), None, "{text:?}");
        }
    }
}
