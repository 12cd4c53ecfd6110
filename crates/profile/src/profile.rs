//! What a profile is, apart from how it is stored.

use crate::run::{Named, Run};
use sonde_calls::CallProfile;
use sonde_loops::LoopsProfile;
use sonde_starts::StartsProfile;
use sonde_streams::StreamsProfile;
use sonde_summary::Summary;
use sonde_values::ValueProfile;

/// Everything that is known of one run, or of many runs together.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Of all runs together, also of those that are not described.
    pub totals: Totals,
    /// How each was recorded and how it went, at most [`Profile::MOST_RUNS`].
    pub runs: Vec<Run>,
    /// What was kept of their streams.
    pub summary: Summary,
    /// Where bursts began.
    pub starts: Option<StartsProfile>,
    /// Who called whom.
    pub calls: Option<CallProfile>,
    /// Hot data streams.
    pub streams: Option<StreamsProfile>,
    /// Loops.
    pub loops: Option<LoopsProfile>,
    /// Values of loads.
    pub values: Option<ValueProfile>,
    /// Parts of the file that this version does not know: they are not here, and are lost when it is written again.
    pub unknown_parts: u64,
}

/// Sums over all runs of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Bursts.
    pub bursts: u64,
    /// CPU time of the programs.
    pub cpu_ns: u64,
    /// Wall time of the programs.
    pub wall_ns: u64,
    /// What was not seen.
    pub losses: Named,
    /// Whether modules of different builds were pooled by file name.
    pub pooled_by_name: bool,
}

impl Profile {
    /// Most runs that are described; of further ones only the sums are kept.
    pub const MOST_RUNS: usize = 256;
    /// Most nodes of a tree: with more, the lightest are put into wider ranges when it is written, and the tree's
    /// `eps_effective` tells what that cost.
    pub const MOST_NODES: usize = 1 << 17;

    /// The profile of one run; what other analyses found can be added. Their addresses have to be places, too.
    pub fn of_run(run: Run, summary: Summary) -> Profile {
        Profile {
            totals: Totals::of_run(&run),
            runs: vec![run],
            summary,
            starts: None,
            calls: None,
            streams: None,
            loops: None,
            values: None,
            unknown_parts: 0,
        }
    }

    /// Counts something that was not kept.
    pub(crate) fn add_loss(&mut self, name: &str, count: u64) {
        if count > 0 {
            let sum = self.totals.losses.entry(name.into()).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Runs that are not described.
    pub fn runs_left_out(&self) -> u64 {
        self.totals.runs.saturating_sub(self.runs.len() as u64)
    }
}

impl Totals {
    fn of_run(run: &Run) -> Totals {
        Totals {
            runs: 1,
            bursts: run.bursts,
            cpu_ns: run.cpu_ns,
            wall_ns: run.wall_ns,
            losses: run.losses.clone(),
            pooled_by_name: false,
        }
    }

    /// Adds the sums of other runs.
    pub fn add(&mut self, other: &Totals) {
        self.runs = self.runs.saturating_add(other.runs);
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.pooled_by_name |= other.pooled_by_name;
        for (name, count) in &other.losses {
            let sum = self.losses.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}
