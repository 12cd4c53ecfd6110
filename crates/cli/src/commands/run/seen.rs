//! What is made of the stream: as little as the report needs.

use anyhow::Result;
use sonde_analysis::{Analyses, Findings, ValueMethod};
use sonde_event::{Catalog, Count, Counts, Reader};
use sonde_launch::{Options, Policy};
use sonde_profile::Named;
use sonde_rap::Tree;
use sonde_report::view::HotView;
use sonde_report::{Options as Shown, Subject};
use sonde_summary::{BurstTime, Kind, Missing, Ranges, Summary, Trees, Unit};
use sonde_symbol::Symbols;

use super::args::Args;

/// The reader of a run.
pub enum Seen {
    /// Nobody will look: nothing is decoded.
    Nothing,
    /// Counts only.
    Counts(Count),
    /// Counts and analyses.
    Analyses(Box<Analyses>),
}

impl Seen {
    /// As much as these arguments need.
    pub fn new(args: &Args, options: &Options, burst_time: Option<BurstTime>) -> Result<Seen> {
        let is_kept = args.output.is_some();
        // Wrong parameters are told whether or not they are needed.
        let mut config = args.summing.config(options.detail, burst_time, is_kept)?;
        config.summary.in_parts = options.policy != Policy::Always;
        if let ValueMethod::Slots(slots) = &mut config.values {
            slots.publish_after = args.mask_step;
        }
        let analyses = Analyses::new(&config)?;
        if args.discard || !is_kept && !args.has_report() {
            return Ok(Seen::Nothing);
        }
        if !is_kept && args.no_ranges {
            return Ok(Seen::Counts(Count::default()));
        }
        Ok(Seen::Analyses(Box::new(analyses)))
    }

    /// As a reader of the stream.
    pub fn reader(&mut self) -> Option<&mut dyn Reader> {
        match self {
            Seen::Nothing => None,
            Seen::Counts(count) => Some(count),
            Seen::Analyses(analyses) => Some(&mut **analyses),
        }
    }

    /// What is left when the stream is over.
    pub fn finish(self, catalog: &Catalog) -> Found {
        match self {
            Seen::Nothing => Found { counts: Counts::default(), findings: None, losses: Named::new() },
            Seen::Counts(count) => Found { counts: count.counts, findings: None, losses: Named::new() },
            Seen::Analyses(analyses) => {
                let findings = analyses.finish(catalog);
                Found { counts: findings.summary.counts, findings: Some(findings), losses: Named::new() }
            }
        }
    }
}

/// What is left of a run.
pub struct Found {
    pub counts: Counts,
    pub findings: Option<Findings>,
    /// What adding up several processes lost.
    pub losses: Named,
}

impl Found {
    fn summary(&self) -> Option<&Summary> {
        self.findings.as_ref().map(|findings| &findings.summary)
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> u64 {
        self.summary().map_or(0, |summary| summary.memory.used)
    }

    /// What weights are.
    pub fn unit(&self) -> Unit {
        self.summary().map_or(Unit::Events, |summary| summary.unit)
    }

    /// What is not in the summaries.
    pub fn missing(&self) -> Missing {
        self.summary().map_or_else(Missing::default, |summary| summary.missing)
    }

    /// Whether addresses of loads or stores were looked at.
    pub fn has_data(&self) -> bool {
        let kinds = [Kind::LoadAddresses, Kind::StoreAddresses];
        self.summary().is_some_and(|summary| kinds.iter().any(|kind| summary.of(*kind).is_some()))
    }

    /// Hot code and hot data.
    pub fn hot(&self, threshold: f64, symbols: &mut Symbols) -> (Vec<HotView>, Vec<HotView>) {
        let Some(summary) = self.summary() else { return (Vec::new(), Vec::new()) };
        let subject = Subject::of(summary, &[], None);
        let shown = Shown { hot: threshold, ..Shown::default() };
        let mut rows = |tree: &Ranges| sonde_report::hot(&subject, tree, symbols, &shown);
        let code = summary.of(Kind::Code).map(&mut rows);
        let data = loads_and_stores(summary).map(|tree| rows(&tree));
        (code.unwrap_or_default(), data.unwrap_or_default())
    }
}

/// Both together, or the one there is.
fn loads_and_stores(summary: &Summary) -> Option<Ranges> {
    let (loads, stores) = (summary.of(Kind::LoadAddresses), summary.of(Kind::StoreAddresses));
    let (Some(loads), Some(stores)) = (loads, stores) else { return loads.or(stores).cloned() };
    let (Trees::One(first), Trees::One(second)) = (&loads.tree, &stores.tree) else { return None };
    let mut tree = Tree::from_snapshot(first.clone()).ok()?;
    tree.merge(second).ok()?;
    let events = loads.events + stores.events;
    Some(Ranges { events, tree: Trees::One(tree.snapshot()), ..loads.clone() })
}
