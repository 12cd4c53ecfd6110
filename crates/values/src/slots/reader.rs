//! Feeds the slots from the event stream, skipping superblocks of which nothing is wanted.

use super::config::SlotConfig;
use super::control::SlotProfiler;
use super::publish::Publication;
use crate::error::ValuesError;
use crate::executions::PathCounts;
use crate::filter::{PcFilters, RecordedCurve, SourceFilter};
use crate::lfsr::Lfsr;
use crate::loads::{Known, Sites};
use crate::profile::{Method, ValueProfile};
use crate::results;
use sonde_event::{Catalog, Reader, Run, Unwatched};

/// Loads per point of the curve of recorded loads, at first.
const STRETCH: u64 = 1 << 16;

/// Reads the stream of one process.
pub struct SlotReader {
    config: SlotConfig,
    sites: Sites,
    paths: PathCounts,
    profiler: SlotProfiler,
    curve: RecordedCurve,
    published: Publication,
    gaps: u64,
}

impl SlotReader {
    /// Nothing read yet.
    pub fn new(config: SlotConfig, random: Lfsr) -> Result<SlotReader, ValuesError> {
        Ok(SlotReader {
            config,
            sites: Sites::new(config.kinds),
            paths: PathCounts::default(),
            profiler: SlotProfiler::new(config, random)?,
            curve: RecordedCurve::new(STRETCH),
            published: Publication::new(config.publish_after),
            gaps: 0,
        })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.sites.memory_bytes() + self.paths.memory_bytes() + self.profiler.memory_bytes()
    }

    /// The algorithm, with its filters and what it knows.
    pub fn profiler(&self) -> &SlotProfiler {
        &self.profiler
    }

    /// Times that a source was told what to leave out.
    pub fn publications(&self) -> u64 {
        self.published.times()
    }

    /// Recorded loads over time.
    pub fn recorded(&self) -> &RecordedCurve {
        &self.curve
    }

    /// The profile; `catalog` is that of the decoder which fed the stream.
    pub fn finish(mut self, catalog: &Catalog) -> ValueProfile {
        self.profiler.flush();
        let method = Method::Slots { slots: self.config.slots as u32, narrow: self.config.narrow };
        let executions = self.paths.executions(catalog, self.config.kinds);
        let mut profile = results::profile(method, self.profiler.table().to_loads(), &executions);
        profile.totals.samples = self.profiler.stats().samples;
        let refused = self.profiler.table().refused();
        (profile.totals.evicted_loads, profile.totals.evicted_samples) = refused;
        profile.totals.gaps = self.gaps;
        profile.timeline = self.curve.points();
        profile
    }
}

/// Notes which sites of a superblock are wanted, behind the number of those that are in the stream and masked by now.
#[cold]
fn find_wanted(known: &mut Known, filters: &PcFilters) {
    known.notes.clear();
    let logged = || known.sites.iter().enumerate().filter(|(_, site)| site.is_logged());
    known.notes.push(logged().filter(|(_, site)| filters.masked.is_set(site.pc)).count() as u32);
    let wanted = logged().filter(|(_, site)| filters.wants(site.pc));
    known.notes.extend(wanted.map(|(i, _)| i as u32));
    known.version = filters.version();
}

impl Reader for SlotReader {
    fn run(&mut self, run: &Run<'_>) {
        self.paths.add(run);
        let known = self.sites.of(run);
        let executed = known.executed(run);
        if known.version != self.profiler.filters().version() {
            find_wanted(known, self.profiler.filters());
        }
        let (spare, wanted) = known.notes.split_first().map_or((0, &[][..]), |(n, rest)| (*n, rest));
        let logged = known.logged(executed) as u64;
        // A pass that leaves early counts as one that does not: it only matters for when to publish.
        self.published.pass(logged, u64::from(spare));
        let mut recorded = 0;
        for at in wanted {
            let site = &known.sites[*at as usize];
            if site.reference >= run.path.refs {
                break;
            }
            // An interrupt in the middle of a superblock changes what is wanted of the rest.
            let changed = known.version != self.profiler.filters().version();
            if changed && !self.profiler.filters().wants(site.pc) {
                continue;
            }
            if let Some(value) = site.value(run) {
                self.profiler.sample(site.pc, value);
                recorded += 1;
            }
        }
        self.profiler.elapsed(executed as u64);
        self.curve.pass(executed as u64, logged, recorded);
    }

    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        self.published.next(self.profiler.filters().masked())
    }

    fn gap(&mut self) {
        self.gaps += 1;
    }
}
