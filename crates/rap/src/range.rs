//! Aligned ranges: the sets of keys that a tree node can stand for.

use crate::code::Code;
use crate::key::Key;

/// An inclusive range of keys; in several dimensions, the box between two corners.
///
/// Ranges of tree nodes are aligned: their codes share all but the lowest [`Range::free_bits`] bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range<K> {
    /// The least key; in several dimensions the corner that is least in each.
    pub lo: K,
    /// The greatest key; in several dimensions the corner that is greatest in each.
    pub hi: K,
}

impl<K: Key> Range<K> {
    /// The aligned range around `code` in which the lowest `free_bits` bits are free.
    pub fn aligned(code: K::Code, free_bits: u32) -> Self {
        let free_bits = free_bits.min(K::BITS);
        let start = code.shr(free_bits).shl(free_bits);
        Range { lo: K::decode(start), hi: K::decode(start.or(K::Code::ones(free_bits))) }
    }

    /// Everything.
    pub fn all() -> Self {
        Self::aligned(K::Code::ZERO, K::BITS)
    }

    /// Code of the lower corner: the node's place in preorder, before smaller ranges with the same start.
    pub fn start(&self) -> K::Code {
        self.lo.encode()
    }

    /// Code of the upper corner.
    pub fn end(&self) -> K::Code {
        self.hi.encode()
    }

    /// Number of low code bits that differ inside: an aligned range has `2^free_bits` keys.
    pub fn free_bits(&self) -> u32 {
        self.start().xor(self.end()).bit_length()
    }

    /// Whether this is a range that a tree node can have: aligned in code order.
    pub fn is_aligned(&self) -> bool {
        *self == Self::aligned(self.start(), self.free_bits())
    }

    /// Whether all of `other` lies inside (boxes compare by each dimension).
    pub fn contains(&self, other: &Range<K>) -> bool {
        (0..K::DIMS).all(|d| {
            self.lo.coordinate(d) <= other.lo.coordinate(d) && other.hi.coordinate(d) <= self.hi.coordinate(d)
        })
    }

    /// Whether `key` lies inside.
    pub fn contains_key(&self, key: K) -> bool {
        self.contains(&Range { lo: key, hi: key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_ranges() {
        let r = Range::<u64>::aligned(0x1234, 8);
        assert_eq!((r.lo, r.hi, r.free_bits()), (0x1200, 0x12ff, 8));
        assert!(r.is_aligned() && r.contains_key(0x1234) && !r.contains_key(0x1300));
        assert!(!Range { lo: 1u64, hi: 2 }.is_aligned());
        assert_eq!(Range::<u64>::all(), Range { lo: 0, hi: u64::MAX });
        assert_eq!(Range::<u64>::aligned(7, 0), Range { lo: 7, hi: 7 });
    }

    #[test]
    fn aligned_codes_are_boxes() {
        let r = Range::<[u32; 2]>::aligned([5u32, 9].encode(), 4);
        assert_eq!((r.lo, r.hi), ([4, 8], [7, 11]));
        assert!(r.is_aligned() && r.contains_key([6, 8]) && !r.contains_key([6, 12]));
        let odd = Range::<[u32; 2]>::aligned(0, 3);
        assert_eq!((odd.lo, odd.hi), ([0, 0], [1, 3]));
    }
}
