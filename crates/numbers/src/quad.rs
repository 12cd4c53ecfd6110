//! Dotted quads without a loop: all dots are found at once in 16 bytes, then each octet is taken from its place.
//!
//! The loop over characters in `field` mispredicts at the end of nearly every octet, since their lengths vary; it runs
//! at half this speed and is kept for what is not a plain quad. Everything up to the last line here is without branches.

const ONES: u64 = 0x0101_0101_0101_0101;

/// One bit per byte: set where the byte is no digit.
#[inline(always)]
fn non_digit_bits(word: u64) -> u32 {
    let t = word ^ (0x30 * ONES);
    let marks = (((t & (0x7f * ONES)) + 0x76 * ONES) | t) & (0x80 * ONES);
    // Gathers the high bits of the eight bytes in the top byte.
    ((marks >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// Value of the octet with `length` digits at the lowest end of `text`, and whether it is written as it should be: one to
/// three digits, no superfluous zero, at most 255.
#[inline(always)]
fn octet(text: u32, length: u32) -> (u32, bool) {
    // Digits move to the top, so that the last one is always in the highest byte and zeros stand for missing ones.
    let bits = length.wrapping_mul(8);
    let digits = (text ^ 0x3030_3030).wrapping_shl(32u32.wrapping_sub(bits));
    let value = (digits >> 8 & 0xff) * 100 + (digits >> 16 & 0xff) * 10 + (digits >> 24);
    let least = 0x640a_0000u32.wrapping_shr(bits) & 0xff;
    (value, (length.wrapping_sub(1) < 3) & (value >= least) & (value <= 255))
}

/// Address and length in bytes of the dotted quad at `at`. `None` says only that this way of reading does not apply.
#[inline(always)]
pub(crate) fn quad(buffer: &[u8], at: usize) -> Option<(u64, usize)> {
    let window: &[u8; 20] = buffer[at..at + 20].try_into().expect("a slice of 20 bytes");
    let half =
        |from: usize| u64::from_le_bytes(window[from..from + 8].try_into().expect("a slice of 8 bytes"));
    let mut marks = non_digit_bits(half(0)) | non_digit_bits(half(8)) << 8;
    let (mut address, mut start, mut good) = (0, 0, true);
    for part in 0..4 {
        // There are at most 16 positions, so the bit at 16 is always found, and at 16 a quad is too long.
        let end = (marks | 1 << 16).trailing_zeros();
        marks &= marks.wrapping_sub(1);
        let from = start as usize & 15;
        let text = u32::from_le_bytes(window[from..from + 4].try_into().expect("a slice of 4 bytes"));
        let (value, written_well) = octet(text, end.wrapping_sub(start));
        address = address << 8 | value;
        good &= written_well & (part == 3 || window[end as usize & 15] == b'.');
        start = end + 1;
    }
    (good & (start <= 16)).then_some((u64::from(address), start as usize - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn padded(text: &str) -> Vec<u8> {
        let mut buffer = text.as_bytes().to_vec();
        buffer.resize(text.len() + crate::swar::PADDING, b'7');
        buffer
    }

    #[test]
    fn quads_of_every_shape() {
        for a in [0u8, 7, 10, 99, 100, 255] {
            for b in [0u8, 9, 42, 199, 250] {
                for (c, d) in [(0u8, 0u8), (1, 10), (10, 1), (255, 255), (100, 9)] {
                    let address = Ipv4Addr::new(a, b, c, d);
                    let text = address.to_string();
                    for end in ["\n", "\r\n", "\0", "\u{ff}"] {
                        let expected = Some((u64::from(u32::from(address)), text.len()));
                        assert_eq!(quad(&padded(&format!("{text}{end}")), 0), expected, "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_quad() {
        for text in [
            "",
            "1.2.3\n",
            "1..2.3\n",
            ".1.2.3\n",
            "256.1.1.1\n",
            "01.2.3.4\n",
            "1.2.3.00\n",
            "1.2.3.1000\n",
            "1,2.3.4\n",
            "1.2.3.\n",
            "\u{fa}1.2.3.4\n",
            "1234567812345678\n",
        ] {
            assert_eq!(quad(&padded(text), 0), None, "{text:?}");
        }
    }
}
