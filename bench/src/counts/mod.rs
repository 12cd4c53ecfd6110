//! Whether exhaustive counts are right: instructions against callgrind, loads and stores against lackey.

mod valgrind;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use sonde_harness::process::{self, Job};
use sonde_harness::support::Sonde;
use sonde_harness::trial::Subject;
use sonde_harness::{compile, manifest};

use self::valgrind::Counts;
use crate::common::Places;
use crate::{host, workloads};

/// Hostile programs that are single-threaded and do not depend on how fast they run.
const PROGRAMS: [&str; 7] =
    ["computed_goto", "jump_table", "tail_calls", "long_jump", "flags", "odd_code", "rep_string"];

/// Options of `sonde-bench counts`.
#[derive(Args, Debug)]
pub struct CompareCounts {
    /// Only workloads and programs with these names
    names: Vec<String>,
    /// Size of the workloads' inputs
    #[arg(long, default_value_t = 0.02)]
    scale: f64,
    /// Work of the hostile programs in percent
    #[arg(long, default_value_t = 10)]
    work: u32,
    /// Instructions only, without the slow lackey
    #[arg(long)]
    no_lackey: bool,
    /// Where the table goes; - for standard output only
    #[arg(long, short, default_value = "bench/results/counts.md")]
    output: PathBuf,
    /// Folder for the built hostile programs
    #[arg(long, value_name = "DIR", default_value = "target/hostile")]
    programs: PathBuf,
    #[command(flatten)]
    places: Places,
}

impl CompareCounts {
    /// Compares and writes the page.
    pub fn run(&self) -> Result<()> {
        let sonde = self.places.sonde()?;
        let needed = [("--policy", "always"), ("--record", "values"), ("--json", "")];
        for (option, value) in needed {
            ensure!(sonde.accepts(option, value), "this sonde has no {option} {value}");
        }
        let mut page = host::heading("Counts of the exhaustive mode");
        page += "\nInstructions against `valgrind --tool=callgrind`, loads and stores against `--tool=lackey --trace-mem=yes`.\n\n";
        page += "| | instructions | callgrind | difference | loads | lackey | difference | stores | lackey | difference |\n|---|---|---|---|---|---|---|---|---|---|\n";
        for subject in self.subjects()? {
            let line = self.row(&subject, &sonde).with_context(|| subject.name.clone())?;
            eprint!("{line}");
            page += &line;
        }
        host::keep(&self.output, &page)
    }

    fn subjects(&self) -> Result<Vec<Subject>> {
        let wanted = |name: &str| self.names.is_empty() || self.names.iter().any(|n| n == name);
        let mut subjects = Vec::new();
        for workload in workloads::chosen(&[])?.iter().filter(|w| w.threads == 1 && wanted(&w.name)) {
            subjects.push(workload.ready(&self.places.inputs, self.scale, self.places.limit())?);
        }
        let programs: Vec<_> = manifest::programs()?
            .into_iter()
            .filter(|p| PROGRAMS.contains(&p.name.as_str()) && wanted(&p.name))
            .collect();
        compile::build(&programs, &self.programs, 2)?;
        let folder = self.programs.canonicalize()?;
        for mut subject in programs.iter().filter_map(|p| Subject::hostile(p, &folder, self.places.limit())) {
            subject.job.environment = vec![("SONDE_WORK".into(), self.work.to_string())];
            subjects.push(subject);
        }
        ensure!(
            !subjects.is_empty(),
            "no single-threaded workload or program has one of these names: {:?}",
            self.names
        );
        Ok(subjects)
    }

    fn row(&self, subject: &Subject, sonde: &Sonde) -> Result<String> {
        let ours = observed(subject, sonde)?;
        let instructions = valgrind::callgrind(&subject.job)?;
        let mut cells = vec![subject.name.clone()];
        cells.extend(compared(ours.instructions, Some(instructions)));
        let theirs = if self.no_lackey { None } else { Some(valgrind::lackey(&subject.job)?) };
        cells.extend(compared(ours.loads, theirs.map(|c| c.loads)));
        cells.extend(compared(ours.stores, theirs.map(|c| c.stores)));
        Ok(format!("| {} |\n", cells.join(" | ")))
    }
}

/// Ours, theirs, and how far ours is from theirs.
fn compared(ours: u64, theirs: Option<u64>) -> [String; 3] {
    let difference =
        theirs.map_or("-".into(), |t| format!("{:+.3} %", (ours as f64 / t as f64 - 1.0) * 100.0));
    [ours.to_string(), theirs.map_or("-".into(), |t| t.to_string()), difference]
}

/// Runs the subject in the exhaustive mode and reads sonde's own summary.
fn observed(subject: &Subject, sonde: &Sonde) -> Result<Counts> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("summary.json");
    let options = ["--policy", "always", "--record", "values"]
        .map(String::from)
        .into_iter()
        .chain([format!("--json={}", file.display())]);
    let job = Job { discard: true, ..subject.observed_job(sonde, &options.collect::<Vec<_>>()) };
    let outcome = process::run(&job)?;
    ensure!(outcome.ending == subject.ending, "{}: {}", process::shell_line(&job), outcome.ending);
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("{} wrote no summary", process::shell_line(&job)))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Counts> {
    let summary: serde_json::Value = serde_json::from_str(text).context("sonde's summary is not JSON")?;
    let number = |key: &str| {
        summary
            .get(key)
            .and_then(serde_json::Value::as_u64)
            .with_context(|| format!("sonde's summary has no number {key:?}"))
    };
    Ok(Counts { instructions: number("instructions")?, loads: number("loads")?, stores: number("stores")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_and_gaps_named() {
        let counts = parse(r#"{"instructions": 5, "loads": 3, "stores": 2, "other": []}"#).unwrap();
        assert_eq!(counts, Counts { instructions: 5, loads: 3, stores: 2 });
        assert!(parse(r#"{"instructions": 5}"#).unwrap_err().to_string().contains("loads"));
        assert!(parse("no").unwrap_err().to_string().contains("not JSON"));
    }

    #[test]
    fn differences_are_in_percent_of_theirs() {
        assert_eq!(compared(1001, Some(1000)), ["1001", "1000", "+0.100 %"]);
        assert_eq!(compared(5, None), ["5", "-", "-"]);
    }
}
