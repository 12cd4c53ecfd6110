//! How fast recorded buffers go through the reader interface: the rate that the consumer of a live run has, on one core.
//!
//! A trace of a program is recorded in full, its buffers are kept in memory as the probe would leave them, and played
//! to readers that do as little as possible: one counts by path, one iterates every reference and uses its address and
//! size, one uses values too. CPU time of this thread, rounds interleaved.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use sonde_event::{Count, Reader, Run};

use crate::host;
use crate::recording::Recording;
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

impl Consumer {
    /// Measures; false when the goal is missed.
    pub fn run(&self) -> Result<bool> {
        let mut recording = Recording::make(&self.sonde, &self.program, self.megabytes << 20)?;
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
}

fn page(recording: &Recording, events: u64, names: &[&str; 3], rates: &[Vec<f64>; 3]) -> String {
    let per_event = recording.bytes() as f64 / events.max(1) as f64;
    let command = recording.command();
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
