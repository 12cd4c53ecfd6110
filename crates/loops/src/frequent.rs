//! Frequent loop detection (Gordon-Ross and Vahid, the baseline of paper 5 section 2): a small cache of backward branches
//! with one count each, shifted right together when one saturates.

use crate::branch::{Branch, short_backward};
use crate::error::LoopsError;
use sonde_event::{Reader, Run};
use std::collections::BTreeMap;

/// Parameters of frequent loop detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequentConfig {
    /// Entries of the cache, fully associative; 16 in the paper.
    pub entries: usize,
    /// Branches with at least this distance in bytes are not short: 256, or 1024 where it is compared with DAProf.
    pub distance: u32,
    /// Bits of a count. Paper 5 does not say; 24 by default.
    pub count_bits: u32,
}

impl Default for FrequentConfig {
    fn default() -> FrequentConfig {
        FrequentConfig { entries: 16, distance: 256, count_bits: 24 }
    }
}

/// A loop and how often it went round, relative to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrequentLoop {
    /// Pc of its backward branch.
    pub branch: u64,
    /// Bytes from the branch's target to the branch.
    pub distance: u32,
    /// Times taken, shifted right as often as a count saturated since.
    pub count: u64,
}

/// What was in the cache at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrequentProfile {
    /// Loops by their branch.
    pub loops: Vec<FrequentLoop>,
    /// Short backward branches taken.
    pub branches: u64,
    /// Loops that had to make room for others.
    pub replaced: u64,
    /// Times that all counts were shifted.
    pub shifts: u32,
    /// The count at which that happens.
    pub full: u64,
    /// Instructions executed.
    pub instructions: u64,
}

/// Detects frequent loops. Context switches do no harm here: only sums are kept.
pub struct FrequentReader {
    config: FrequentConfig,
    entries: Vec<FrequentLoop>,
    profile: FrequentProfile,
}

impl FrequentReader {
    /// A reader that has seen nothing.
    pub fn new(config: FrequentConfig) -> Result<FrequentReader, LoopsError> {
        if config.entries == 0 {
            return Err(LoopsError::TooSmall { what: "entries", value: 0, least: 1 });
        }
        if !(2..=63).contains(&config.count_bits) {
            let value = config.count_bits.to_string();
            let rule = "2 to 63 bits are possible";
            return Err(LoopsError::OutOfRange { what: "count_bits", value, rule });
        }
        let entries = Vec::with_capacity(config.entries);
        Ok(FrequentReader { config, entries, profile: FrequentProfile::default() })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        size_of::<FrequentReader>() + self.entries.capacity() * size_of::<FrequentLoop>()
    }

    fn branch(&mut self, branch: Branch) {
        self.profile.branches += 1;
        let Some(entry) = self.entries.iter_mut().find(|e| e.branch == branch.pc) else {
            return self.replace(branch);
        };
        entry.count += 1;
        if entry.count == (1 << self.config.count_bits) - 1 {
            self.profile.shifts += 1;
            self.entries.iter_mut().for_each(|e| e.count >>= 1);
        }
    }

    fn replace(&mut self, branch: Branch) {
        let new = FrequentLoop { branch: branch.pc, distance: branch.distance, count: 1 };
        if self.entries.len() < self.config.entries {
            return self.entries.push(new);
        }
        self.profile.replaced += 1;
        if let Some(least) = self.entries.iter_mut().min_by_key(|e| e.count) {
            *least = new;
        }
    }

    /// What is in the cache.
    pub fn finish(mut self) -> FrequentProfile {
        self.entries.sort_unstable_by_key(|e| e.branch);
        self.profile.loops = self.entries;
        self.profile.full = (1 << self.config.count_bits) - 1;
        self.profile
    }
}

impl Reader for FrequentReader {
    fn run(&mut self, run: &Run<'_>) {
        self.profile.instructions += run.instructions();
        if let Some(branch) = short_backward(run, self.config.distance) {
            self.branch(branch);
        }
    }
}

impl FrequentProfile {
    /// Replaces every address by what `place` gives for it, and unites loops that come to lie in the same place.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        for l in &mut self.loops {
            l.branch = place(l.branch);
        }
        self.unite(&[]);
    }

    /// Adds another run.
    pub fn merge(&mut self, other: &FrequentProfile) {
        self.unite(&other.loops);
        self.branches += other.branches;
        self.replaced += other.replaced;
        self.shifts = self.shifts.max(other.shifts);
        self.full = self.full.max(other.full);
        self.instructions += other.instructions;
    }

    fn unite(&mut self, more: &[FrequentLoop]) {
        let mut by_branch: BTreeMap<u64, FrequentLoop> = BTreeMap::new();
        for l in self.loops.iter().chain(more) {
            by_branch.entry(l.branch).or_insert(FrequentLoop { count: 0, ..*l }).count += l.count;
        }
        self.loops = by_branch.into_values().collect();
    }

    /// What must be true of any such profile.
    pub fn check(&self) -> Result<(), String> {
        if !self.loops.windows(2).all(|w| w[0].branch < w[1].branch) {
            return Err("loops are not in order of their branches".into());
        }
        let counted: u64 = self.loops.iter().map(|l| l.count).sum();
        if counted > self.branches {
            return Err(format!("{counted} branches are counted, {} were taken", self.branches));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fed(config: FrequentConfig, pcs: &[u64]) -> FrequentProfile {
        let mut reader = FrequentReader::new(config).unwrap();
        for pc in pcs {
            reader.branch(Branch { pc: *pc, distance: 8 });
        }
        reader.finish()
    }

    #[test]
    fn the_least_makes_room_and_saturation_shifts_all() {
        let config = FrequentConfig { entries: 2, count_bits: 3, ..FrequentConfig::default() };
        let profile = fed(config, &[10, 10, 10, 20, 30, 30]);
        let counts: Vec<(u64, u64)> = profile.loops.iter().map(|l| (l.branch, l.count)).collect();
        assert_eq!((counts, profile.replaced), (vec![(10, 3), (30, 2)], 1));
        // 7 is all that 3 bits hold.
        let profile = fed(config, &[10, 10, 20, 20, 20, 20, 20, 20, 20]);
        let counts: Vec<(u64, u64)> = profile.loops.iter().map(|l| (l.branch, l.count)).collect();
        assert_eq!((counts, profile.shifts), (vec![(10, 1), (20, 3)], 1));
    }

    proptest! {
        #[test]
        fn counts_never_exceed_the_truth(pcs in prop::collection::vec(0u64..40, 0..2000), bits in 2u32..8) {
            let config = FrequentConfig { count_bits: bits, ..FrequentConfig::default() };
            let profile = fed(config, &pcs);
            prop_assert!(profile.check().is_ok());
            prop_assert!(profile.loops.len() <= config.entries);
            for l in &profile.loops {
                prop_assert!(l.count < (1 << bits) - 1);
                prop_assert!(l.count <= pcs.iter().filter(|pc| **pc == l.branch).count() as u64);
            }
        }
    }
}
