//! What can be profiled: numbers and small tuples of numbers, seen as one Morton code each.
//!
//! The paper (section 3.1) has one-dimensional keys and sketches N-dimensional ones. Here a tuple's bits are interleaved,
//! most significant first, dimension 0 first: a range of codes that is aligned to a power of two is then a box, and one
//! tree over codes serves every number of dimensions. With `b = 4` and two dimensions each level halves both sides; where
//! the bits do not divide, boxes are up to 2:1.

use std::fmt::Debug;
use std::hash::Hash;

use crate::code::{Code, U256};

/// A value that a range-adaptive tree can count.
///
/// Implemented for `u32`, `u64`, `u128` and for arrays of two to four `u32` or `u64`.
pub trait Key: Copy + Ord + Hash + Debug + Default + Send + Sync + 'static {
    /// The integer that holds all dimensions' bits, interleaved.
    type Code: Code;
    /// Number of dimensions.
    const DIMS: usize;
    /// Bits in each dimension.
    const DIM_BITS: u32;
    /// Bits in the code: the size of the universe is `2^BITS`.
    const BITS: u32 = Self::DIM_BITS * Self::DIMS as u32;

    /// The Morton code of this key (the key itself when it has one dimension).
    fn encode(self) -> Self::Code;
    /// The key with this code. Bits above [`Key::BITS`] are ignored.
    fn decode(code: Self::Code) -> Self;
    /// The coordinate in dimension `dim`, widened.
    ///
    /// # Panics
    /// When `dim` is not below [`Key::DIMS`].
    fn coordinate(self, dim: usize) -> u128;
    /// The key with these coordinates, each cut to [`Key::DIM_BITS`]; missing ones are 0, further ones ignored.
    fn from_coordinates(coordinates: &[u128]) -> Self;
    /// A hash for the front tables, well mixed in its high bits; cheaper than hashing the code, since no bits are
    /// interleaved.
    fn mix(self) -> u64;
    /// Keys that differ in so many low bits only are neighbours, which a tree finds by one of them; 0 if a key is looked
    /// for by itself.
    const NEAR_BITS: u32 = 0;
    /// What this key and its neighbours have in common.
    #[inline(always)]
    fn neighbourhood(self) -> Self {
        self
    }
    /// Whether all `keys` are `self`.
    fn is_all_of(self, keys: &[Self]) -> bool {
        keys.iter().all(|&key| key == self)
    }
}

/// 2^64 divided by the golden ratio: multiplying by it spreads low and high bits into the top ones.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn mix64(x: u64) -> u64 {
    x.wrapping_mul(GOLDEN)
}

macro_rules! scalar_key {
    ($int:ty, $code:ty, $mix:expr) => {
        impl Key for $int {
            type Code = $code;
            const DIMS: usize = 1;
            const DIM_BITS: u32 = <$int>::BITS;
            const NEAR_BITS: u32 = 8;
            #[inline(always)]
            fn neighbourhood(self) -> Self {
                self >> Self::NEAR_BITS
            }
            #[inline(always)]
            fn encode(self) -> $code {
                self.into()
            }
            #[inline(always)]
            fn decode(code: $code) -> Self {
                code as $int
            }
            fn coordinate(self, dim: usize) -> u128 {
                assert_eq!(dim, 0, "a number has one dimension");
                self.into()
            }
            fn from_coordinates(coordinates: &[u128]) -> Self {
                coordinates.first().map_or(0, |&c| c as $int)
            }
            #[inline]
            fn is_all_of(self, keys: &[Self]) -> bool {
                keys.iter().fold(0, |difference, key| difference | (key ^ self)) == 0
            }
            #[inline(always)]
            fn mix(self) -> u64 {
                let mix: fn($int) -> u64 = $mix;
                mix(self)
            }
        }
    };
}

scalar_key!(u32, u64, |x| mix64(x.into()));
scalar_key!(u64, u64, mix64);
scalar_key!(u128, u128, |x| mix64((x as u64) ^ ((x >> 64) as u64).rotate_left(29)));

macro_rules! tuple_key {
    ($int:ty, $n:literal, $code:ty) => {
        impl Key for [$int; $n] {
            type Code = $code;
            const DIMS: usize = $n;
            const DIM_BITS: u32 = <$int>::BITS;
            #[inline]
            fn encode(self) -> $code {
                let mut code = <$code>::ZERO;
                for (dim, &x) in self.iter().enumerate() {
                    code = code.or(<$code>::spread(x.into(), $n).shl($n - 1 - dim as u32));
                }
                code
            }
            #[inline]
            fn decode(code: $code) -> Self {
                std::array::from_fn(|dim| code.shr($n - 1 - dim as u32).gather($n) as $int)
            }
            fn coordinate(self, dim: usize) -> u128 {
                self[dim].into()
            }
            fn from_coordinates(coordinates: &[u128]) -> Self {
                std::array::from_fn(|dim| coordinates.get(dim).map_or(0, |&c| c as $int))
            }
            #[inline(always)]
            fn mix(self) -> u64 {
                let folded = self.iter().fold(0u64, |acc, &x| acc.rotate_left(29) ^ u64::from(x));
                mix64(folded)
            }
        }
    };
}

tuple_key!(u32, 2, u64);
tuple_key!(u32, 3, u128);
tuple_key!(u32, 4, u128);
tuple_key!(u64, 2, u128);
tuple_key!(u64, 3, U256);
tuple_key!(u64, 4, U256);

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<K: Key>(key: K) {
        assert_eq!(K::decode(key.encode()), key);
        let coordinates: Vec<u128> = (0..K::DIMS).map(|d| key.coordinate(d)).collect();
        assert_eq!(K::from_coordinates(&coordinates), key);
    }

    #[test]
    fn codes_round_trip() {
        let samples = [0u64, 1, 2, 0xdead_beef_0123_4567, u64::MAX, 1 << 63, 0x5555_5555_5555_5555];
        for &a in &samples {
            round_trip(a as u32);
            round_trip(a);
            round_trip(u128::from(a) << 64 | 7);
            for &b in &samples {
                round_trip([a as u32, b as u32]);
                round_trip([a, b]);
                round_trip([a as u32, b as u32, 9]);
                round_trip([a, b, 0x1234]);
                round_trip([a as u32, b as u32, 1, 2]);
                round_trip([a, b, !a, !b]);
            }
        }
    }

    #[test]
    fn bits_are_interleaved_dimension_zero_first() {
        assert_eq!([1u32, 0].encode(), 0b10);
        assert_eq!([0u32, 1].encode(), 0b01);
        assert_eq!([0b11u32, 0b00].encode(), 0b1010);
        assert_eq!([1u32, 0, 1].encode(), 0b101);
        assert_eq!([1u64 << 63, 0].encode(), 1u128 << 127);
    }
}
