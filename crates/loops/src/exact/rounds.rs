//! What is counted per block while the program runs: how often it was entered anew, and with how many passes.

use super::claims::{Claim, Claims};
use super::profile::{BUCKETS, bucket};
use crate::natural::NONE;
use rustc_hash::FxHashMap;

/// Counts of one block. One cache line: every block that is left touches one.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Tally {
    /// Where the last pass went on, for the two most usual ways.
    after: [u32; 2],
    /// Executions of a single pass, by that.
    single: [u64; 2],
    /// Passes of executions whose begin or end was not seen, and how many of those there were.
    pub cut_passes: u64,
    /// Visits in activations that are not followed.
    pub unplaced: u64,
    pub cut_starts: u32,
    pub cut_ends: u32,
    /// Place of the executions of several passes, or none yet.
    spread: u32,
    /// Number of the loop that it heads, as far as is known.
    pub heads: u32,
    /// Whether it has one way to go on.
    pub straight: bool,
    /// Whether it called while it was on the way of an outer activation.
    pub recursive: bool,
}

impl Tally {
    fn new(straight: bool) -> Tally {
        Tally {
            after: [NONE; 2],
            single: [0; 2],
            cut_passes: 0,
            unplaced: 0,
            cut_starts: 0,
            cut_ends: 0,
            spread: NONE,
            heads: NONE,
            straight,
            recursive: false,
        }
    }

    /// Counts executions that are not known to be whole.
    pub fn add_cut(&mut self, starts: u64, ends: u64, passes: u64) {
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        self.cut_starts = self.cut_starts.saturating_add(short(starts));
        self.cut_ends = self.cut_ends.saturating_add(short(ends));
        self.cut_passes += passes;
    }
}

/// Executions by their passes; whether a last pass that is only a test counts is known later, so both are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Passes {
    pub executions: u64,
    pub total: u64,
    pub least: u64,
    pub most: u64,
    pub buckets: [u64; BUCKETS],
    /// The same with one pass less each.
    pub less: [u64; BUCKETS],
}

impl Passes {
    pub fn of(passes: u64, executions: u64) -> Passes {
        let mut new = Passes::default();
        new.add(passes, executions);
        new
    }

    fn add(&mut self, passes: u64, executions: u64) {
        self.least = if self.executions == 0 { passes } else { self.least.min(passes) };
        self.most = self.most.max(passes);
        self.executions += executions;
        self.total += passes * executions;
        self.buckets[bucket(passes)] += executions;
        self.less[bucket(passes.saturating_sub(1))] += executions;
    }
}

/// Counts of all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    pub of: Vec<Tally>,
    /// Instructions of the activations that each block called.
    pub called: Vec<u64>,
    /// Instructions from entering to leaving the loop that a block heads, callees included, outermost activation only.
    pub inclusive: Vec<u64>,
    /// Executions that later code may show to be parts of others.
    pub claims: Claims,
    /// Executions of several passes, with the block behind the last.
    spreads: Vec<(u32, Passes)>,
    /// More ways to go on than a tally has room for: executions of a single pass, and of several.
    more_single: FxHashMap<(u32, u32), u64>,
    more_spread: FxHashMap<(u32, u32), u32>,
}

impl Tallies {
    pub fn new(max_claims: usize) -> Tallies {
        Tallies { claims: Claims::new(max_claims), ..Tallies::default() }
    }

    /// Counts an execution that depends on what is known of the code.
    pub fn claim(&mut self, claim: Claim) {
        self.claims.add(claim, &mut self.of);
    }

    /// Counts an execution: `after` is the block behind the straight line that the header begins, in the last pass.
    #[inline]
    pub fn note(&mut self, node: u32, after: u32, passes: u64) {
        let tally = &mut self.of[node as usize];
        if passes > 1 {
            return self.note_rounds(node, after, passes);
        }
        if tally.after[0] == after && tally.single[0] > 0 {
            tally.single[0] += 1;
        } else if tally.after[1] == after && tally.single[1] > 0 {
            tally.single[1] += 1;
        } else {
            self.note_new(node, after, 1);
        }
    }

    #[cold]
    fn note_new(&mut self, node: u32, after: u32, executions: u64) {
        let tally = &mut self.of[node as usize];
        match tally.single.iter().position(|n| *n == 0) {
            Some(free) => {
                tally.after[free] = after;
                tally.single[free] = executions;
            }
            None => *self.more_single.entry((node, after)).or_default() += executions,
        }
    }

    fn note_rounds(&mut self, node: u32, after: u32, passes: u64) {
        let first = self.of[node as usize].spread;
        let place = if first == NONE {
            self.of[node as usize].spread = self.spreads.len() as u32;
            self.spreads.push((after, Passes::default()));
            self.spreads.len() as u32 - 1
        } else if self.spreads[first as usize].0 == after {
            first
        } else {
            let spreads = &mut self.spreads;
            *self.more_spread.entry((node, after)).or_insert_with(|| {
                spreads.push((after, Passes::default()));
                spreads.len() as u32 - 1
            })
        };
        self.spreads[place as usize].1.add(passes, 1);
    }

    /// A block was cut: whoever ran the lower part ran the upper, and went on as the whole did. Rounds of the lower
    /// part cannot be told apart any more for the upper one; they are what is missing from its visits, and whole. What
    /// is not known to be whole below is not above either.
    pub fn split(&mut self, lower: u32, straight: bool) {
        let mut upper = Tally::new(straight);
        let old = &mut self.of[lower as usize];
        upper.after = old.after;
        upper.single = old.single;
        upper.unplaced = old.unplaced;
        let passes = old.cut_passes + self.claims.passes_of(lower);
        upper.add_cut(old.cut_starts.into(), old.cut_ends.into(), passes);
        old.straight = true;
        upper.recursive = std::mem::take(&mut old.recursive);
        self.of.push(upper);
        self.called.push(0);
        self.inclusive.push(0);
        let new = self.called.len() - 1;
        self.called.swap(lower as usize, new);
    }

    /// A block was found.
    pub fn add(&mut self, straight: bool) {
        self.of.push(Tally::new(straight));
        self.called.push(0);
        self.inclusive.push(0);
    }

    /// All executions of each block: (block, block behind the last pass, passes).
    pub fn executions(&self) -> Vec<(u32, u32, Passes)> {
        let mut all = Vec::new();
        for (node, tally) in self.of.iter().enumerate() {
            for (after, n) in tally.after.iter().zip(tally.single).filter(|(_, n)| *n > 0) {
                all.push((node as u32, *after, Passes::of(1, n)));
            }
            if let Some((after, passes)) = self.spreads.get(tally.spread as usize) {
                all.push((node as u32, *after, passes.clone()));
            }
        }
        all.extend(self.more_single.iter().map(|((node, after), n)| (*node, *after, Passes::of(1, *n))));
        let more = |((node, after), place): (&(u32, u32), &u32)| {
            (*node, *after, self.spreads[*place as usize].1.clone())
        };
        all.extend(self.more_spread.iter().map(more));
        all
    }

    pub fn memory_bytes(&self) -> usize {
        self.of.capacity() * (size_of::<Tally>() + 16)
            + self.claims.memory_bytes()
            + self.spreads.capacity() * size_of::<(u32, Passes)>()
            + (self.more_single.capacity() + self.more_spread.capacity()) * 24
    }
}
