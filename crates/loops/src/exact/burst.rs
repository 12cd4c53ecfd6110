//! Bursts that all weigh the same, however many instructions they have: what a thread did in one, and what they add up
//! to.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A way through a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Pass(u64);

/// Tells passes that were cut short from those that reached an exit.
const CUT_SHORT: u64 = 1 << 63;

impl Pass {
    pub fn to(exit: u32) -> Pass {
        Pass(exit.into())
    }

    pub fn cut_short(superblock: u32, insns: u16) -> Pass {
        Pass(CUT_SHORT | u64::from(superblock) << 16 | u64::from(insns))
    }
}

/// Amounts by key, noted one after the other and put together now and then: cheaper than to look each key up in a map,
/// which was a sixth of what it costs to follow loops in bursts.
#[derive(Clone, Debug)]
pub(super) struct Notes<K> {
    notes: Vec<(K, u64)>,
    /// How many are put together next.
    limit: usize,
}

/// Notes before they are put together for the first time.
const NOTES: usize = 1 << 13;

impl<K> Default for Notes<K> {
    fn default() -> Notes<K> {
        Notes { notes: Vec::new(), limit: NOTES }
    }
}

impl<K: Ord + Copy> Notes<K> {
    /// More of a key.
    #[inline]
    pub fn add(&mut self, key: K, amount: u64) {
        self.notes.push((key, amount));
        if self.notes.len() >= self.limit {
            self.put_together();
            // Bounded by the keys that there are.
            self.limit = NOTES.max(2 * self.notes.len());
        }
    }

    #[inline(never)]
    fn put_together(&mut self) {
        self.notes.sort_unstable();
        self.notes.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 += if same { next.1 } else { 0 };
            same
        });
    }

    /// Each key once, in order. Nothing is left.
    fn take(&mut self) -> impl Iterator<Item = (K, u64)> {
        self.put_together();
        self.limit = NOTES;
        self.notes.drain(..)
    }

    fn memory_bytes(&self) -> usize {
        self.notes.capacity() * size_of::<(K, u64)>()
    }
}

/// What a thread did in the burst that it is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    /// What it weighs more than others: nothing, as a rule.
    pub more: f64,
    /// Ways run, and how often.
    pub passes: Notes<Pass>,
    /// Loops left, by header: instructions in them.
    pub inclusive: Notes<u32>,
    /// Calls returned from, by the block that called: instructions of what was called.
    pub called: Notes<u32>,
}

impl Burst {
    pub fn memory_bytes(&self) -> usize {
        self.inclusive.memory_bytes() + self.called.memory_bytes() + self.passes.memory_bytes()
    }
}

/// The same of all bursts, each divided by its instructions.
#[derive(Default)]
pub(super) struct Weights {
    pub passes: FxHashMap<Pass, f64>,
    pub inclusive: FxHashMap<u32, f64>,
    pub called: FxHashMap<u32, f64>,
}

impl Weights {
    /// Takes a burst of so many instructions, and leaves it empty.
    pub fn add(&mut self, burst: &mut Burst, insns: u64) {
        let each = (1.0 + burst.more) / insns as f64;
        for (pass, n) in burst.passes.take() {
            *self.passes.entry(pass).or_default() += n as f64 * each;
        }
        for (node, n) in burst.inclusive.take() {
            *self.inclusive.entry(node).or_default() += n as f64 * each;
        }
        for (node, n) in burst.called.take() {
            *self.called.entry(node).or_default() += n as f64 * each;
        }
    }

    pub fn memory_bytes(&self) -> usize {
        (self.passes.capacity() + self.inclusive.capacity() + self.called.capacity()) * 17
    }
}

/// The weight of one of them.
pub(super) fn of<K: Hash + Eq>(weights: &FxHashMap<K, f64>, key: K) -> f64 {
    weights.get(&key).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn notes_add_up_in_bounded_memory() {
        let (mut notes, mut exact) = (Notes::default(), BTreeMap::new());
        for i in 0..200_000u32 {
            let (key, amount) = (i.wrapping_mul(i) % 1009, u64::from(i % 7));
            notes.add(key, amount);
            *exact.entry(key).or_insert(0) += amount;
        }
        assert!(notes.notes.capacity() <= 2 * NOTES);
        assert_eq!(notes.take().collect::<BTreeMap<u32, u64>>(), exact);
        assert_eq!(notes.take().count(), 0);
    }
}
