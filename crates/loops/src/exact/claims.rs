//! Executions that seem to be whole as far as code was known when they were left, kept apart until all of it is.
//!
//! A burst that begins in the middle of a function knows only of loops seen so far. If it lies in one that was not, the
//! rounds of that look like executions of their own. The same goes for the block that a burst ends in: it may lie in a
//! loop that it seemed to have left. So both are kept with what they depend on, and judged by the loops of the whole run.

use super::rounds::Tally;
use crate::graph::Graph;
use crate::natural::{Forest, NONE};
use rustc_hash::{FxHashMap, FxHashSet};

/// Executions of a block, and what they depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Claim {
    pub node: u32,
    /// The block behind the last pass, as for [`super::rounds::Tallies::note`].
    pub after: u32,
    /// Number of the opening that the activation began with, [`NONE`] if at the function's entry.
    pub opening: u32,
    /// The block that recording ended in if that ended them, else [`NONE`].
    pub last: u32,
    pub passes: u64,
}

/// Where recording began in the middle, and the headers that were put on the way there.
#[derive(Clone, Debug)]
struct Opening {
    pc: u64,
    around: Vec<u32>,
    activations: u64,
    /// Whether claims of it were given up.
    gaps: bool,
}

/// All claims.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    limit: usize,
    /// New claims find no room.
    full: bool,
    executions: FxHashMap<Claim, u64>,
    /// Passes in all claims of a block.
    passes: FxHashMap<u32, u64>,
    openings: Vec<Opening>,
    by_pc: FxHashMap<u64, u32>,
}

/// What a claim turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    Whole,
    /// Rounds of executions that began before recording; at most this many of those.
    Began(u64),
    /// Was not over when recording ended.
    Open,
}

impl Claims {
    pub fn new(limit: usize) -> Claims {
        Claims { limit, ..Claims::default() }
    }

    /// Recording begins at `pc`, with these headers on the way. None if there is no room.
    pub fn open(&mut self, pc: u64, around: &[u32]) -> Option<u32> {
        let known = self.by_pc.get(&pc).copied().filter(|i| self.openings[*i as usize].around == around);
        if known.is_none() && self.openings.len() >= self.limit {
            return None;
        }
        let index = known.unwrap_or_else(|| {
            self.openings.push(Opening { pc, around: around.to_vec(), activations: 0, gaps: false });
            self.by_pc.insert(pc, self.openings.len() as u32 - 1);
            self.openings.len() as u32 - 1
        });
        self.openings[index as usize].activations += 1;
        Some(index)
    }

    /// Adds an execution.
    pub fn add(&mut self, claim: Claim, tallies: &mut [Tally]) {
        if let Some(n) = self.executions.get_mut(&claim) {
            *n += 1;
        } else {
            if self.executions.len() >= self.limit && !self.full {
                self.prune(tallies);
            }
            if self.full {
                return self.give_up(&claim, 1, tallies);
            }
            self.executions.insert(claim, 1);
        }
        *self.passes.entry(claim.node).or_default() += claim.passes;
    }

    /// Makes room: most blocks head no loop.
    #[cold]
    fn prune(&mut self, tallies: &mut [Tally]) {
        let plain = |claim: &Claim| tallies[claim.node as usize].heads == NONE;
        let gone: Vec<(Claim, u64)> =
            self.executions.iter().filter(|(c, _)| plain(c)).map(|(c, n)| (*c, *n)).collect();
        for (claim, n) in gone {
            self.executions.remove(&claim);
            if let Some(passes) = self.passes.get_mut(&claim.node) {
                *passes -= n * claim.passes;
            }
            self.give_up(&claim, n, tallies);
        }
        self.full = self.executions.len() > self.limit / 4 * 3;
    }

    /// Should the block turn out to head a loop, these executions are in no average.
    fn give_up(&mut self, claim: &Claim, executions: u64, tallies: &mut [Tally]) {
        tallies[claim.node as usize].add_cut(executions, 0, executions * claim.passes);
        if let Some(opening) = self.openings.get_mut(claim.opening as usize) {
            opening.gaps = true;
        }
    }

    /// Passes of a block in all claims.
    pub fn passes_of(&self, node: u32) -> u64 {
        self.passes.get(&node).copied().unwrap_or(0)
    }

    /// All claims, in order, as the loops of the whole run show them; and the activations that began in loops which
    /// were not known then.
    pub fn judge(&self, graph: &Graph, forest: &Forest) -> (Vec<(Claim, u64, Judged)>, u64) {
        let claimed: FxHashSet<(u32, u32)> = self.executions.keys().map(|c| (c.opening, c.node)).collect();
        let right: Vec<bool> = (0..self.openings.len() as u32)
            .map(|i| self.was_right(i, &claimed, graph, forest).unwrap_or(false))
            .collect();
        let mut all: Vec<(Claim, u64, Judged)> = Vec::with_capacity(self.executions.len());
        for (claim, n) in &self.executions {
            let id = forest.headed[claim.node as usize];
            let inside = id != NONE && claim.last != NONE && forest.holds(id, claim.last);
            let judged = match self.openings.get(claim.opening as usize) {
                Some(o) if !right[claim.opening as usize] => Judged::Began(o.activations),
                _ if inside => Judged::Open,
                _ => Judged::Whole,
            };
            all.push((*claim, *n, judged));
        }
        all.sort_unstable_by_key(|(claim, _, _)| (claim.opening, *claim));
        let wrong = self.openings.iter().zip(&right).filter(|(_, right)| !**right);
        (all, wrong.map(|(o, _)| o.activations).sum())
    }

    /// Whether an activation that began here was followed rightly: all loops around the place were on the way, or their
    /// headers were not met again.
    fn was_right(
        &self,
        index: u32,
        claimed: &FxHashSet<(u32, u32)>,
        graph: &Graph,
        forest: &Forest,
    ) -> Option<bool> {
        let opening = &self.openings[index as usize];
        let mut assumed = opening.around.iter().peekable();
        for header in forest.nest(graph.find(opening.pc)?)? {
            let was_on_way = assumed.next_if_eq(&&header).is_some();
            if !was_on_way && (opening.gaps || claimed.contains(&(index, header))) {
                return Some(false);
            }
        }
        Some(assumed.next().is_none())
    }

    pub fn memory_bytes(&self) -> usize {
        let around: usize = self.openings.iter().map(|o| o.around.capacity() * 4).sum();
        self.executions.capacity() * (size_of::<(Claim, u64)>() + 1)
            + (self.passes.capacity() + self.by_pc.capacity()) * 17
            + self.openings.capacity() * size_of::<Opening>()
            + around
    }
}
