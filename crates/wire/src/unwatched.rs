//! The table of loads that need not be recorded: a bit per hash of a pc, written by Sonde while the program runs.
//!
//! It is the second pc filter of Zilles and Sohi 2001 (section 3.2), at the source. A *generation* in the control page
//! tells that it changed. Nobody waits for anybody: who reads while it is written sees some old and some new bits, acts
//! on them, and looks at everything again when the generation changes, which is after the last bit was written. That is
//! enough because each superblock is published with what was decided for it.
//!
//! Rejected: a list of pcs, which has to be searched for each load that is translated, and has no fixed size.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Log2 of the bits of the table.
pub const LOG2_BITS: u32 = 20;
/// Words of the table.
pub const WORDS: usize = 1 << (LOG2_BITS - 6);
/// Bytes of the table.
pub const BYTES: u64 = 8 * WORDS as u64;

/// How many hash functions there are to choose from.
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

/// The bit of a pc in a table of `words` words, a power of two: its word, and the bit in it.
#[inline]
pub fn place(pc: u64, function: u8, words: usize) -> (usize, u64) {
    let at = hash(pc, function) as usize & (words * 64).wrapping_sub(1);
    (at / 64, 1 << (at % 64))
}

/// Whether the load at a pc is not wanted. A table that is not there wants all.
#[inline]
pub fn is_unwatched(table: &[AtomicU64], function: u8, pc: u64) -> bool {
    let (word, bit) = place(pc, function, table.len());
    table.get(word).is_some_and(|w| w.load(Relaxed) & bit != 0)
}

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

    #[test]
    fn a_bit_is_of_its_pc_and_its_function() {
        let table = [const { AtomicU64::new(0) }; 64];
        let (word, bit) = place(0x40_1234, 2, table.len());
        table[word].fetch_or(bit, Relaxed);
        assert!(is_unwatched(&table, 2, 0x40_1234) && !is_unwatched(&table, 1, 0x40_1234));
        let others = (0..1000).filter(|pc| is_unwatched(&table, 2, *pc)).count();
        assert!(others < 5, "{others}");
        assert!(!is_unwatched(&[], 2, 0x40_1234));
    }
}
