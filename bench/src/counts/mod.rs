//! Whether exhaustive counts are right: instructions against callgrind, loads and stores against lackey.

mod alike;
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

const INTRODUCTION: &str = "
Instructions (with `repetitions`, as valgrind counts them) against `valgrind --tool=callgrind`, loads and stores against
`--tool=lackey --trace-mem=yes`, these on smaller inputs. Both runs take the plainest variants of the C library's
functions, fixed hash seeds and one thread (`bench/src/counts/alike.rs`): otherwise they run different code, since
valgrind shows a plainer processor.
Goals: instructions within 0.1 %, loads and stores within 1 %.

";

const EXPLANATION: &str = "
What remains:
- *Start of the program*, about 20,000 instructions, more for programs with many symbols: valgrind preloads a library of
  its own, whose linking counts; it adds variables to the environment, which the C library searches for tunables; its
  processor calls itself an Intel one, whose caches the C library looks up in another way. With the same library
  preloaded in both runs (`LD_PRELOAD=vgpreload_core-amd64-linux.so`) `lame` differs by 500 instructions of 1.1
  billion.
- *Loads and stores* differ by the same start: 4,000 to 60,000 loads and 1,000 to 10,000 stores, which shows where the small
  inputs make short runs (`sort`, `tiffcp`, `tail_calls`).
- *Bit tests*: valgrind runs `bt` on registers through memory below the stack, and lackey reports those accesses: 93,000
  loads and stores of `djpeg` that the program does not make.
- *The vdso* runs natively in neither: valgrind replaces it by system calls, Sonde records it as any code.
- *Repeated comparisons* that find a difference at the very last element count one too many here (the log holds rcx,
  not flags).
- *Programs that go native*: `flags` (popf) and `odd_code` run instructions that are not copied, after which the thread is
  not recorded until a tick later; the exhaustive mode is not exhaustive there, and says so (`burst_ends`).
- A dash: valgrind does not run the program (it does not know an instruction of `rep_string`).
";

/// Options of `sonde-bench counts`.
#[derive(Args, Debug)]
pub struct CompareCounts {
    /// Only workloads and programs with these names
    names: Vec<String>,
    /// Size of the workloads' inputs
    #[arg(long, default_value_t = 0.05)]
    scale: f64,
    /// Size of the inputs for loads and stores, since lackey writes a line for each of them
    #[arg(long, default_value_t = 0.002)]
    lackey_scale: f64,
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
        page += INTRODUCTION;
        page += "| | instructions | callgrind | difference | loads | lackey | difference | stores | lackey | difference |\n|---|---|---|---|---|---|---|---|---|---|\n";
        for (large, small) in self.subjects(self.scale)?.iter().zip(&self.subjects(self.lackey_scale)?) {
            let line = self.row(large, small, &sonde).with_context(|| large.name.clone())?;
            eprint!("{line}");
            page += &line;
        }
        page += EXPLANATION;
        host::keep(&self.output, &page)
    }

    fn subjects(&self, scale: f64) -> Result<Vec<Subject>> {
        let wanted = |name: &str| self.names.is_empty() || self.names.iter().any(|n| n == name);
        let mut subjects = Vec::new();
        // Sorting can be told to use one thread.
        let single = |w: &workloads::Workload| w.threads == 1 || w.name == "sort";
        for workload in workloads::chosen(&[])?.iter().filter(|w| single(w) && wanted(&w.name)) {
            subjects.push(workload.ready(&self.places.inputs, scale, self.places.limit())?);
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
        Ok(subjects.into_iter().map(alike::alike).collect())
    }

    fn row(&self, large: &Subject, small: &Subject, sonde: &Sonde) -> Result<String> {
        let mut cells = vec![large.name.clone()];
        let instructions = valgrind::callgrind(large)?;
        cells.extend(compared(observed(large, sonde)?.instructions, instructions));
        let ours = observed(small, sonde)?;
        let wanted = !self.no_lackey && instructions.is_some();
        let theirs = wanted.then(|| valgrind::lackey(&small.job)).transpose()?;
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
    // Valgrind goes through a repeated string instruction once for each repetition.
    let instructions = number("instructions")?.saturating_add(number("repetitions")?);
    Ok(Counts { instructions, loads: number("loads")?, stores: number("stores")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_read_and_gaps_named() {
        let counts =
            parse(r#"{"instructions": 4, "repetitions": 1, "loads": 3, "stores": 2, "other": []}"#).unwrap();
        assert_eq!(counts, Counts { instructions: 5, loads: 3, stores: 2 });
        assert!(parse(r#"{"instructions": 5, "repetitions": 0}"#).unwrap_err().to_string().contains("loads"));
        assert!(parse("no").unwrap_err().to_string().contains("not JSON"));
    }

    #[test]
    fn differences_are_in_percent_of_theirs() {
        assert_eq!(compared(1001, Some(1000)), ["1001", "1000", "+0.100 %"]);
        assert_eq!(compared(5, None), ["5", "-", "-"]);
    }
}
