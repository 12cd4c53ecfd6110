//! How fast recorded buffers go through the reader interface: the rate that the consumer of a live run has, on one core.
//!
//! A trace of a program is recorded in full, its buffers are kept in memory as the probe would leave them, and played
//! to readers that do as little as possible: one counts by path, one iterates every reference and uses its address and
//! size, one uses values too. CPU time of this thread, rounds interleaved.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_gettime};
use sonde_event::trace::{Chunk, Item, TraceReader};
use sonde_event::{Count, Decoder, Reader, Run};

use crate::host;
use crate::statistics::spread;

/// Million events a second that a counting reader must reach.
const GOAL: f64 = 300.0;

/// Measure how fast recorded buffers go through the reader interface; status 1 when the goal is missed
#[derive(clap::Args)]
pub struct Consumer {
    /// The sonde to record with
    #[arg(long, value_name = "FILE", default_value = "target/release/sonde")]
    sonde: PathBuf,
    /// Megabytes of log to keep in memory
    #[arg(long, value_name = "MB", default_value_t = 256)]
    megabytes: usize,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Where the results go; - prints only
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The program to record; `gzip` of some generated text if none is given
    #[arg(trailing_var_arg = true, value_name = "PROG")]
    program: Vec<OsString>,
}

/// Uses the address and size of every reference.
#[derive(Default)]
struct Addresses {
    events: u64,
    sum: u64,
}

impl Reader for Addresses {
    fn run(&mut self, run: &Run<'_>) {
        self.events += u64::from(run.path.blocks);
        for r in run.references() {
            self.events += r.count;
            self.sum = self.sum.wrapping_add(r.address.unwrap_or(0)).wrapping_add(u64::from(r.size));
        }
    }
}

/// Uses the value too.
#[derive(Default)]
struct Values {
    events: u64,
    sum: u64,
}

impl Reader for Values {
    fn run(&mut self, run: &Run<'_>) {
        self.events += u64::from(run.path.blocks);
        for r in run.references() {
            self.events += r.count;
            self.sum ^= r.address.unwrap_or(0).wrapping_add(r.value.unwrap_or(0));
        }
    }
}

/// A recording in memory.
struct Recording {
    decoder: Decoder,
    buffers: Vec<(i32, Vec<u64>)>,
    command: String,
}

impl Consumer {
    /// Measures; false when the goal is missed.
    pub fn run(&self) -> Result<bool> {
        let mut recording = self.record()?;
        let names = ["counting by path", "every address", "every address and value"];
        let mut rates: [Vec<f64>; 3] = Default::default();
        let mut events = 0;
        for _ in 0..self.rounds.max(1) {
            let (mut count, mut addresses, mut values) =
                (Count::default(), Addresses::default(), Values::default());
            let seconds =
                [recording.play(&mut count)?, recording.play(&mut addresses)?, recording.play(&mut values)?];
            events = count.counts.events();
            if addresses.events != events || values.events != events {
                bail!("readers disagree: {events}, {}, {} events", addresses.events, values.events);
            }
            std::hint::black_box((addresses.sum, values.sum));
            for (rates, seconds) in rates.iter_mut().zip(seconds) {
                rates.push(events as f64 / seconds / 1e6);
            }
        }
        let page = page(&recording, events, &names, &rates);
        host::keep(&self.output, &page)?;
        Ok(spread(&rates[0]).is_some_and(|s| s.median >= GOAL))
    }

    fn record(&self) -> Result<Recording> {
        let folder = tempfile::tempdir()?;
        let (trace, input) = (folder.path().join("trace"), folder.path().join("input"));
        let mut program = self.program.clone();
        if program.is_empty() {
            let lines: String =
                (0..400_000u32).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
            std::fs::write(&input, lines)?;
            program = vec!["gzip".into(), "-c".into(), input.into()];
        }
        let command: Vec<String> = program.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let status = Command::new(&self.sonde)
            .args(["trace", "record", "--policy", "always", "-o"])
            .arg(&trace)
            .arg("--")
            .args(&program)
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot run {}", self.sonde.display()))?;
        if !status.success() {
            bail!("recording {} ended with {status}", command.join(" "));
        }
        Recording::load(File::open(&trace)?, self.megabytes << 20, command.join(" "))
    }
}

impl Recording {
    /// Reads descriptions and the first `limit` bytes of log.
    fn load(file: File, limit: usize, command: String) -> Result<Recording> {
        let mut trace = TraceReader::new(file)?;
        let mut decoder = None;
        let mut buffers: Vec<(i32, Vec<u64>)> = Vec::new();
        let mut bytes = 0;
        while let Some(item) = trace.next()? {
            let Item::Chunk { chunk, .. } = item else { bail!("the trace is damaged") };
            match chunk {
                Chunk::Meta(meta) => decoder = meta.detail().map(Decoder::new),
                Chunk::Descriptions(mut words) => {
                    let decoder = decoder.as_mut().context("no meta chunk")?;
                    while !words.is_empty() {
                        let len = words[0] as u32 as usize / 8;
                        let rest = words.split_off(len);
                        decoder.describe(&words)?;
                        words = rest;
                    }
                }
                Chunk::Log { tid, words } if bytes < limit => {
                    bytes += words.len() * 8;
                    buffers.push((tid, words));
                }
                _ => {}
            }
        }
        Ok(Recording { decoder: decoder.context("no meta chunk")?, buffers, command })
    }

    /// Plays all buffers through the interface that a live session uses; returns seconds of CPU time.
    fn play(&mut self, reader: &mut dyn Reader) -> Result<f64> {
        let before = thread_time()?;
        for (tid, words) in &self.buffers {
            self.decoder.log(*tid, words, reader)?;
        }
        Ok((thread_time()? - before).as_secs_f64())
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(|(_, words)| words.len() * 8).sum()
    }
}

/// CPU time of this thread.
fn thread_time() -> Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("clock_gettime")?))
}

fn page(recording: &Recording, events: u64, names: &[&str; 3], rates: &[Vec<f64>; 3]) -> String {
    let per_event = recording.bytes() as f64 / events.max(1) as f64;
    let command: String =
        recording.command.split(' ').map(|w| w.rsplit('/').next().unwrap_or(w)).collect::<Vec<_>>().join(" ");
    let mut page = host::heading("From buffers through the reader interface, one core");
    page += &format!(
        "\nRecorded in full with values: `{command}`; {:.1} million events (blocks, loads, stores), {per_event:.1} bytes of log each. \
         Goal: {GOAL:.0} million events a second into a counting reader.\n\n\
         | reader | million events/s | lowest | highest | GB of log/s |\n|---|---|---|---|---|\n",
        events as f64 / 1e6
    );
    for (name, rates) in names.iter().zip(rates) {
        if let Some(s) = spread(rates) {
            let gigabytes = s.median * per_event / 1e3;
            page +=
                &format!("| {name} | {:.0} | {:.0} | {:.0} | {gigabytes:.1} |\n", s.median, s.low, s.high);
        }
    }
    page
}
