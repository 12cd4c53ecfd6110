//! What is left of a stream when it is over: plain data.

use crate::bursts::Bursts;
use crate::kind::Kind;
use crate::ranges::{Ranges, Trees};
use crate::unit::Unit;
use sonde_event::Counts;
use sonde_place::{Place, Regions};

/// Everything that was kept of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// What the weights are: the same for all trees.
    pub unit: Unit,
    /// Exact totals of what was recorded.
    pub counts: Counts,
    /// What the bursts stood for.
    pub bursts: Bursts,
    /// The finished trees, in the order of their kinds, one of a kind at most.
    pub ranges: Vec<Ranges>,
    /// Blocks by place, counted exactly; at most [`Summary::MOST_BLOCKS`]. If there are more, light neighbours are one.
    pub blocks: Vec<BlockWeight>,
    /// The regions that places are in, by number.
    pub regions: Regions,
    /// What the cache model counted, if it was asked for (`dl1-miss-values`, `dl2-miss-values`).
    pub cache: Option<CacheCounts>,
    /// What is not in the trees, or not where it belongs.
    pub missing: Missing,
    /// Bytes.
    pub memory: Memory,
}

/// A basic block and its weight, or several light ones that lie close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockWeight {
    /// Where it begins.
    pub place: Place,
    /// Bytes.
    pub bytes: u32,
    /// Instructions executed in it, in the summary's unit.
    pub weight: u64,
}

/// What the cache model was and what it counted; not weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheCounts {
    /// The two levels.
    pub config: sonde_cache::Config,
    /// Counts.
    pub statistics: sonde_cache::Statistics,
}

/// Events that are not in the trees, or not where they belong; not weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Blocks executed in code that lay in no mapping that was seen: counted in the unknown region, by address.
    pub unplaced_code: u64,
    /// References to addresses that lay in no mapping that was seen: counted in the unknown region, by address.
    pub unplaced_data: u64,
    /// References whose address form is not supported: in no tree over addresses.
    pub without_address: u64,
    /// Loads whose value was not recorded: in no tree over values, and never zero loads.
    pub without_value: u64,
    /// Masked references, which may not have happened: in no tree.
    pub conditional: u64,
    /// Indirect branches whose target was not recorded: in no tree over edges.
    pub without_target: u64,
    /// Gaps in the stream: something was damaged or could not be read.
    pub gaps: u64,
}

impl Missing {
    /// Adds what another summary misses.
    pub fn add(&mut self, other: &Missing) {
        sonde_event::add_counts!(Missing {
            unplaced_code, unplaced_data, without_address, without_value, conditional, without_target, gaps
        }: self, other);
    }
}

/// Bytes used and allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The limit that was set.
    pub limit: u64,
    /// Used at the end.
    pub used: u64,
}

impl Summary {
    /// Most blocks that are kept with exact weights.
    pub const MOST_BLOCKS: usize = 1 << 16;

    /// The tree of a kind.
    pub fn of(&self, kind: Kind) -> Option<&Ranges> {
        self.ranges.iter().find(|ranges| ranges.kind == kind)
    }

    /// The chance that a load from this stretch of places gives zero (section 5.4): least, likely and most, from the
    /// bounds of both trees. None without these trees, or if nothing was loaded there.
    pub fn zero_chance(&self, lo: u64, hi: u64) -> Option<Chance> {
        let Trees::One(zero) = &self.of(Kind::ZeroLoads)?.tree else { return None };
        let Trees::One(all) = &self.of(Kind::LoadAddresses)?.tree else { return None };
        let (zero, all) = (zero.bounds(lo, hi), all.bounds(lo, hi));
        let share =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) };
        (all.upper > 0).then(|| Chance {
            lower: share(zero.lower, all.upper),
            likely: share(zero.lower, all.lower),
            upper: if all.lower == 0 { 1.0 } else { share(zero.upper, all.lower) },
        })
    }
}

/// A probability with its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// At least.
    pub lower: f64,
    /// As counted.
    pub likely: f64,
    /// At most.
    pub upper: f64,
}
