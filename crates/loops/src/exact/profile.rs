//! The result: plain data that can be added up, moved to stable places and checked.

use super::seen::{Estimate, Seen};
use sonde_event::total;
use std::collections::BTreeMap;

/// Buckets of a histogram: 0, then 1, 2 to 3, 4 to 7, ...; the last one is open.
pub const BUCKETS: usize = 32;

/// The bucket of a number.
pub(super) fn bucket(n: u64) -> usize {
    (64 - n.leading_zeros() as usize).min(BUCKETS - 1)
}

/// Iterations per execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Executions.
    pub executions: u64,
    /// Iterations of all of them.
    pub iterations: u64,
    /// Least iterations of one.
    pub least: u64,
    /// Most iterations of one.
    pub most: u64,
    /// Executions by iterations: 0, 1, 2 to 3, 4 to 7, ... (bucket `k` begins at `2^(k-1)`).
    pub buckets: [u64; BUCKETS],
}

impl Spread {
    /// Iterations per execution on average; 0 if there was none.
    pub fn mean(&self) -> f64 {
        if self.executions == 0 { 0.0 } else { self.iterations as f64 / self.executions as f64 }
    }

    /// Adds other executions.
    pub fn merge(&mut self, other: &Spread) {
        if other.executions == 0 {
            return;
        }
        self.least = if self.executions == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.executions = self.executions.saturating_add(other.executions);
        self.iterations = self.iterations.saturating_add(other.iterations);
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine = mine.saturating_add(theirs);
        }
    }

    fn check(&self) -> Result<(), String> {
        let counted = total(self.buckets.iter().copied());
        let low = self.least.saturating_mul(self.executions);
        let high = self.most.saturating_mul(self.executions);
        if counted != self.executions {
            return Err(format!("its histogram has {counted} of {} executions", self.executions));
        }
        if !(low..=high).contains(&self.iterations) || (self.executions == 0 && self.iterations != 0) {
            return Err(format!(
                "{} iterations in {} executions of {} to {}",
                self.iterations, self.executions, self.least, self.most
            ));
        }
        Ok(())
    }
}

/// Executions that are not in the averages since they were not seen whole, or not known to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Active when recording began.
    pub starts: u64,
    /// Active when recording ended.
    pub ends: u64,
    /// Passes seen of both.
    pub passes: u64,
}

/// One natural loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopStats {
    /// First pc of its header: its name.
    pub header: u64,
    /// Entry of its function: the nearest called address at or below the header; 0 if none is known.
    pub function: u64,
    /// Header of the loop around it, if there is one in the same function.
    pub parent: Option<u64>,
    /// 1 for an outermost loop of its function.
    pub depth: u32,
    /// Pcs of the instructions that its back-edges leave from (the first 16).
    pub latches: Vec<u64>,
    /// Lowest pc of its body.
    pub low: u64,
    /// Bytes from there to the end of its body, holes included.
    pub extent: u64,
    /// Instructions in its body, inner loops included.
    pub body: u64,
    /// The function's entry was never seen, so its header is a guess.
    pub guessed: bool,
    /// Executions seen whole, by iterations. An iteration is a pass through the header. In a loop that is tested where it
    /// begins (no branch that loops back can also leave), a pass that leaves at the header's own branch was only the
    /// test and does not count; so a `while` has as many iterations as the same loop turned into a `do while`.
    pub whole: Spread,
    /// Passes through the header, in executions seen whole.
    pub passes: u64,
    /// Executions of one pass: no back-edge was taken.
    pub single: u64,
    /// Executions not seen whole.
    pub cut: Cut,
    /// What bursts saw of it, whole or not; nothing where not only bursts were recorded.
    pub seen: Seen,
    /// It is tested where it begins.
    pub tests_first: bool,
    /// Instructions executed in its body without inner loops and called functions.
    pub own: u64,
    /// Instructions executed from entering to leaving it, with inner loops and called functions; recursion counts once.
    pub inclusive: u64,
    /// `own` in units of [`LoopsProfile::weight`].
    pub own_weight: f64,
    /// `inclusive` in units of [`LoopsProfile::weight`].
    pub inclusive_weight: f64,
}

impl LoopStats {
    /// Iterations per execution, from all that bursts saw; none if they saw nothing, or everything was recorded.
    pub fn iterations_each(&self) -> Option<Estimate> {
        let passes = self.seen.passes_each()?;
        // The last pass of a loop that is tested where it begins may be only the test.
        let tests = match self.whole.executions {
            0 => f64::from(u8::from(self.tests_first)),
            n => self.passes.saturating_sub(self.whole.iterations) as f64 / n as f64,
        };
        let less = |passes: f64| (passes - tests).max(0.0);
        Some(Estimate {
            mean: less(passes.mean),
            at_least: less(passes.at_least),
            at_most: passes.at_most.map(less),
        })
    }

    fn merge(&mut self, other: &LoopStats) {
        self.latches.extend(&other.latches);
        self.latches.sort_unstable();
        self.latches.dedup();
        self.latches.truncate(LATCHES);
        let end = self.low.saturating_add(self.extent).max(other.low.saturating_add(other.extent));
        self.low = self.low.min(other.low);
        self.extent = end - self.low;
        self.body = self.body.max(other.body);
        // What knows the entry knows more of the nesting.
        if self.guessed && !other.guessed {
            (self.function, self.parent, self.depth) = (other.function, other.parent, other.depth);
        }
        self.guessed &= other.guessed;
        self.whole.merge(&other.whole);
        self.passes = self.passes.saturating_add(other.passes);
        self.single = self.single.saturating_add(other.single);
        self.cut.starts = self.cut.starts.saturating_add(other.cut.starts);
        self.cut.ends = self.cut.ends.saturating_add(other.cut.ends);
        self.cut.passes = self.cut.passes.saturating_add(other.cut.passes);
        self.seen.merge(&other.seen);
        self.tests_first |= other.tests_first;
        self.own = self.own.saturating_add(other.own);
        self.inclusive = self.inclusive.saturating_add(other.inclusive);
        self.own_weight += other.own_weight;
        self.inclusive_weight += other.inclusive_weight;
    }

    fn check(&self) -> Result<(), String> {
        self.whole.check()?;
        if self.passes < self.whole.iterations || self.single > self.whole.executions {
            return Err("it has more iterations than passes".into());
        }
        if self.own > self.inclusive {
            return Err(format!("{} own instructions, but {} inclusive", self.own, self.inclusive));
        }
        if self.depth == 0 || (self.depth > 1) != self.parent.is_some() {
            return Err(format!("its depth is {}, its parent {:x?}", self.depth, self.parent));
        }
        Ok(())
    }
}

pub(super) const LATCHES: usize = 16;

/// Cycles that are no natural loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Places where a cycle is entered that does not begin with them.
    pub regions: u64,
    /// Times that such a cycle was run, taking the block that it was entered at for its header.
    pub executions: u64,
    /// Rounds in them.
    pub passes: u64,
}

/// What makes the result less than certain, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Parts of the stream that are missing.
    pub gaps: u64,
    /// Activations found to be left by longjmp, exceptions or the like.
    pub unwound: u64,
    /// Returns to places that no recorded call left: all that was active is counted as cut.
    pub lost: u64,
    /// Activations that recording began in, in code or in loops that were not known then: loops of that level are not
    /// followed.
    pub unplaced: u64,
    /// Threads whose way became too long: all that was active is counted as cut.
    pub overflows: u64,
    /// Passes through code beyond the most blocks that are kept.
    pub beyond_blocks: u64,
    /// Passes of threads beyond the most that are followed.
    pub beyond_threads: u64,
    /// Blocks in whose place other code was found later.
    pub replaced: u64,
}

/// All loops of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopsProfile {
    /// Loops by header.
    pub loops: Vec<LoopStats>,
    /// Cycles that are no natural loops.
    pub irregular: Rounds,
    /// Instructions recorded.
    pub instructions: u64,
    /// Bursts recorded.
    pub bursts: u64,
    /// What all shares are shares of: instructions, or bursts of weight 1 each.
    pub weight: f64,
    /// Reservations.
    pub doubts: Doubts,
}

impl LoopsProfile {
    /// The loop with this header.
    pub fn get(&self, header: u64) -> Option<&LoopStats> {
        self.loops.binary_search_by_key(&header, |l| l.header).ok().map(|i| &self.loops[i])
    }

    /// A part of the weight as a share, from 0 to 1.
    pub fn share(&self, weight: f64) -> f64 {
        if self.weight > 0.0 { weight / self.weight } else { 0.0 }
    }

    /// Loops with the most own weight first.
    pub fn hottest(&self) -> Vec<&LoopStats> {
        let mut all: Vec<&LoopStats> = self.loops.iter().collect();
        all.sort_by(|a, b| b.own_weight.total_cmp(&a.own_weight).then(a.header.cmp(&b.header)));
        all
    }

    /// Replaces every address by what `place` gives for it, and unites loops that come to lie in the same place.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        for l in &mut self.loops {
            l.header = place(l.header);
            l.function = if l.function == 0 { 0 } else { place(l.function) };
            l.parent = l.parent.map(&mut *place);
            l.low = place(l.low);
            for latch in &mut l.latches {
                *latch = place(*latch);
            }
            l.latches.sort_unstable();
        }
        self.unite(std::iter::empty());
    }

    /// Adds another run.
    pub fn merge(&mut self, other: &LoopsProfile) {
        self.unite(other.loops.iter().cloned());
        self.irregular.regions = self.irregular.regions.max(other.irregular.regions);
        self.irregular.executions = self.irregular.executions.saturating_add(other.irregular.executions);
        self.irregular.passes = self.irregular.passes.saturating_add(other.irregular.passes);
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.weight += other.weight;
        sonde_event::add_counts!(Doubts {
            gaps, unwound, lost, unplaced, overflows, beyond_blocks, beyond_threads, replaced
        }: &mut self.doubts, &other.doubts);
    }

    fn unite(&mut self, more: impl Iterator<Item = LoopStats>) {
        let mut by_header: BTreeMap<u64, LoopStats> = BTreeMap::new();
        for l in std::mem::take(&mut self.loops).into_iter().chain(more) {
            match by_header.entry(l.header) {
                std::collections::btree_map::Entry::Vacant(free) => {
                    free.insert(l);
                }
                std::collections::btree_map::Entry::Occupied(mut same) => same.get_mut().merge(&l),
            }
        }
        self.loops = by_header.into_values().collect();
    }

    /// What must be true of any such profile.
    pub fn check(&self) -> Result<(), String> {
        if !self.loops.windows(2).all(|w| w[0].header < w[1].header) {
            return Err("loops are not in order of their headers".into());
        }
        for l in &self.loops {
            l.check().map_err(|what| format!("loop {:#x}: {what}", l.header))?;
        }
        let own = total(self.loops.iter().map(|l| l.own));
        if own > self.instructions {
            return Err(format!("loops have {own} own instructions of {}", self.instructions));
        }
        let weight: f64 = self.loops.iter().map(|l| l.own_weight).sum();
        if weight > self.weight * (1.0 + 1e-9) {
            return Err(format!("loops have a weight of {weight} of {}", self.weight));
        }
        Ok(())
    }
}
