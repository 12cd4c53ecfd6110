//! Whether error bars are honest: how often a 95 % bar holds a truth that is known.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;

use crate::common::Places;
use crate::known::{self, Known, Knows, Truth, WITH_TRUTH, truths};
use crate::{perf, shares};

/// `sonde-bench coverage`.
#[derive(Args)]
pub struct Coverage {
    #[command(flatten)]
    places: Places,
    /// Programs; all if none is named
    programs: Vec<String>,
    /// Runs of each program, each with another seed
    #[arg(long, value_name = "N", default_value_t = 60)]
    runs: u64,
    /// Print every bar that does not hold its truth
    #[arg(long)]
    verbose: bool,
}

/// How often bars may hold the truth: fewer than the lowest are too short, more than the highest too long.
const HONEST: std::ops::RangeInclusive<f64> = 0.93..=0.99;

/// Samples a second, and runs, for a truth that only perf knows: enough that its own error is small beside a bar.
const FREQUENCY: u32 = 3999;
const SAMPLED_RUNS: u32 = 4;

/// Bars of a section.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    held: u64,
    bars: u64,
    /// Rows with a truth that the report does not have.
    absent: u64,
    /// Squares of what was said less what is true, added up, and the errors said.
    squares: f64,
    plus_minus: f64,
}

impl Tally {
    fn share(&self) -> f64 {
        self.held as f64 / (self.bars + self.absent).max(1) as f64
    }

    fn is_honest(&self) -> bool {
        HONEST.contains(&self.share())
    }

    fn row(&self, program: &str, section: &str) -> String {
        let (bars, all) = (self.bars.max(1) as f64, self.bars + self.absent);
        let chance = 1.96 * (self.share() * (1.0 - self.share()) / all.max(1) as f64).sqrt();
        format!(
            "| {program} | {section} | {all} | {} | {:.1} % ± {:.1} | {:.1} | {:.1} | {} |",
            self.absent,
            100.0 * self.share(),
            100.0 * chance,
            100.0 * (self.squares / bars).sqrt(),
            100.0 * self.plus_minus / bars,
            if self.is_honest() { "yes" } else { "NO" }
        )
    }
}

impl Coverage {
    /// Prints a table; false if any section's bars are not honest.
    pub fn run(&self) -> Result<bool> {
        let sonde = self.places.sonde()?;
        let known = |name: &String| WITH_TRUTH.iter().any(|program| program.name == *name);
        let names: Vec<&str> = WITH_TRUTH.iter().map(|program| program.name).collect();
        if let Some(name) = self.programs.iter().find(|name| !known(name)) {
            anyhow::bail!("no program is called {name}; there are: {}", names.join(", "));
        }
        ensure!(self.runs > 0, "--runs must be at least 1");
        let folder = tempfile::tempdir()?;
        known::build(folder.path())?;
        println!(
            "| program | section | rows | absent | 95 % bars that hold the truth | off by, root mean square | mean ± | 93..99 % |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let mut honest = true;
        let chosen =
            |known: &&Known| self.programs.is_empty() || self.programs.iter().any(|p| p == known.name);
        for program in WITH_TRUTH.iter().filter(chosen) {
            let tallies = self.tally(program, &sonde.path, folder.path())?;
            for (section, tally) in &tallies {
                println!("{}", tally.row(program.name, section));
            }
            honest &= tallies.values().all(Tally::is_honest);
        }
        Ok(honest)
    }

    fn tally(&self, program: &Known, sonde: &Path, folder: &Path) -> Result<BTreeMap<String, Tally>> {
        let (file, limit) = (folder.join("truth"), self.places.limit());
        let lasting = match program.knows {
            Knows::Itself => None,
            Knows::Perf(functions) => Some(sampled(program, functions, folder, limit)?),
        };
        let job = program.job(folder, lasting.is_none().then_some(&*file), limit);
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for seed in 1..=self.runs {
            let report = shares::report(sonde, &job, seed, folder)?;
            let own = || truths(&std::fs::read_to_string(&file)?);
            for truth in lasting.clone().map_or_else(own, Ok)? {
                let bar = shares::bar(&report, &truth.section, &truth.name);
                tallies.entry(truth.section.clone()).or_default().add(&truth, bar);
                if self.verbose && !bar.is_some_and(|bar| bar.holds(truth.share)) {
                    eprintln!("{} seed {seed}: {truth:?}, not {bar:?}", program.name);
                }
            }
        }
        Ok(tallies)
    }
}

impl Tally {
    fn add(&mut self, truth: &Truth, bar: Option<shares::Bar>) {
        let Some(bar) = bar else { return self.absent += 1 };
        self.bars += 1;
        self.held += u64::from(bar.holds(truth.share));
        self.squares += (bar.share - truth.share).powi(2);
        self.plus_minus += bar.plus_minus;
    }
}

fn sampled(program: &Known, functions: &[&str], folder: &Path, limit: Duration) -> Result<Vec<Truth>> {
    let mut samples = perf::Samples::default();
    for _ in 0..SAMPLED_RUNS {
        samples.add(perf::sample(&program.job(folder, None, limit), FREQUENCY, folder)?);
    }
    let truth = |name: &&str| Truth {
        section: "functions".into(),
        name: (*name).into(),
        share: samples.share_of_name(name),
    };
    Ok(functions.iter().map(truth).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_honest_if_they_hold_neither_too_seldom_nor_too_often() {
        let tally = |held, bars, absent| Tally { held, bars, absent, ..Tally::default() };
        assert!(tally(95, 100, 0).is_honest());
        assert!(!tally(90, 100, 0).is_honest() && !tally(100, 100, 0).is_honest());
        assert!(!tally(95, 95, 10).is_honest(), "a row that is not there holds nothing");
        let truth = Truth { section: "functions".into(), name: "f".into(), share: 0.5 };
        let mut some = Tally::default();
        some.add(&truth, Some(shares::Bar { share: 0.6, plus_minus: 0.2 }));
        some.add(&truth, Some(shares::Bar { share: 0.8, plus_minus: 0.2 }));
        some.add(&truth, None);
        assert_eq!((some.held, some.bars, some.absent), (1, 2, 1));
        assert!((some.squares - 0.1).abs() < 1e-9);
    }
}
