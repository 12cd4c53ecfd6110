//! Bursts that all weigh the same, however many instructions they have: what a thread did in one, and what they add up
//! to.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A way through a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// What a thread did in the burst that it is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    /// Ways run, and how often.
    pub passes: FxHashMap<Pass, u32>,
    /// Loops left, by header: instructions in them.
    pub inclusive: FxHashMap<u32, u64>,
    /// Calls returned from, by the block that called: instructions of what was called.
    pub called: FxHashMap<u32, u64>,
}

impl Burst {
    pub fn memory_bytes(&self) -> usize {
        (self.inclusive.capacity() + self.called.capacity()) * 17 + self.passes.capacity() * 13
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
        for (pass, n) in burst.passes.drain() {
            *self.passes.entry(pass).or_default() += f64::from(n) / insns as f64;
        }
        for (node, n) in burst.inclusive.drain() {
            *self.inclusive.entry(node).or_default() += n as f64 / insns as f64;
        }
        for (node, n) in burst.called.drain() {
            *self.called.entry(node).or_default() += n as f64 / insns as f64;
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
