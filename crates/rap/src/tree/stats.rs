//! How a tree grew: the node count over time (the paper's figure 9) and how often it split and merged.

/// The node count at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Events so far.
    pub events: u64,
    /// Ranges that held a count.
    pub nodes: u64,
}

/// What happened inside a tree so far. Bounded: merge batches come at exponentially growing intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Node counts just before and just after each merge batch, oldest first: the saw-tooth of figure 9.
    pub samples: Vec<Sample>,
    /// Ranges split so far.
    pub splits: u64,
    /// Merge batches so far.
    pub merge_batches: u64,
    /// Groups of sub-ranges that were merged into their parent.
    pub merges: u64,
    /// Events that the buffer combined with an equal one, so that they never descended alone.
    pub combined: u64,
}
