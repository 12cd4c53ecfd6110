//! Where the time of bursts goes: a burst's time belongs to the instruction that it began at, and so to the loops around
//! that instruction and around the calls that led there. And what bursts saw of each block, for iterations.

use super::notes::Notes;
use super::seen::Seen;
use crate::graph::Graph;
use crate::natural::{Forest, NONE};
use rustc_hash::FxHashMap;

/// Callers of where a burst began that are kept, at most.
const CALLERS: usize = 64;
/// Beginnings with their callers that are kept apart, at most; beyond, only the instruction is.
const MOST: usize = 1 << 16;

/// What is known of the beginning of the burst that a thread is in.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    /// What it weighs more than others: nothing, as a rule.
    more: f64,
    /// The instruction that it began at, then where its callers go on, as far as the thread returned to them. Empty if the
    /// time is not that of any code.
    chain: Vec<u64>,
    /// Passes through blocks in executions that are over, or the burst is.
    rounds: Notes<u32>,
    /// How often such an execution was seen to begin, and to end.
    ends: Notes<u32>,
    /// The two above are counted in as many instructions of each burst, and this one has had them.
    pub is_counted: bool,
}

impl Burst {
    /// A burst begins.
    pub fn begin(&mut self, pc: Option<u64>) {
        self.more = 0.0;
        self.chain.clear();
        self.chain.extend(pc);
    }

    /// It weighs so much more than others.
    pub fn weigh(&mut self, more: f64) {
        self.more = more;
    }

    /// The thread returned to a caller from before the burst.
    pub fn returned(&mut self, pc: u64) {
        if !self.chain.is_empty() && self.chain.len() <= CALLERS {
            self.chain.push(pc);
        }
    }

    /// Passes through a block were seen, with so many of the begin and the end.
    #[inline]
    pub fn see(&mut self, node: u32, passes: u64, ends: u64) {
        if self.is_counted {
            return;
        }
        self.rounds.add(node, passes);
        if ends > 0 {
            self.ends.add(node, ends);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.chain.capacity() * 8 + self.rounds.memory_bytes() + self.ends.memory_bytes()
    }
}

/// The beginnings of all bursts.
#[derive(Default)]
pub(super) struct Samples {
    chains: FxHashMap<Box<[u64]>, f64>,
    /// Instructions of all chains.
    length: usize,
    /// What bursts saw, by block.
    seen: Vec<Seen>,
}

impl Samples {
    /// A burst is over.
    pub fn add(&mut self, burst: &mut Burst) {
        self.add_seen(burst);
        burst.is_counted = false;
        let (weight, chain) = (1.0 + burst.more, &burst.chain[..]);
        let Some(start) = chain.first() else { return };
        let chain = if self.chains.len() < MOST { chain } else { std::slice::from_ref(start) };
        match self.chains.get_mut(chain) {
            Some(sum) => *sum += weight,
            None => {
                self.length += chain.len();
                self.chains.insert(chain.into(), weight);
            }
        }
        burst.chain.clear();
    }

    pub fn memory_bytes(&self) -> usize {
        self.chains.capacity() * 25 + self.length * 8 + self.seen.capacity() * size_of::<Seen>()
    }

    fn add_seen(&mut self, burst: &mut Burst) {
        let mut ends = burst.ends.take().peekable();
        let mut rounds = burst.rounds.take().peekable();
        while let Some(node) = [rounds.peek(), ends.peek()].into_iter().flatten().map(|note| note.0).min() {
            let passes = rounds.next_if(|note| note.0 == node).map_or(0, |note| note.1);
            let ends = ends.next_if(|note| note.0 == node).map_or(0, |note| note.1);
            if self.seen.len() <= node as usize {
                self.seen.resize(node as usize + 1, Seen::default());
            }
            self.seen[node as usize].add(passes, ends);
        }
    }

    /// What bursts saw of a block.
    pub fn seen(&self, node: u32) -> Seen {
        self.seen.get(node as usize).copied().unwrap_or_default()
    }

    /// A block was cut in two: both halves were run.
    pub fn split(&mut self, lower: u32, upper: u32) {
        if let Some(seen) = self.seen.get(lower as usize).copied() {
            self.seen.resize(self.seen.len().max(upper as usize + 1), Seen::default());
            self.seen[upper as usize] = seen;
        }
    }

    /// The weight of all.
    pub fn weight(&self) -> f64 {
        self.in_order().map(|(_, weight)| weight).sum()
    }

    /// Sums of floating-point numbers depend on the order.
    fn in_order(&self) -> impl Iterator<Item = (&[u64], f64)> {
        let mut all: Vec<(&[u64], f64)> =
            self.chains.iter().map(|(chain, weight)| (&chain[..], *weight)).collect();
        all.sort_unstable_by_key(|(chain, _)| *chain);
        all.into_iter()
    }

    /// For each loop its own weight, that of beginnings in no loop within it, and what is in it, loops within and calls
    /// included. A loop that calls itself counts once.
    pub fn by_loop(&self, graph: &Graph, forest: &Forest) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); forest.loops.len()];
        for (chain, weight) in self.in_order() {
            let around = |pc: &u64| graph.find(*pc).and_then(|node| forest.inner.get(node as usize)).copied();
            if let Some(own) = around(&chain[0]).and_then(|id| sums.get_mut(id as usize)) {
                own.0 += weight;
            }
            let mut counted: Vec<u32> = Vec::new();
            for mut id in chain.iter().filter_map(around) {
                while let Some(l) = forest.loops.get(id as usize).filter(|_| id != NONE) {
                    if counted.contains(&id) {
                        break;
                    }
                    counted.push(id);
                    sums[id as usize].1 += weight;
                    id = l.parent;
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_that_began_alike_are_added_up() {
        let (mut samples, mut burst) = (Samples::default(), Burst::default());
        for (pc, caller, more) in
            [(Some(7), 100, 0.0), (Some(7), 100, 1.5), (Some(7), 101, 0.0), (None, 100, 0.0)]
        {
            burst.begin(pc);
            burst.weigh(more);
            burst.returned(caller);
            samples.add(&mut burst);
            // What is over is counted once.
            samples.add(&mut burst);
        }
        let all: Vec<_> = samples.in_order().map(|(chain, weight)| (chain.to_vec(), weight)).collect();
        assert_eq!(all, [(vec![7, 100], 3.5), (vec![7, 101], 1.0)]);
        assert_eq!(samples.weight(), 4.5);
    }
}
