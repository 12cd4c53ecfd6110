//! The types that a line can become: a scalar, or one scalar per dimension.

/// The most dimensions a key may have.
pub(crate) const MAX_DIMS: usize = 3;

/// One dimension of a key.
pub trait Scalar: Copy + Default + PartialEq + std::fmt::Debug {
    /// Width.
    const BITS: u32;
    /// The value, if it fits.
    fn from_u128(value: u128) -> Option<Self>;
    /// The value, if it fits.
    fn from_u64(value: u64) -> Option<Self>;
}

macro_rules! scalar {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            const BITS: u32 = <$t>::BITS;
            #[inline]
            fn from_u128(value: u128) -> Option<Self> {
                <$t>::try_from(value).ok()
            }
            #[inline]
            fn from_u64(value: u64) -> Option<Self> {
                <$t>::try_from(value).ok()
            }
        }
    )*};
}
scalar!(u32 u64 u128);

/// What a line becomes.
pub trait NumberKey: Copy + PartialEq + std::fmt::Debug {
    /// The type of one dimension.
    type Scalar: Scalar;
    /// Number of dimensions, at most 3.
    const DIMS: usize;
    /// The key whose dimensions are all `scalar`; for one dimension, the scalar itself.
    fn splat(scalar: Self::Scalar) -> Self;
    /// Replaces one dimension.
    fn set(&mut self, dimension: usize, scalar: Self::Scalar);
}

macro_rules! flat_key {
    ($($t:ty)*) => {$(
        impl NumberKey for $t {
            type Scalar = $t;
            const DIMS: usize = 1;
            #[inline]
            fn splat(scalar: $t) -> Self {
                scalar
            }
            #[inline]
            fn set(&mut self, _dimension: usize, scalar: $t) {
                *self = scalar;
            }
        }
    )*};
}
flat_key!(u32 u64 u128);

impl<T: Scalar, const N: usize> NumberKey for [T; N] {
    type Scalar = T;
    const DIMS: usize = N;
    #[inline]
    fn splat(scalar: T) -> Self {
        [scalar; N]
    }
    #[inline]
    fn set(&mut self, dimension: usize, scalar: T) {
        self[dimension] = scalar;
    }
}
