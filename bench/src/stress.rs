//! Many random settings over many programs: the output must be the native one, every time.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use sonde_harness::process::Outcome;
use sonde_harness::random::Random;
use sonde_harness::settings::{self, Mode};
use sonde_harness::support::Sonde;
use sonde_harness::trial::{Failure, Subject};
use sonde_harness::{compile, manifest, sessions};

use crate::common::Places;
use crate::workloads;

/// The hostile program that asks how often it is to get signals.
const STORM: &str = "random_signals";
/// The longest time between two of them, in microseconds.
const SLOWEST: u64 = 10_000;

/// Which programs to stress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Over {
    /// Both
    All,
    /// The hostile programs
    Hostile,
    /// The workloads
    Workloads,
}

/// Options of `sonde-bench stress`.
#[derive(Args, Debug)]
pub struct Stress {
    /// How many observed runs
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// Repeats an earlier stress; by default from the clock
    #[arg(long)]
    seed: Option<u64>,
    /// Runs at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Which programs
    #[arg(long, value_enum, default_value_t = Over::All)]
    over: Over,
    /// Only programs with this in their name
    #[arg(long, default_value = "")]
    only: String,
    /// Only modes with this in their name (bursts, always, counter, stops, perf, timer, blocks, addresses, values)
    #[arg(long, default_value = "")]
    mode: String,
    /// One run in so many is of the program that gets signals at a random rate; 0 for none besides its turn
    #[arg(long, default_value_t = 4)]
    storms: u64,
    /// The shortest time between two signals there, in microseconds
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..10_000))]
    fastest: u64,
    /// Size of the workloads' inputs; 1 is about a second of work
    #[arg(long, default_value_t = 0.05)]
    scale: f64,
    /// Folder for the built hostile programs
    #[arg(long, value_name = "DIR", default_value = "target/hostile")]
    programs: PathBuf,
    #[command(flatten)]
    places: Places,
}

/// A program with its native outcome.
struct Reference {
    subject: Subject,
    native: Outcome,
}

/// What one run came to: the mode it ran in, and the instructions recorded or what went wrong.
type Run = (Mode, Result<Option<u64>, Failure>);

impl Stress {
    /// Runs it all; true when every run was the native one.
    pub fn run(&self) -> Result<bool> {
        let sonde = self.places.sonde()?;
        let modes: Vec<Mode> =
            settings::modes(&sonde).into_iter().filter(|m| m.to_string().contains(&self.mode)).collect();
        ensure!(!modes.is_empty(), "this sonde has no mode with {:?} in its name", self.mode);
        let references = self.references()?;
        ensure!(!references.is_empty(), "no program has {:?} in its name", self.only);
        let seed = self
            .seed
            .unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()));
        sonde.refused().iter().for_each(|r| println!("not tested: {r}"));
        println!("{} runs over {} programs, --seed {seed}", self.runs, references.len());
        let done = AtomicU64::new(0);
        let numbers: Vec<u64> = (0..self.runs).collect();
        let runs = sessions::in_parallel(self.jobs, &numbers, |number| {
            let run = self.one(&sonde, &modes, &references, seed, *number);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, self.runs, &run);
            run
        });
        Ok(summary(&runs))
    }

    /// Builds, makes inputs, and runs everything natively once.
    fn references(&self) -> Result<Vec<Reference>> {
        let subjects: Vec<Subject> =
            self.subjects()?.into_iter().filter(|s| s.name.contains(&self.only)).collect();
        let natives = sessions::in_parallel(self.jobs, &subjects, Subject::native);
        subjects
            .into_iter()
            .zip(natives)
            .map(|(subject, native)| {
                Ok(Reference { subject, native: native.map_err(|f| anyhow::anyhow!("{f}"))? })
            })
            .collect()
    }

    fn subjects(&self) -> Result<Vec<Subject>> {
        let mut subjects = Vec::new();
        if self.over != Over::Workloads {
            let programs = manifest::programs()?;
            compile::build(&programs, &self.programs, self.jobs)?;
            let folder = self.programs.canonicalize()?;
            subjects
                .extend(programs.iter().filter_map(|p| Subject::hostile(p, &folder, self.places.limit())));
        }
        if self.over != Over::Hostile {
            for workload in workloads::chosen(&[])? {
                subjects.push(workload.ready(&self.places.inputs, self.scale, self.places.limit())?);
            }
        }
        Ok(subjects)
    }

    /// The run with a number depends only on the seed and the number, not on what ran before.
    fn one(&self, sonde: &Sonde, modes: &[Mode], references: &[Reference], seed: u64, number: u64) -> Run {
        let mut random = Random::named(seed, &number.to_string());
        let any = &references[random.below(references.len() as u64) as usize];
        let storm = references.iter().find(|r| r.subject.name == STORM);
        let reference = storm.filter(|_| self.storms != 0 && random.once_in(self.storms)).unwrap_or(any);
        let subject = &reference.subject;
        let hidden: Vec<Mode> = modes.iter().copied().filter(|m| m.is_hidden_from(subject.sees)).collect();
        let mode = if hidden.is_empty() { random.pick(modes) } else { random.pick(&hidden) };
        let options = settings::draw(mode, sonde, &mut random);
        let apart = random.log_uniform(self.fastest, SLOWEST);
        (mode, subject.with_signals(apart).observed(&reference.native, sonde, mode, &options))
    }
}

fn progress(done: u64, total: u64, run: &Run) {
    if let Err(failure) = &run.1 {
        println!("FAILED {failure}");
    } else if done.is_multiple_of(100) || done == total {
        println!("{done} of {total}");
    }
    // Progress for somebody who watches; when nobody can, the summary is what counts.
    let _ = std::io::stdout().flush();
}

fn summary(runs: &[Run]) -> bool {
    let mut modes: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for (mode, result) in runs {
        let [count, failed, empty] = modes.entry(mode.to_string()).or_default();
        *count += 1;
        *failed += u64::from(result.is_err());
        *empty += u64::from(matches!(result, Ok(Some(0))));
    }
    for (mode, [count, failed, empty]) in &modes {
        println!("{mode:18} {count:6} runs {failed:6} failures {empty:6} without a burst");
    }
    let failures: Vec<&Failure> = runs.iter().filter_map(|r| r.1.as_ref().err()).collect();
    let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
    failures.iter().for_each(|f| *programs.entry(&f.subject).or_default() += 1);
    programs.iter().for_each(|(name, count)| println!("failed {count} times: {name}"));
    println!("{} runs, {} failures", runs.len(), failures.len());
    failures.is_empty()
}
