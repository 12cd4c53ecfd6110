//! Streams that the tests feed to the trees, made from a seed: the same stream every time, no clock, no global state.

use proptest::test_runner::Config as ProptestConfig;
use sonde_rap::Key;

/// So many cases; a failing one is printed, not written into the source tree.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// SplitMix64: enough randomness for test streams, and reproducible everywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The shapes of streams that the bounds are checked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every key as likely as any other.
    Random,
    /// A few keys take most of the events, with a long tail.
    Zipf,
    /// Equal weights on keys far apart: the stream that breaks trees without path compression.
    Scattered,
    /// Program counters: nested loops over a few functions.
    Pc,
    /// Load values: many zeros, small numbers, pointers, noise.
    Value,
    /// The same key all the time.
    OneKey,
    /// Each new event goes where the tree is coarsest: halves of the most recently split range.
    Adversarial,
    /// A phase change: hot keys of one half of the stream never come back.
    Phases,
}

pub const SHAPES: [Shape; 8] = [
    Shape::Random,
    Shape::Zipf,
    Shape::Scattered,
    Shape::Pc,
    Shape::Value,
    Shape::OneKey,
    Shape::Adversarial,
    Shape::Phases,
];

/// `len` keys of a shape, as 64-bit numbers.
pub fn stream(shape: Shape, len: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng(seed);
    let scattered: Vec<u64> = (0..1400).map(|_| rng.next()).collect();
    (0..len)
        .map(|i| match shape {
            Shape::Random => rng.next(),
            Shape::Zipf => zipf(&mut rng, 1 << 16),
            Shape::Scattered => scattered[i % scattered.len()],
            Shape::Pc => pc(&mut rng, i),
            Shape::Value => value(&mut rng),
            Shape::OneKey => 0xDEAD_BEEF_0000_0001,
            Shape::Adversarial => adversarial(i, len),
            Shape::Phases => {
                let half = (i * 2 / len.max(1)) as u64;
                (half << 63) | (zipf(&mut rng, 1 << 10) >> 1)
            }
        })
        .collect()
}

/// A 64-bit number as a key of any type: small numbers stay small, all coordinates depend on it.
pub fn key<K: Key>(number: u64) -> K {
    let wide = u128::from(number);
    let first = match K::DIM_BITS {
        32 => wide ^ wide >> 32,
        128 => wide << 64 | wide.rotate_left(17) & 0xffff,
        _ => wide,
    };
    K::from_coordinates(&[first, u128::from(number.rotate_left(24)), wide >> 7, u128::from(!number)])
}

/// `len` weights: mostly 1, some large ones.
pub fn weights(len: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng(seed ^ 0x5EED);
    (0..len)
        .map(|_| match rng.below(10) {
            0..6 => 1,
            6..9 => 1 + rng.below(100),
            _ => {
                let magnitude = rng.below(20);
                1 + rng.below(1 << magnitude)
            }
        })
        .collect()
}

/// Zipf with exponent 1 by inversion: key number `k` has probability about `1/k`, spread over the range by hashing.
fn zipf(rng: &mut Rng, keys: u64) -> u64 {
    let k = (keys as f64).powf(rng.unit()) as u64;
    k.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Basic-block addresses: 8 functions, each a loop over its blocks; the loop of function 0 is the hottest.
fn pc(rng: &mut Rng, i: usize) -> u64 {
    let phase = (i / 512) as u64;
    let function = [0, 1, 0, 2, 0, 3, 1, 0, 4, 0, 5, 6, 0, 7, 1, 2][(phase % 16) as usize];
    let blocks = 4 + function * 3;
    let block = if rng.below(50) == 0 { rng.below(400) } else { i as u64 % blocks };
    0x40_0000 + function * 0x2_0000 + block * 0x10
}

/// Load values as section 5.1 describes them: one value with a large share, small numbers, pointers, a tail.
fn value(rng: &mut Rng) -> u64 {
    match rng.below(100) {
        0..30 => 0,
        30..50 => rng.below(16),
        50..70 => rng.below(255),
        70..90 => 0x7FFF_F000_0000 + (rng.below(1 << 12) << 3),
        _ => rng.next() >> rng.below(64),
    }
}

/// Walks down the bits: long runs at ever narrower ranges, then back up, so that the whole chain above a key fills.
fn adversarial(i: usize, len: usize) -> u64 {
    let step = (i * 64 / len.max(1)) as u32 % 64;
    let low = (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let keep = u64::MAX.checked_shl(64 - step).unwrap_or(0);
    (0xA5A5_5A5A_0FF0_F00F & keep) | (low & !keep)
}
