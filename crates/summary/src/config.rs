//! What summaries are asked to be, and how a limit on memory is divided among their parts.

use crate::batch::{BATCH, Batch, Event};
use crate::error::SummaryError;
use crate::kind::Kind;
use crate::passes::Passes;
use crate::what::What;
use std::time::Duration;

/// Parameters of [`crate::Summaries`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Which kinds.
    pub what: What,
    /// Largest error of a tree as a share of all its weight. Default 0.5 %.
    pub eps: f64,
    /// Limit on all memory of the summaries, in bytes. Default 64 MiB.
    pub max_memory: usize,
    /// The cache model, where a kind needs one.
    pub cache: sonde_cache::Config,
    /// The CPU time that each burst stands for; without, events count as they are.
    pub burst_time: Option<BurstTime>,
    /// Whether events count as they are although only parts of the run are recorded: then the cache model knows of each part
    /// what follows from it alone. Default false.
    pub in_parts: bool,
    /// Threads that summarize: 1 is the one that reads the stream, which does it all. Default 1.
    pub consumers: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            what: What::default(),
            eps: 0.005,
            max_memory: 64 << 20,
            cache: sonde_cache::Config::default(),
            burst_time: None,
            in_parts: false,
            consumers: 1,
        }
    }
}

/// The CPU time that a burst stands for, unless the stream says otherwise ([`sonde_event::Reader::pace`]): the period.
#[derive(Clone, Debug)]
pub struct BurstTime(u64);

impl BurstTime {
    /// This period.
    pub fn new(period: Duration) -> BurstTime {
        BurstTime(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000))
    }

    /// What a burst stands for.
    pub fn picoseconds(&self) -> u64 {
        self.0
    }
}

/// Batches outside the queues: the one that is worked on and the one that is being sent. Those in queues are shared.
pub(crate) const UNDER_WAY: usize = 2;
/// Least memory of a tree: below, it loses the tables that make it fast.
const LEAST_TREE: usize = 320 << 10;

/// Most bytes of rows beside the trees over misses.
const MISS_ROWS: usize = 256 << 10;

/// How the limit is divided, in bytes unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// For a tree of one dimension; one of two gets twice that.
    pub tree: usize,
    /// Batches that may wait for each consumer.
    pub queue: usize,
    /// Exits whose passes are counted in a table.
    pub exits: usize,
    /// How the references of superblocks are computed.
    pub recipes: usize,
    /// Passes in all open bursts.
    pub open: usize,
    /// Rows of counts beside the trees: where there are no bursts, they have what bursts would.
    pub rows: usize,
    /// The same beside the trees over misses.
    pub miss_rows: usize,
    /// References that wait for a look at the mappings.
    pub pending: usize,
}

impl Config {
    /// Whether parts of the run are not recorded.
    pub(crate) fn has_gaps(&self) -> bool {
        self.in_parts || self.burst_time.is_some()
    }

    /// Of what the fixed parts leave, trees have ten sixteenths, the table of exits two; one each is for queues, recipes,
    /// open bursts and what waits. Trees get the same however many consumers there are, so that the result is the same.
    pub(crate) fn shares(&self) -> Result<Shares, SummaryError> {
        let has_cache = self.what.has(Kind::Dl1MissValues) || self.what.has(Kind::Dl2MissValues);
        let cache = if has_cache { sonde_cache::Cache::bytes(&self.cache) } else { 0 };
        let trees: usize = self.what.kinds().iter().map(|kind| kind.domains().len()).sum();
        // Passes that wait; columns under way; a batch; misses; the places.
        let fixed = cache + Passes::FULL + BATCH * 40 + Batch::BYTES + BATCH * 48 + (128 << 10);
        let queued = if self.consumers > 1 { (1 + UNDER_WAY) * Batch::BYTES } else { 0 };
        let least = fixed + (trees * LEAST_TREE * 8 / 5).max(queued * 16);
        if self.max_memory < least {
            return Err(SummaryError::TooLittleMemory { limit: self.max_memory, least });
        }
        let left = self.max_memory - fixed;
        let share = left / 16;
        Ok(Shares {
            tree: share * 10 / trees.max(1),
            queue: (share / Batch::BYTES).saturating_sub(UNDER_WAY).clamp(1, 16),
            exits: share * 2 / EXIT_BYTES,
            recipes: share,
            open: share,
            rows: if self.burst_time.is_none() { share * 7 / 8 } else { 0 },
            miss_rows: if self.burst_time.is_none() { (share / 8).min(MISS_ROWS) } else { 0 },
            pending: share / size_of::<(Event, u64)>(),
        })
    }
}

/// What is kept for an exit, and for the superblock that it is of: three exits or so have one. A block beyond the table is
/// counted in.
const EXIT_BYTES: usize = 48 + 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_refused_with_what_is_needed() {
        let mut config = Config { what: What::all(), max_memory: 1 << 20, ..Config::default() };
        let Err(SummaryError::TooLittleMemory { least, .. }) = config.shares() else { panic!() };
        config.max_memory = least;
        assert!(config.shares().is_ok_and(|shares| shares.tree >= LEAST_TREE));
    }

    #[test]
    fn a_period_is_counted_in_picoseconds() {
        let time = BurstTime::new(Duration::from_millis(10));
        assert_eq!(time.picoseconds(), 10_000_000_000);
        assert_eq!(BurstTime::new(Duration::MAX).picoseconds(), u64::MAX);
    }
}
