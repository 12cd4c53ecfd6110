//! What an exhaustive run with every tree and the calls costs: CPU time of all processes and elapsed time over native, with
//! one consumer and with two.
//!
//! CPU time is what a machine that others use has to give; elapsed time is what a person waits, and less than that where the
//! consumer has a core beside the program's. It is only to be trusted where nobody else needs the cores.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use sonde_harness::process::Job;
use sonde_harness::support::Sonde;
use sonde_harness::trial::{self, Subject};

use crate::common::Places;
use crate::statistics::{self, Spread};
use crate::summarize::RANGES;
use crate::workloads;
use crate::{cpu_time, host};

/// Options of `sonde-bench exhaustive`.
#[derive(Args, Debug)]
pub struct Exhaustive {
    /// The workloads; gzip if none are given
    workloads: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Size of the inputs; 1 is about a second of native work
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Most consumers
    #[arg(long, default_value_t = 2)]
    consumers: usize,
    /// Limit on the memory of all summaries, as `sonde run` takes it
    #[arg(long, default_value = "64M")]
    max_memory: String,
    /// Where the table goes; - for standard output only
    #[arg(long, short, default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    places: Places,
}

/// Seconds of a run.
#[derive(Clone, Copy)]
struct Seconds {
    cpu: f64,
    elapsed: f64,
}

/// Ratios to native, one for each round.
#[derive(Clone, Default)]
struct Ratios {
    cpu: Vec<f64>,
    elapsed: Vec<f64>,
}

impl Exhaustive {
    /// Measures and writes the page.
    pub fn run(&self) -> Result<()> {
        let sonde = self.places.sonde()?;
        let names = if self.workloads.is_empty() { &["gzip".to_owned()][..] } else { &self.workloads };
        let mut page = host::heading("Exhaustive runs with every tree and calls");
        page += &format!(
            "\n`sonde run --policy always --what {RANGES} --max-memory {}`. CPU time (user and system) of all processes and elapsed \
             time, over native in the same round: median (smallest-largest) of {} rounds at scale {}.\n\n\
             | | native, s | consumers | CPU time | elapsed |\n|---|---|---|---|---|\n",
            self.max_memory, self.rounds, self.scale
        );
        for workload in workloads::chosen(names)? {
            let subject = workload.ready(&self.places.inputs, self.scale, self.places.limit())?;
            let (native, ratios) = self.interleaved(&subject, &sonde)?;
            for (consumers, ratios) in (1..).zip(&ratios) {
                let [cpu, elapsed] = [&ratios.cpu, &ratios.elapsed].map(|r| cell(statistics::spread(r)));
                page += &format!("| {} | {native:.2} | {consumers} | {cpu} | {elapsed} |\n", subject.name);
            }
        }
        host::keep(&self.output, &page)
    }

    /// Median CPU seconds of native runs, and the ratios for each number of consumers.
    fn interleaved(&self, subject: &Subject, sonde: &Sonde) -> Result<(f64, Vec<Ratios>)> {
        let mut ratios = vec![Ratios::default(); self.consumers.max(1)];
        let mut natives = Vec::new();
        let folder = tempfile::tempdir()?;
        for round in 1..=self.rounds.max(1) {
            let native = seconds(&subject.job)?.0;
            natives.push(native.cpu);
            for (consumers, ratios) in (1..).zip(&mut ratios) {
                let (spent, summary) = seconds(&self.job(subject, sonde, consumers, folder.path()))?;
                ensure!(trial::log_bytes(&summary) > Some(0), "{}: nothing was recorded", subject.name);
                ratios.cpu.push(spent.cpu / native.cpu);
                ratios.elapsed.push(spent.elapsed / native.elapsed);
                eprintln!(
                    "{} round {round} of {}, consumers {consumers}: {:.1} of {:.2} s CPU time, {:.1} of {:.2} s elapsed",
                    subject.name,
                    self.rounds,
                    spent.cpu / native.cpu,
                    native.cpu,
                    spent.elapsed / native.elapsed,
                    native.elapsed
                );
            }
        }
        Ok((statistics::spread(&natives).map_or(0.0, |s| s.median), ratios))
    }

    /// A profile is written: only then everything that was asked for is made.
    fn job(&self, subject: &Subject, sonde: &Sonde, consumers: usize, folder: &Path) -> Job {
        let profile = folder.join("profile.sonde");
        let mut options: Vec<String> = ["--policy", "always", "--what", RANGES].map(Into::into).into();
        options.extend(["--consumers".into(), consumers.to_string()]);
        options.extend(["--max-memory".into(), self.max_memory.clone()]);
        options.extend(["-o".into(), profile.to_string_lossy().into_owned()]);
        options.push(format!("--json={}", trial::SUMMARY));
        Job { summary: Some(trial::SUMMARY.into()), ..subject.observed_job(sonde, &options) }
    }
}

/// What a run took, and what sonde wrote.
fn seconds(job: &Job) -> Result<(Seconds, Vec<u8>)> {
    let begin = Instant::now();
    let (cpu, summary) = cpu_time::of(job)?;
    Ok((Seconds { cpu: cpu.as_secs_f64(), elapsed: begin.elapsed().as_secs_f64() }, summary))
}

fn cell(spread: Option<Spread>) -> String {
    spread.map_or("-".into(), |s| format!("{:.1} ({:.1}-{:.1})", s.median, s.low, s.high))
}
