//! What a report is about.

use sonde_calls::CallProfile;
use sonde_event::Counts;
use sonde_loops::LoopsProfile;
use sonde_place::Regions;
use sonde_starts::StartsProfile;
use sonde_streams::StreamsProfile;
use sonde_summary::{BlockWeight, Bursts, CacheCounts, Kind, Missing, Ranges, Summary, Unit};
use sonde_values::ValueProfile;

/// How a run was taken, in words and numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The command line.
    pub command: Vec<String>,
    /// Facts in the order in which they are shown: what, and how it was.
    pub facts: Vec<(String, String)>,
    /// What was not recorded, dropped or skipped: how often, and what that means.
    pub losses: Vec<(u64, String)>,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// The part of it in the kernel, where it was measured.
    pub system_seconds: Option<f64>,
}

/// What was kept of one run, or of several that were merged.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// How each run was taken.
    pub runs: &'a [About],
    /// What weights are.
    pub unit: Unit,
    /// Exact totals of what was recorded.
    pub counts: &'a Counts,
    /// Bursts.
    pub bursts: &'a Bursts,
    /// The trees.
    pub ranges: &'a [Ranges],
    /// The heaviest blocks.
    pub blocks: &'a [BlockWeight],
    /// Where places are.
    pub regions: &'a Regions,
    /// What the cache model counted.
    pub cache: Option<&'a CacheCounts>,
    /// Where bursts began, in places.
    pub starts: Option<&'a StartsProfile>,
    /// Calls; their addresses are places.
    pub calls: Option<&'a CallProfile>,
    /// Loops; their addresses are places.
    pub loops: Option<&'a LoopsProfile>,
    /// Values of loads; their addresses are places.
    pub values: Option<&'a ValueProfile>,
    /// Hot data streams; their addresses are places.
    pub streams: Option<&'a StreamsProfile>,
    /// What is not in the trees.
    pub missing: &'a Missing,
}

impl<'a> Subject<'a> {
    /// A summary of one run.
    pub fn of(summary: &'a Summary, runs: &'a [About], calls: Option<&'a CallProfile>) -> Subject<'a> {
        Subject {
            runs,
            unit: summary.unit,
            counts: &summary.counts,
            bursts: &summary.bursts,
            ranges: &summary.ranges,
            blocks: &summary.blocks,
            regions: &summary.regions,
            cache: summary.cache.as_ref(),
            starts: None,
            calls,
            loops: None,
            values: None,
            streams: None,
            missing: &summary.missing,
        }
    }

    /// The tree of a kind.
    pub fn tree(&self, kind: Kind) -> Option<&'a Ranges> {
        self.ranges.iter().find(|ranges| ranges.kind == kind)
    }
}
