//! One field, read with care: every notation, every error told apart. The fast path in `swar` hands over to this.

use std::net::Ipv6Addr;

use crate::error::Reason;
use crate::format::Notation;
use crate::key::Scalar;

/// Whether a byte may surround a field without being part of it.
#[inline]
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// The field without the blanks around it.
#[inline]
pub(crate) fn trim(mut field: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = field
        && is_blank(*first)
    {
        field = rest;
    }
    while let [rest @ .., last] = field
        && is_blank(*last)
    {
        field = rest;
    }
    field
}

/// Reads a field that has no blanks around it.
pub(crate) fn parse<S: Scalar>(field: &[u8], notation: Notation) -> Result<S, Reason> {
    let too_large = Reason::TooLarge { bits: S::BITS };
    let value = match notation {
        Notation::Number => number(field)?.ok_or(too_large)?,
        Notation::Ipv4 => u128::from(ipv4(field).ok_or(Reason::NotIpv4)?),
        Notation::Ipv6 => ipv6(field).ok_or(Reason::NotIpv6)?,
    };
    S::from_u128(value).ok_or(too_large)
}

/// `Ok(None)` is a number that even 128 bits do not hold.
fn number(field: &[u8]) -> Result<Option<u128>, Reason> {
    match field {
        [b'0', b'x' | b'X', digits @ ..] => in_radix(digits, 16),
        [b'-', digits @ ..] if in_radix(digits, 10).is_ok() => Err(Reason::Negative),
        digits => in_radix(digits, 10),
    }
}

fn in_radix(digits: &[u8], radix: u8) -> Result<Option<u128>, Reason> {
    if digits.is_empty() {
        return Err(Reason::NotANumber);
    }
    let mut value = Some(0u128);
    for &byte in digits {
        let digit = (byte as char).to_digit(u32::from(radix)).ok_or(Reason::NotANumber)?;
        value = value.and_then(|v| v.checked_mul(u128::from(radix))?.checked_add(u128::from(digit)));
    }
    Ok(value)
}

/// Four decimal octets without superfluous zeros, as the standard library has it, without going through `str`.
pub(crate) fn ipv4(field: &[u8]) -> Option<u32> {
    let (mut address, mut octet, mut digits, mut dots) = (0u32, 0u32, 0u32, 0u32);
    for &byte in field {
        match byte {
            b'0'..=b'9' => {
                if digits > 0 && octet == 0 {
                    return None;
                }
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
                if octet > 255 {
                    return None;
                }
            }
            b'.' if digits > 0 && dots < 3 => {
                address = (address << 8) | octet;
                (octet, digits, dots) = (0, 0, dots + 1);
            }
            _ => return None,
        }
    }
    (dots == 3 && digits > 0).then_some((address << 8) | octet)
}

fn ipv6(field: &[u8]) -> Option<u128> {
    if let Some(mapped) = ipv4(field) {
        return Some(0xffff_0000_0000 | u128::from(mapped));
    }
    let text = std::str::from_utf8(field).ok()?;
    text.parse::<Ipv6Addr>().ok().map(u128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<S: Scalar>(text: &str) -> Result<S, Reason> {
        parse(text.as_bytes(), Notation::Number)
    }

    #[test]
    fn limits_of_each_width() {
        assert_eq!(read::<u32>("4294967295"), Ok(u32::MAX));
        assert_eq!(read::<u32>("4294967296"), Err(Reason::TooLarge { bits: 32 }));
        assert_eq!(read::<u64>("0xffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(read::<u64>("0x10000000000000000"), Err(Reason::TooLarge { bits: 64 }));
        assert_eq!(read::<u128>("340282366920938463463374607431768211455"), Ok(u128::MAX));
        assert_eq!(
            read::<u128>("340282366920938463463374607431768211456"),
            Err(Reason::TooLarge { bits: 128 })
        );
        assert_eq!(read::<u32>("00000000000000000000000000000000000000000000000007"), Ok(7));
    }

    #[test]
    fn what_is_no_number_says_so() {
        for text in ["", "x", "0x", "1.5", "1e3", "+1", "- 1", "-", "--1", "1\0", "0x-1", "1_000"] {
            assert_eq!(read::<u64>(text), Err(Reason::NotANumber), "{text:?}");
        }
        assert_eq!(read::<u64>("-12"), Err(Reason::Negative));
        assert_eq!(read::<u64>("-99999999999999999999999999999999999999999999"), Err(Reason::Negative));
    }

    #[test]
    fn addresses() {
        let v4 = |text: &str| parse::<u32>(text.as_bytes(), Notation::Ipv4);
        assert_eq!(v4("192.168.0.1"), Ok(0xc0a8_0001));
        for text in
            ["1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1..2.3", "1.2.3.", ".1.2.3", "1.2.3.4 ", "12"]
        {
            assert_eq!(v4(text), Err(Reason::NotIpv4), "{text:?}");
        }
        let v6 = |text: &str| parse::<u128>(text.as_bytes(), Notation::Ipv6);
        assert_eq!(v6("::1"), Ok(1));
        assert_eq!(v6("2001:db8::ff"), Ok(0x2001_0db8_0000_0000_0000_0000_0000_00ff));
        assert_eq!(v6("10.0.0.1"), Ok(0xffff_0a00_0001));
        assert_eq!(v6("12"), Err(Reason::NotIpv6));
        assert_eq!(v6(":::"), Err(Reason::NotIpv6));
    }
}
