//! How far the shares of functions are from what perf says, on real programs and on ones that wait for memory.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use sonde_harness::process::Job;

use crate::common::Places;
use crate::known::{self, MEMORY_BOUND};
use crate::perf::Samples;
use crate::{perf, shares, workloads};

/// `sonde-bench truth`.
#[derive(Args)]
pub struct CompareShares {
    #[command(flatten)]
    places: Places,
    /// Workloads and memory-bound programs; all if none is named
    programs: Vec<String>,
    /// Size of the workloads' inputs: 1 is about one second of work for each
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Samples of perf in a second
    #[arg(long, value_name = "N", default_value_t = 999)]
    frequency: u32,
}

/// Functions that have less by both are left out.
const LEAST: f64 = 0.01;

/// What came out for one program.
#[derive(Clone, Debug, Default, PartialEq)]
struct Compared {
    functions: usize,
    root_mean_square: f64,
    /// What the root mean square would be if both drew at random from the same shares.
    by_chance: f64,
    worst: (String, f64, f64),
}

impl CompareShares {
    /// Prints a table.
    pub fn run(&self) -> Result<()> {
        let sonde = self.places.sonde()?;
        let folder = tempfile::tempdir()?;
        println!(
            "| program | samples | bursts | functions | root mean square, points | by chance | farthest off: perf, Sonde |"
        );
        println!("|---|---|---|---|---|---|---|");
        for (name, job) in self.jobs(folder.path())? {
            let samples = perf::sample(&job, self.frequency, folder.path())?;
            let report = shares::report(&sonde.path, &job, 1, folder.path())?;
            let bursts = shares::bursts(&report);
            let compared = compare(&samples, &shares::functions(&report), bursts);
            let (worst, by_perf, by_sonde) = &compared.worst;
            println!(
                "| {name} | {} | {bursts} | {} | {:.1} | {:.1} | {worst}: {:.1} %, {:.1} % |",
                samples.all,
                compared.functions,
                100.0 * compared.root_mean_square,
                100.0 * compared.by_chance,
                100.0 * by_perf,
                100.0 * by_sonde
            );
        }
        Ok(())
    }

    fn jobs(&self, folder: &Path) -> Result<Vec<(String, Job)>> {
        let own = |name: &String| MEMORY_BOUND.iter().any(|known| known.name == *name);
        let (own, real): (Vec<String>, Vec<String>) = self.programs.iter().cloned().partition(own);
        let mut jobs = Vec::new();
        if !real.is_empty() || self.programs.is_empty() {
            for workload in workloads::chosen(&real)? {
                let subject = workload.ready(&self.places.inputs, self.scale, self.places.limit())?;
                jobs.push((subject.name.clone(), Job { discard: true, ..subject.job }));
            }
        }
        known::build(folder)?;
        let chosen = |name: &str| self.programs.is_empty() || own.iter().any(|own| own == name);
        for program in MEMORY_BOUND.iter().filter(|known| chosen(known.name)) {
            jobs.push((program.name.into(), program.job(folder, None, self.places.limit())));
        }
        Ok(jobs)
    }
}

fn compare(samples: &Samples, functions: &[(String, String, f64)], bursts: u64) -> Compared {
    let by_sonde = |key: &(String, String)| {
        let its = functions.iter().filter(|(module, name, _)| *module == key.0 && *name == key.1);
        its.map(|(_, _, share)| share).sum::<f64>()
    };
    let named = functions.iter().map(|(module, name, _)| (module.clone(), name.clone()));
    let keys: BTreeSet<(String, String)> = samples.functions.keys().cloned().chain(named).collect();
    let (mut squares, mut chance, mut compared) = (0.0, 0.0, Compared::default());
    for key in keys {
        let (perf, sonde) = (samples.share(&key), by_sonde(&key));
        if perf.max(sonde) < LEAST {
            continue;
        }
        compared.functions += 1;
        squares += (perf - sonde).powi(2);
        let draws = 1.0 / samples.all.max(1) as f64 + 1.0 / bursts.max(1) as f64;
        chance += perf * (1.0 - perf) * draws;
        if (perf - sonde).abs() >= (compared.worst.1 - compared.worst.2).abs() {
            compared.worst = (key.1, perf, sonde);
        }
    }
    let n = compared.functions.max(1) as f64;
    Compared { root_mean_square: (squares / n).sqrt(), by_chance: (chance / n).sqrt(), ..compared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_compared_by_module_and_name() {
        let key = |name: &str| ("m".to_owned(), name.to_owned());
        let functions = [(key("a"), 60), (key("b"), 40)].into_iter().collect();
        let samples = Samples { functions, all: 100 };
        let row = |name: &str, share| ("m".to_owned(), name.to_owned(), share);
        let same = compare(&samples, &[row("a", 0.6), row("b", 0.4)], 100);
        assert!(same.functions == 2 && same.root_mean_square < 1e-9, "{same:?}");
        let off = compare(&samples, &[row("a", 0.5), row("c", 0.5), row("d", 0.001)], 100);
        assert_eq!((off.functions, off.worst.0.as_str()), (3, "c"));
        let expected = ((0.01 + 0.16 + 0.25) / 3.0f64).sqrt();
        assert!((off.root_mean_square - expected).abs() < 1e-9, "{off:?}");
    }
}
