//! The integers that hold an interleaved key: the few operations that the tree needs, for 64, 128 and 256 bits.
//!
//! Why not `num-traits` or a big-integer crate: the tree needs eight operations, and shifts by the full width must give 0.

use std::fmt::Debug;
use std::hash::Hash;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
    impl Sealed for super::U256 {}
}

/// An unsigned integer wide enough for all bits of a key. Sealed: `u64`, `u128` and [`U256`].
pub trait Code: Copy + Ord + Hash + Debug + Default + Send + Sync + sealed::Sealed + 'static {
    /// Width in bits.
    const WIDTH: u32;
    /// The number zero.
    const ZERO: Self;
    /// Shift right; 0 when `by` is the width or more.
    fn shr(self, by: u32) -> Self;
    /// Shift right by less than the width; what a larger shift gives is not specified.
    fn shr_within(self, by: u32) -> Self;
    /// Shift left; 0 when `by` is the width or more.
    fn shl(self, by: u32) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// The number `low`.
    fn from_low(low: u64) -> Self;
    /// The low 64 bits.
    fn low(self) -> u64;
    /// Position of the highest one bit plus one; 0 for zero.
    fn bit_length(self) -> u32;
    /// `n` one bits at the low end (all ones when `n` is the width or more).
    fn ones(n: u32) -> Self;
    /// The bits of `x`, with `every - 1` zero bits between each two.
    fn spread(x: u64, every: u32) -> Self;
    /// The inverse of [`Code::spread`]: bits 0, `every`, 2 `every`, ... packed together, at most 64 of them.
    fn gather(self, every: u32) -> u64;
}

macro_rules! native_code {
    ($int:ty) => {
        impl Code for $int {
            const WIDTH: u32 = <$int>::BITS;
            const ZERO: Self = 0;
            #[inline(always)]
            fn shr(self, by: u32) -> Self {
                self.checked_shr(by).unwrap_or(0)
            }
            #[inline(always)]
            fn shr_within(self, by: u32) -> Self {
                self.wrapping_shr(by)
            }
            #[inline(always)]
            fn shl(self, by: u32) -> Self {
                self.checked_shl(by).unwrap_or(0)
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            #[inline(always)]
            fn from_low(low: u64) -> Self {
                low.into()
            }
            #[inline(always)]
            fn low(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn bit_length(self) -> u32 {
                Self::WIDTH - self.leading_zeros()
            }
            #[inline(always)]
            fn ones(n: u32) -> Self {
                if n >= Self::WIDTH { Self::MAX } else { (1 << n) - 1 }
            }
            #[inline]
            fn spread(x: u64, every: u32) -> Self {
                if every == 2 { spread_pairs(x) as $int } else { spread_slowly(x, every) }
            }
            #[inline]
            fn gather(self, every: u32) -> u64 {
                if every == 2 { gather_pairs(self.into()) } else { gather_slowly(self, every) }
            }
        }
    };
}

native_code!(u64);
native_code!(u128);

/// Each bit of `x` followed (below) by a zero bit: the classic halving of distances, on 128 bits.
#[inline]
fn spread_pairs(x: u64) -> u128 {
    u128::from(spread_half(x as u32)) | u128::from(spread_half((x >> 32) as u32)) << 64
}

#[inline]
fn spread_half(x: u32) -> u64 {
    let mut x = u64::from(x);
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

#[inline]
fn gather_pairs(code: u128) -> u64 {
    u64::from(gather_half(code as u64)) | u64::from(gather_half((code >> 64) as u64)) << 32
}

#[inline]
fn gather_half(x: u64) -> u32 {
    let mut x = x & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

fn spread_slowly<C: Code>(mut x: u64, every: u32) -> C {
    let mut code = C::ZERO;
    while x != 0 {
        let bit = x.trailing_zeros();
        code = code.or(C::ones(1).shl(bit * every));
        x &= x - 1;
    }
    code
}

fn gather_slowly<C: Code>(code: C, every: u32) -> u64 {
    (0..C::WIDTH.div_ceil(every).min(64)).map(|bit| (code.shr(bit * every).low() & 1) << bit).sum()
}

/// A 256-bit unsigned integer, for three and four 64-bit dimensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct U256 {
    /// The high half (first, so that the derived order is the numeric one).
    pub high: u128,
    /// The low half.
    pub low: u128,
}

impl Code for U256 {
    const WIDTH: u32 = 256;
    const ZERO: Self = U256 { high: 0, low: 0 };
    #[inline]
    fn shr(self, by: u32) -> Self {
        if by >= 128 {
            return U256 { high: 0, low: Code::shr(self.high, by - 128) };
        }
        U256 { high: self.high >> by, low: self.low >> by | Code::shl(self.high, 128 - by) }
    }
    #[inline]
    fn shr_within(self, by: u32) -> Self {
        self.shr(by)
    }
    #[inline]
    fn shl(self, by: u32) -> Self {
        if by >= 128 {
            return U256 { high: Code::shl(self.low, by - 128), low: 0 };
        }
        U256 { high: self.high << by | Code::shr(self.low, 128 - by), low: self.low << by }
    }
    #[inline]
    fn or(self, other: Self) -> Self {
        U256 { high: self.high | other.high, low: self.low | other.low }
    }
    #[inline]
    fn xor(self, other: Self) -> Self {
        U256 { high: self.high ^ other.high, low: self.low ^ other.low }
    }
    #[inline]
    fn from_low(low: u64) -> Self {
        U256 { high: 0, low: low.into() }
    }
    #[inline]
    fn low(self) -> u64 {
        self.low as u64
    }
    #[inline]
    fn bit_length(self) -> u32 {
        if self.high != 0 { 128 + self.high.bit_length() } else { self.low.bit_length() }
    }
    #[inline]
    fn ones(n: u32) -> Self {
        U256 { high: <u128 as Code>::ones(n.saturating_sub(128)), low: <u128 as Code>::ones(n) }
    }
    fn spread(x: u64, every: u32) -> Self {
        spread_slowly(x, every)
    }
    fn gather(self, every: u32) -> u64 {
        gather_slowly(self, every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_shifts_give_zero() {
        assert_eq!(Code::shr(u64::MAX, 64), 0);
        assert_eq!(Code::shl(u128::MAX, 128), 0);
        assert_eq!(U256::ones(256).shr(256), U256::ZERO);
        assert_eq!(U256::ones(256).shl(300), U256::ZERO);
    }

    #[test]
    fn wide_shifts_agree_with_bit_positions() {
        for at in [0, 1, 63, 64, 127, 128, 129, 200, 255] {
            let one = U256::ones(1).shl(at);
            assert_eq!(one.bit_length(), at + 1);
            assert_eq!(one.shr(at), U256::ones(1));
            assert_eq!(U256::ones(at).bit_length(), at);
        }
        assert_eq!(U256::ones(256), U256 { high: u128::MAX, low: u128::MAX });
        assert_eq!(U256::ones(0), U256::ZERO);
    }

    #[test]
    fn fast_and_slow_spreads_agree() {
        for x in [0, 1, 0xffff_ffff, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(<u128 as Code>::spread(x, 2), spread_slowly::<u128>(x, 2));
            assert_eq!(<u128 as Code>::spread(x, 2).gather(2), x);
            assert_eq!(gather_slowly(<u128 as Code>::spread(x, 2), 2), x);
        }
    }
}
