//! What DAProf reports, as plain data.

use std::collections::BTreeMap;

/// A loop as DAProf knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DaprofLoop {
    /// Pc of its backward branch.
    pub branch: u64,
    /// Bytes from the branch's target to the branch.
    pub distance: u32,
    /// Offset field: words of four bytes, which stand for instructions.
    pub offset: u8,
    /// Executions as counted; halved at saturation.
    pub executions: u64,
    /// Average iterations per execution.
    pub average: f64,
}

impl DaprofLoop {
    /// Iterations altogether, as far as executions are right.
    pub fn iterations(&self) -> f64 {
        self.average * self.executions as f64
    }

    /// The target of the branch: where the loop begins.
    pub fn target(&self) -> u64 {
        self.branch.wrapping_sub(self.distance.into())
    }
}

/// What was in the caches at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DaprofProfile {
    /// Loops by their branch.
    pub loops: Vec<DaprofLoop>,
    /// Short backward branches taken.
    pub branches: u64,
    /// Branches that found the FIFO full.
    pub dropped: u64,
    /// Loops that had to make room for others.
    pub replaced: u64,
    /// Times that executions were halved, of the cache with the most.
    pub halvings: u32,
    /// Branches that were taken for others with the same tag.
    pub aliased: u64,
    /// Executions that were active when recording was cut; not in the averages.
    pub cut: u64,
    /// Passes of threads beyond the most that have a profiler.
    pub beyond_threads: u64,
    /// Instructions executed.
    pub instructions: u64,
}

impl DaprofProfile {
    /// The loop with this branch.
    pub fn get(&self, branch: u64) -> Option<&DaprofLoop> {
        self.loops.binary_search_by_key(&branch, |l| l.branch).ok().map(|i| &self.loops[i])
    }

    pub(super) fn unite(&mut self, more: impl Iterator<Item = DaprofLoop>) {
        let mut by_branch: BTreeMap<u64, DaprofLoop> = BTreeMap::new();
        for l in std::mem::take(&mut self.loops).into_iter().chain(more) {
            let same = by_branch.entry(l.branch).or_insert(DaprofLoop { executions: 0, average: 0.0, ..l });
            let iterations = same.iterations() + l.iterations();
            same.executions += l.executions;
            same.average = if same.executions == 0 {
                same.average.max(l.average)
            } else {
                iterations / same.executions as f64
            };
        }
        self.loops = by_branch.into_values().collect();
    }

    /// Replaces every address by what `place` gives for it, and unites loops that come to lie in the same place.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        for l in &mut self.loops {
            l.branch = place(l.branch);
        }
        self.unite(std::iter::empty());
    }

    /// Adds another run; averages are weighted by executions.
    pub fn merge(&mut self, other: &DaprofProfile) {
        self.unite(other.loops.iter().cloned());
        self.branches += other.branches;
        self.dropped += other.dropped;
        self.replaced += other.replaced;
        self.halvings = self.halvings.max(other.halvings);
        self.aliased += other.aliased;
        self.cut += other.cut;
        self.beyond_threads += other.beyond_threads;
        self.instructions += other.instructions;
    }

    /// What must be true of any such profile.
    pub fn check(&self) -> Result<(), String> {
        if !self.loops.windows(2).all(|w| w[0].branch < w[1].branch) {
            return Err("loops are not in order of their branches".into());
        }
        if self.dropped > self.branches {
            return Err(format!("{} of {} branches were dropped", self.dropped, self.branches));
        }
        match self.loops.iter().find(|l| !(0.0..1024.0).contains(&l.average) || l.distance >= 1024) {
            Some(l) => Err(format!("loop {:#x} has impossible fields: {l:?}", l.branch)),
            None => Ok(()),
        }
    }
}
