//! Ranges as a person reads them: hexadecimal, or networks for addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use sonde_numbers::Notation;
use sonde_rap::{Key, Range};

/// One dimension's aligned range, such as `0x1000-0x1fff` or `10.0.0.0/8`.
fn interval(lo: u128, hi: u128, notation: Notation, bits: u32) -> String {
    // Aligned ranges have a power of two of values: the prefix is what all of them share.
    let prefix = bits - (128 - (lo ^ hi).leading_zeros());
    let address = match notation {
        Notation::Number if lo == hi => return format!("{lo:#x}"),
        Notation::Number => return format!("{lo:#x}-{hi:#x}"),
        // In this notation a dimension has 32 bits.
        Notation::Ipv4 => Ipv4Addr::from(lo as u32).to_string(),
        Notation::Ipv6 => Ipv6Addr::from(lo).to_string(),
    };
    if lo == hi { address } else { format!("{address}/{prefix}") }
}

/// An aligned range; the dimensions of a box are joined by a cross.
pub fn range<K: Key>(range: &Range<K>, notation: Notation) -> String {
    let sides = (0..K::DIMS)
        .map(|dim| interval(range.lo.coordinate(dim), range.hi.coordinate(dim), notation, K::DIM_BITS));
    sides.collect::<Vec<_>>().join(" × ")
}

/// The corner of a range in hexadecimal, one string per dimension.
pub fn corner<K: Key>(key: K) -> Vec<String> {
    (0..K::DIMS).map(|dim| format!("{:#x}", key.coordinate(dim))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_networks() {
        assert_eq!(range(&Range { lo: 0x1000u64, hi: 0x1fff }, Notation::Number), "0x1000-0x1fff");
        assert_eq!(range(&Range { lo: 7u64, hi: 7 }, Notation::Number), "0x7");
        assert_eq!(range(&Range { lo: 0x0a00_0000u32, hi: 0x0aff_ffff }, Notation::Ipv4), "10.0.0.0/8");
        assert_eq!(range(&Range { lo: 0x0a00_0001u32, hi: 0x0a00_0001 }, Notation::Ipv4), "10.0.0.1");
        assert_eq!(range(&Range { lo: 0u32, hi: u32::MAX }, Notation::Ipv4), "0.0.0.0/0");
        let v6 = 0x2001_0db8u128 << 96;
        assert_eq!(range(&Range { lo: v6, hi: v6 | u128::MAX >> 32 }, Notation::Ipv6), "2001:db8::/32");
        assert_eq!(range(&Range { lo: 0u128, hi: u128::MAX }, Notation::Ipv6), "::/0");
    }

    #[test]
    fn boxes() {
        let square = Range { lo: [0x10u64, 0x20], hi: [0x1f, 0x2f] };
        assert_eq!(range(&square, Notation::Number), "0x10-0x1f × 0x20-0x2f");
        assert_eq!(corner(square.hi), ["0x1f", "0x2f"]);
    }
}
