//! Random numbers as the co-processor makes them: a linear feedback shift register, seeded by the caller so that a run
//! can be repeated.

/// A 32-bit register of maximal period, polynomial x^32 + x^30 + x^26 + x^25 + 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lfsr(u32);

const TAPS: u32 = 0xa300_0000;

impl Lfsr {
    /// Starts at a seed. 0, from which a register would never get away, stands for another number.
    pub fn new(seed: u32) -> Lfsr {
        Lfsr(if seed == 0 { 0x5eed_5eed } else { seed })
    }

    fn step(&mut self) {
        let out = self.0 & 1;
        self.0 = (self.0 >> 1) ^ (TAPS & out.wrapping_neg());
    }

    /// The next `count` (at most 32) bits; none of them is used twice.
    pub fn bits(&mut self, count: u32) -> u32 {
        let mut all = 0;
        for _ in 0..count.min(32) {
            all = all << 1 | (self.0 & 1);
            self.step();
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_steps_by_hand() {
        let mut lfsr = Lfsr::new(1);
        // The one goes out and leaves the taps; their lowest bit is bit 24, so 24 zeros follow.
        assert_eq!(lfsr.bits(1), 1);
        assert_eq!(lfsr.0, TAPS);
        assert_eq!(lfsr.bits(24), 0);
        assert_eq!(lfsr.bits(2), 0b11);
    }

    #[test]
    fn numbers_below_16_are_equally_frequent_and_seeds_differ() {
        let mut counts = [0u32; 16];
        let mut lfsr = Lfsr::new(12345);
        for _ in 0..160_000 {
            counts[lfsr.bits(4) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert_ne!(Lfsr::new(1).bits(32), Lfsr::new(2).bits(32));
        assert_ne!(Lfsr::new(0).bits(32), 0);
    }
}
