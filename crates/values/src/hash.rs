//! Hashes of pcs: for the two pc filters, which need several independent ones, and for tables.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How many hash functions the filters can choose from.
pub const FUNCTIONS: u8 = 4;

/// Odd, and unlike each other; the first is 2^64 / golden ratio.
const FACTORS: [u64; FUNCTIONS as usize] =
    [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];

/// The hash of a pc by one of the functions (their number wraps around).
#[inline]
pub fn hash(pc: u64, function: u8) -> u32 {
    let product = pc.wrapping_mul(FACTORS[(function % FUNCTIONS) as usize]);
    ((product ^ (product >> 29)).wrapping_mul(FACTORS[0]) >> 32) as u32
}

/// Hashes one word by multiplication. Pcs are not chosen by an enemy.
#[derive(Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(FACTORS[0]);
        self.0 = product ^ (product >> 32);
    }
}

/// A map by pc.
pub type PcMap<V> = HashMap<u64, V, BuildHasherDefault<WordHasher>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_pcs_spread_over_the_low_bits() {
        for function in 0..FUNCTIONS {
            let mut counts = [0u32; 16];
            (0..16_000u64).for_each(|i| counts[(hash(0x40_1000 + 4 * i, function) & 15) as usize] += 1);
            assert!(counts.iter().all(|c| (800..1200).contains(c)), "{function}: {counts:?}");
        }
    }

    #[test]
    fn functions_differ() {
        let same = (0..1000u64).filter(|pc| hash(*pc, 0) & 0xff == hash(*pc, 1) & 0xff).count();
        assert!(same < 20, "{same} of 1000 alike");
    }
}
