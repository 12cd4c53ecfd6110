//! Writes what a session records to a trace file, while it runs.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use sonde_event::maps::Mapping;
use sonde_event::trace::{End, Machine, Meta, TraceWriter};
use sonde_launch::{Exit, Options, Policy, Program, Served, Setup, Tap, TriggerKind};

use crate::counters;
use crate::outcome::CannotWrite;

/// A file for a trace, still empty.
pub struct Fresh {
    path: PathBuf,
    file: File,
}

/// A trace file that is being written.
pub struct Recorder {
    path: PathBuf,
    writer: TraceWriter<BufWriter<File>>,
}

impl Fresh {
    /// Begins the trace, now that it is known how it is recorded.
    pub fn begin(self, program: &Program, options: &Options, setup: &Setup) -> Result<Recorder> {
        let writer = TraceWriter::new(BufWriter::new(self.file), &meta(program, options, setup));
        Ok(Recorder { path: self.path, writer: writer.map_err(CannotWrite)? })
    }
}

impl Recorder {
    /// Makes the file.
    pub fn create(path: &Path) -> Result<Fresh> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Fresh { path: path.to_owned(), file })
    }

    /// Ends the file and returns its size.
    pub fn finish(self, served: &Served) -> Result<u64> {
        let path = self.path.display().to_string();
        let end = end(served);
        self.writer.finish(&end).map_err(CannotWrite).with_context(|| format!("writing {path}"))?;
        Ok(fs::metadata(&self.path).map_or(0, |m| m.len()))
    }
}

impl Tap for Recorder {
    fn description(&mut self, words: &[u64]) {
        self.writer.description(words);
    }

    fn log(&mut self, tid: i32, words: &[u64]) {
        self.writer.log(tid, words);
    }

    fn mapping(&mut self, mapping: &Mapping) {
        self.writer.mapping(mapping);
    }
}

fn meta(program: &Program, options: &Options, setup: &Setup) -> Meta {
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    Meta {
        sonde: env!("CARGO_PKG_VERSION").into(),
        command: program.args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        path: program.path.display().to_string(),
        detail: sonde_event::trace::detail_name(options.detail).into(),
        policy: match options.policy {
            Policy::Bursts { period, checks } => format!("bursts of {checks} checks every {period:?}"),
            Policy::Always => "always".into(),
            Policy::Counter { gap, checks } => match options.scheme.name() {
                Some("orig") | None => format!("counter {gap}:{checks}"),
                Some(scheme) => format!("counter {gap}:{checks}, checks {scheme}"),
            },
        },
        trigger: match setup.trigger {
            Some(TriggerKind::Stops) => "stops".into(),
            Some(TriggerKind::Perf) => "perf".into(),
            Some(TriggerKind::Timer) => "timer".into(),
            None => "none".into(),
        },
        loader: setup.loader.to_string(),
        started,
        machine: machine(),
    }
}

/// This machine.
pub fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model.lines().find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    Machine {
        processor: model.map_or_else(String::new, |(_, name)| name.trim().to_owned()),
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

fn end(served: &Served) -> End {
    let totals = &served.totals;
    End {
        status: if let Exit::Status(status) = served.exit { Some(status) } else { None },
        signal: if let Exit::Signal(signal) = served.exit { Some(signal) } else { None },
        cpu_seconds: totals.cpu.as_secs_f64(),
        wall_seconds: totals.wall.as_secs_f64(),
        ticks_per_second: totals.ticks_per_second,
        log_bytes: totals.log_bytes,
        counters: counters::by_name(totals),
    }
}
