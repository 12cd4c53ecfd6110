//! Sampling simulated on a full trace: which bursts counter mode would have recorded, and how good their profile is
//! (paper 4 section 5.3, figure 7).

use crate::config::{StreamsConfig, StreamsError};
use crate::profile::StreamsProfile;
use crate::reader::StreamsReader;
use crate::signature::{Share, overlap};
use sonde_event::maps::Mapping;
use sonde_event::{Begin, Cause, End, ExitKind, Path, Reader, Run, Signal, Superblock, Syscall};
use std::collections::HashMap;

/// `nCheck0:nInstr0`: checks that pass unrecorded, then checks in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setting {
    /// Checks between bursts.
    pub check: u32,
    /// Checks in a burst.
    pub instr: u32,
}

impl Setting {
    /// The share of checks that are in bursts.
    pub fn rate(&self) -> f64 {
        f64::from(self.instr) / (f64::from(self.check) + f64::from(self.instr)).max(1.0)
    }
}

/// The eight settings of figure 7, in its order: 5 %, 1 % and 0.5 %.
pub const FIGURE_7: [Setting; 8] = [
    Setting { check: 20, instr: 1 },
    Setting { check: 200, instr: 10 },
    Setting { check: 1000, instr: 50 },
    Setting { check: 100, instr: 1 },
    Setting { check: 1000, instr: 10 },
    Setting { check: 5000, instr: 50 },
    Setting { check: 200, instr: 1 },
    Setting { check: 2000, instr: 10 },
];

/// Whether leaving a superblock this way is a check of counter mode: function entries, indirect jumps, jumps backwards.
pub fn is_check(superblock: &Superblock, path: &Path) -> bool {
    match path.kind {
        ExitKind::Call | ExitKind::IndirectJump | ExitKind::IndirectCall => true,
        ExitKind::Taken | ExitKind::Jump => {
            let last = path.insns.checked_sub(1).and_then(|i| superblock.insns.get(i as usize));
            last.is_some_and(|insn| path.target <= insn.pc)
        }
        ExitKind::Return | ExitKind::Syscall | ExitKind::Native | ExitKind::Fall => false,
    }
}

/// Where a thread is: checks left, and whether it is in a burst.
#[derive(Clone, Copy, Debug)]
struct Counter {
    left: u32,
    recording: bool,
}

/// Hands on what a sampler would have recorded.
#[derive(Debug)]
pub struct Sampler<R> {
    setting: Setting,
    threads: HashMap<i32, Counter>,
    /// What gets the bursts.
    pub inner: R,
}

impl<R: Reader> Sampler<R> {
    /// A sampler that starts between bursts, each thread by itself. A setting with 0 in it counts as 1.
    pub fn new(setting: Setting, inner: R) -> Sampler<R> {
        let setting = Setting { check: setting.check.max(1), instr: setting.instr.max(1) };
        Sampler { setting, threads: HashMap::new(), inner }
    }

    fn recording(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|c| c.recording)
    }

    fn end_burst(&mut self, tid: i32, pc: u64) {
        if self.recording(tid) {
            self.inner.end(&End { tid, time: 0, cause: Cause::Stop, pc });
        }
    }
}

impl<R: Reader> Reader for Sampler<R> {
    fn begin(&mut self, begin: &Begin) {
        // What comes before is not adjacent in the full trace either.
        if self.recording(begin.tid) {
            self.inner.begin(begin);
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        let setting = self.setting;
        let counter =
            self.threads.entry(run.tid).or_insert(Counter { left: setting.check, recording: false });
        if counter.recording {
            self.inner.run(run);
        }
        if !is_check(run.superblock, run.path) {
            return;
        }
        counter.left -= 1;
        if counter.left > 0 {
            return;
        }
        counter.recording = !counter.recording;
        counter.left = if counter.recording { setting.instr } else { setting.check };
        let (tid, pc) = (run.tid, run.next_pc.unwrap_or(run.path.target));
        match counter.recording {
            true => self.inner.begin(&Begin { tid, time: 0, pc, kernel: None }),
            false => self.inner.end(&End { tid, time: 0, cause: Cause::Stop, pc }),
        }
    }

    fn end(&mut self, end: &End) {
        self.end_burst(end.tid, end.pc);
    }

    fn syscall(&mut self, syscall: &Syscall) {
        if self.recording(syscall.tid) {
            self.inner.syscall(syscall);
        }
    }

    fn signal(&mut self, signal: &Signal) {
        if self.recording(signal.tid) {
            self.inner.signal(signal);
        }
    }

    fn mapping(&mut self, mapping: &Mapping) {
        self.inner.mapping(mapping);
    }

    fn wants_mappings(&self) -> bool {
        self.inner.wants_mappings()
    }

    fn gap(&mut self) {
        self.inner.gap();
    }
}

/// One bar of figure 7.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlapRow {
    /// The setting.
    pub setting: Setting,
    /// Overlap with the profile of the full trace, 0 to 1.
    pub overlap: f64,
    /// References recorded, as a share of all.
    pub recorded: f64,
    /// Bursts.
    pub bursts: u64,
    /// The sampled profile.
    pub profile: StreamsProfile,
}

/// The experiment: one full trace in, the exhaustive profile and the sampled ones out.
#[derive(Debug)]
pub struct OverlapExperiment {
    full: StreamsReader,
    samplers: Vec<Sampler<StreamsReader>>,
}

impl OverlapExperiment {
    /// For these settings; memory is that of one reader more than there are settings.
    ///
    /// # Errors
    /// When the configuration makes no sense.
    pub fn new(config: StreamsConfig, settings: &[Setting]) -> Result<OverlapExperiment, StreamsError> {
        let sampler = |s: &Setting| Ok(Sampler::new(*s, StreamsReader::new(config)?));
        let samplers = settings.iter().map(sampler).collect::<Result<_, StreamsError>>()?;
        Ok(OverlapExperiment { full: StreamsReader::new(config)?, samplers })
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.full.memory_bytes() + self.samplers.iter().map(|s| s.inner.memory_bytes()).sum::<usize>()
    }

    /// The exhaustive profile and a row per setting.
    pub fn finish(self) -> (StreamsProfile, Vec<OverlapRow>) {
        let full = self.full.finish();
        let row = |sampler: Sampler<StreamsReader>| {
            let (setting, profile) = (sampler.setting, sampler.inner.finish());
            OverlapRow {
                setting,
                overlap: overlap(&full, &profile, Share::OfProfile),
                recorded: profile.references as f64 / full.references.max(1) as f64,
                bursts: profile.bursts,
                profile,
            }
        };
        let rows = self.samplers.into_iter().map(row).collect();
        (full, rows)
    }
}

impl Reader for OverlapExperiment {
    fn begin(&mut self, begin: &Begin) {
        self.each(|r| r.begin(begin));
    }

    fn run(&mut self, run: &Run<'_>) {
        self.each(|r| r.run(run));
    }

    fn end(&mut self, end: &End) {
        self.each(|r| r.end(end));
    }

    fn syscall(&mut self, syscall: &Syscall) {
        self.each(|r| r.syscall(syscall));
    }

    fn signal(&mut self, signal: &Signal) {
        self.each(|r| r.signal(signal));
    }

    fn gap(&mut self) {
        self.each(|r| r.gap());
    }
}

impl OverlapExperiment {
    fn each(&mut self, mut give: impl FnMut(&mut dyn Reader)) {
        give(&mut self.full);
        for sampler in &mut self.samplers {
            give(sampler);
        }
    }
}
