//! The reader that feeds all analyses.

use crate::config::{AnalysisError, Config};
use crate::findings::Findings;
use crate::values::Values;
use sonde_calls::CallsReader;
use sonde_event::maps::Mapping;
use sonde_event::{Begin, Catalog, Counts, End, Passes, Reader, Run, Signal, Syscall, Unwatched};
use sonde_starts::{StartsConfig, StartsReader};
use sonde_streams::StreamsReader;
use sonde_summary::{BurstTime, Summaries};

/// All analyses of one process.
pub struct Analyses {
    summaries: Summaries,
    /// Only bursts begin somewhere.
    starts: Option<StartsReader>,
    calls: Option<CallsReader>,
    loops: Option<sonde_loops::ExactReader>,
    values: Option<Values>,
    streams: Option<StreamsReader>,
    burst_time: Option<BurstTime>,
}

impl Analyses {
    /// Nothing seen yet.
    pub fn new(config: &Config) -> Result<Analyses, AnalysisError> {
        let shares = config.shares();
        let burst_time = shares.summary.burst_time.clone();
        let starts = |time: &BurstTime| {
            StartsReader::new(StartsConfig { picoseconds: time.picoseconds(), ..StartsConfig::default() })
        };
        let calls = || CallsReader::new(shares.calls, burst_time.as_ref().map(BurstTime::picoseconds));
        Ok(Analyses {
            starts: burst_time.as_ref().map(starts),
            calls: config.wanted.calls.then(calls),
            loops: config.wanted.loops.then(|| sonde_loops::ExactReader::new(shares.loops)).transpose()?,
            values: config.wanted.values.then(|| Values::new(config.values, shares.values)).transpose()?,
            streams: config.wanted.streams.then(|| StreamsReader::new(shares.streams)).transpose()?,
            summaries: Summaries::new(shares.summary)?,
            burst_time,
        })
    }

    /// Exact totals so far.
    pub fn counts(&self) -> Counts {
        self.summaries.counts()
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.summaries.memory_bytes()
            + self.starts.as_ref().map_or(0, StartsReader::memory_bytes)
            + self.calls.as_ref().map_or(0, CallsReader::memory_bytes)
            + self.loops.as_ref().map_or(0, sonde_loops::ExactReader::memory_bytes)
            + self.values.as_ref().map_or(0, Values::memory_bytes)
            + self.streams.as_ref().map_or(0, StreamsReader::memory_bytes)
    }

    /// Those that there are, as one reader.
    fn all(&mut self) -> impl Reader + '_ {
        let Analyses { summaries, starts, calls, loops, values, streams, .. } = self;
        (summaries, (starts, (calls, (loops, (values, streams)))))
    }

    /// Ends it all; every address becomes a place.
    pub fn finish(mut self, catalog: &Catalog) -> Findings {
        let mut starts = self.starts.take().map(StartsReader::finish);
        let mut calls = self.calls.take().map(CallsReader::finish);
        let mut loops = self.loops.take().map(|reader| reader.finish(catalog));
        let mut values = self.values.take().map(|reader| reader.finish(catalog));
        let mut streams = self.streams.take().map(StreamsReader::finish);
        let place = &mut |address| self.summaries.place(address);
        if let Some(starts) = &mut starts {
            starts.relocate(place);
        }
        if let Some(calls) = &mut calls {
            calls.relocate(place);
        }
        if let Some(loops) = &mut loops {
            loops.relocate(place);
        }
        if let Some(values) = &mut values {
            values.relocate(place);
        }
        if let Some(streams) = &mut streams {
            streams.relocate(place);
        }
        Findings { summary: self.summaries.finish(catalog), starts, calls, loops, values, streams }
    }
}

impl Reader for Analyses {
    fn begin(&mut self, begin: &Begin) {
        self.all().begin(begin);
    }

    fn run(&mut self, run: &Run<'_>) {
        self.all().run(run);
    }

    fn passes(&mut self, passes: &Passes<'_>) {
        self.all().passes(passes);
    }

    fn end(&mut self, end: &End) {
        self.all().end(end);
    }

    fn pace(&mut self, tid: i32, period_ns: u64) {
        let Some(all) = self.burst_time.as_ref().map(BurstTime::picoseconds) else { return };
        let own = period_ns.saturating_mul(1000);
        self.summaries.pace(tid, period_ns);
        if let Some(starts) = &mut self.starts {
            starts.pace(tid, period_ns);
        }
        if let Some(calls) = &mut self.calls {
            calls.weigh_burst(tid, own);
        }
        if let Some(loops) = &mut self.loops {
            loops.weigh_burst(tid, own as f64 / all.max(1) as f64);
        }
    }

    fn syscall(&mut self, syscall: &Syscall) {
        self.all().syscall(syscall);
    }

    fn signal(&mut self, signal: &Signal) {
        self.all().signal(signal);
    }

    fn mapping(&mut self, mapping: &Mapping) {
        self.all().mapping(mapping);
    }

    fn wants_mappings(&self) -> bool {
        self.summaries.wants_mappings()
    }

    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        self.values.as_mut()?.unwatched()
    }

    fn gap(&mut self) {
        self.all().gap();
    }
}
