//! Small repeatable randomness: a failing run is reproduced from the seed it printed.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose whole future follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for one named part of the work, independent of the order in which parts run.
    pub fn named(seed: u64, name: &str) -> Self {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        Self(seed ^ hash)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// One of `items`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// True once in `n` on average.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number between `low` and `high`, every power of two equally likely: small ones are as interesting as large ones.
    pub fn log_uniform(&mut self, low: u64, high: u64) -> u64 {
        let share = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (low_log, high_log) = ((low as f64).ln(), (high as f64).ln());
        (low_log + share * (high_log - low_log)).exp().round().clamp(low as f64, high as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_uniform_stays_inside_and_reaches_both_halves() {
        let mut random = Random::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| random.log_uniform(1, 10_000)).collect();
        assert!(drawn.iter().all(|&x| (1..=10_000).contains(&x)));
        let small = drawn.iter().filter(|&&x| x <= 100).count();
        assert!((400..600).contains(&small), "{small} of 1000 at or below 100");
    }

    #[test]
    fn names_give_different_streams_and_seeds_repeat() {
        assert_ne!(Random::named(1, "a").bits(), Random::named(1, "b").bits());
        assert_eq!(Random::named(7, "a").bits(), Random::named(7, "a").bits());
    }
}
