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
    /// Node counts just before and just after each merge batch, oldest first: the saw-tooth of figure 9. When there are
    /// too many to keep, every second batch is left out.
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

impl Stats {
    /// Statistics that keep at most `samples` samples.
    pub(super) fn with_capacity(samples: usize) -> Self {
        Stats { samples: Vec::with_capacity(samples), ..Stats::default() }
    }

    pub(super) fn push(&mut self, sample: Sample) {
        if self.samples.len() == self.samples.capacity() {
            let mut index = 0;
            self.samples.retain(|_| {
                index += 1;
                (index - 1) / 2 % 2 == 1
            });
        }
        self.samples.push(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stay_bounded_and_in_pairs() {
        let mut stats = Stats::with_capacity(16);
        for batch in 0..100 {
            stats.push(Sample { events: batch, nodes: 2 });
            stats.push(Sample { events: batch, nodes: 1 });
        }
        assert_eq!(stats.samples.capacity(), 16);
        assert!(stats.samples.chunks(2).all(|pair| pair[0].events == pair[1].events && pair[0].nodes == 2));
        assert_eq!(stats.samples.last(), Some(&Sample { events: 99, nodes: 1 }));
    }
}
