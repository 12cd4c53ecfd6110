//! What observing costs: CPU time over native for every workload in every way, in paired and interleaved runs.
//!
//! In each round every column runs once, native first, then the others in an order that turns from round to round; a ratio
//! compares runs of the same round only. So slow drifts of a shared machine cancel out.

mod columns;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use sonde_harness::support::Sonde;
use sonde_harness::trial::{self, Subject};

use self::columns::{Column, Group};
use self::table::{Cost, Row};
use crate::common::Places;
use crate::statistics;
use crate::workloads::{self, Workload};
use crate::{cpu_time, host};

/// Options of `sonde-bench overhead`.
#[derive(Args, Debug)]
pub struct Overhead {
    /// Only these workloads
    workloads: Vec<String>,
    /// Rounds of the columns close to native
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Rounds of the exhaustive columns
    #[arg(long, default_value_t = 3)]
    heavy_rounds: usize,
    /// Size of the inputs for the columns close to native; 5 gives runs of about 5 s
    #[arg(long, default_value_t = 6.0)]
    scale: f64,
    /// Size of the inputs for the exhaustive columns
    #[arg(long, default_value_t = 1.0)]
    heavy_scale: f64,
    /// Size of the inputs for lackey
    #[arg(long, default_value_t = 0.02)]
    lackey_scale: f64,
    /// Only columns with this in their title
    #[arg(long, default_value = "")]
    column: String,
    /// Where the table goes; - for standard output only
    #[arg(long, short, default_value = "bench/results/overhead.md")]
    output: PathBuf,
    #[command(flatten)]
    places: Places,
}

impl Overhead {
    /// Measures and writes the page.
    pub fn run(&self) -> Result<()> {
        let sonde = self.places.sonde()?;
        let (columns, missing) = columns::possible(&sonde);
        let columns: Vec<Column> = columns.into_iter().filter(|c| c.title.contains(&self.column)).collect();
        let chosen = workloads::chosen(&self.workloads)?;
        let mut failed = Vec::new();
        let rows = chosen
            .iter()
            .map(|w| self.row(w, &columns, &sonde, &mut failed))
            .collect::<Result<Vec<Row>>>()?;
        let titles: Vec<&str> = columns.iter().map(|c| c.title).collect();
        let tables = [Cost::program, Cost::all].map(|part| table::markdown(&titles, &rows, part));
        let page = self.page(&tables, &missing, &failed);
        host::keep(&self.output, &page)
    }

    fn page(&self, [program, all]: &[String; 2], missing: &[&str], failed: &[String]) -> String {
        let mut page = host::heading("Overhead");
        page += &format!(
            "\nCPU time (user and system) over native in the same round: median (smallest-largest).\n\
             {} rounds at scale {} close to native, {} at scale {} exhaustive, one at scale {} for lackey; 1 is about a second of native work.\n\
             The exhaustive columns throw away what was recorded, unread (`--discard`); the others make the report that `sonde run` makes.\n\n\
             ## The program\n\nWhat the program itself takes, the probe in it included; for valgrind that is all.\n\n{program}\n\
             ## All processes\n\nWith Sonde's own process beside it, which reads, summarizes and reports.\n\n{all}",
            self.rounds, self.scale, self.heavy_rounds, self.heavy_scale, self.lackey_scale
        );
        if !missing.is_empty() {
            page += &format!("\nNot measured, this sonde does not offer it: {}.\n", missing.join(", "));
        }
        if !failed.is_empty() {
            page += &format!(
                "\nRuns that failed and are in no cell:\n\n    {}\n",
                failed.join("\n").replace('\n', "\n    ")
            );
        }
        page
    }

    fn row(
        &self,
        workload: &Workload,
        columns: &[Column],
        sonde: &Sonde,
        failed: &mut Vec<String>,
    ) -> Result<Row> {
        let mut row =
            Row { name: workload.name.clone(), native: None, costs: vec![Cost::default(); columns.len()] };
        for group in [Group::Light, Group::Heavy, Group::Lackey] {
            let members: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].group == group).collect();
            if members.is_empty() {
                continue;
            }
            let (scale, rounds, limit) = self.extent(group);
            let subject = workload.ready(&self.places.inputs, scale, limit)?;
            let ways: Vec<&Column> = members.iter().map(|&i| &columns[i]).collect();
            let (native, costs) = interleaved(&subject, &ways, rounds, sonde, failed)?;
            row.native = row.native.or(native);
            members.iter().zip(costs).for_each(|(&i, cost)| row.costs[i] = cost);
        }
        Ok(row)
    }

    /// Scale, rounds and time limit of a group.
    fn extent(&self, group: Group) -> (f64, usize, Duration) {
        match group {
            Group::Light => (self.scale, self.rounds, self.places.limit()),
            Group::Heavy => (self.heavy_scale, self.heavy_rounds, self.places.limit()),
            Group::Lackey => (self.lackey_scale, 1, self.places.limit() * 20),
        }
    }
}

/// Median seconds of the native runs, and the ratios of the columns to the native run of their round.
fn interleaved(
    subject: &Subject,
    columns: &[&Column],
    rounds: usize,
    sonde: &Sonde,
    failed: &mut Vec<String>,
) -> Result<(Option<f64>, Vec<Cost>)> {
    let mut native_seconds = Vec::new();
    let mut ratios = vec![(Vec::new(), Vec::new()); columns.len()];
    for round in 0..rounds {
        let native = cpu_time::of(&subject.job)?.0.as_secs_f64();
        native_seconds.push(native);
        for turn in 0..columns.len() {
            let at = (turn + round) % columns.len();
            let told = format!("{:8} {:20} round {} of {rounds}", subject.name, columns[at].title, round + 1);
            match timed(subject, columns[at], sonde) {
                Ok((program, all)) => {
                    let (program, all) = (program / native, all / native);
                    eprintln!("{told}: {program:.3}, {all:.3} in all, of {native:.2} s");
                    ratios[at].0.push(program);
                    ratios[at].1.push(all);
                }
                Err(error) => {
                    eprintln!("{told}: {error}");
                    failed.push(error.to_string());
                }
            }
        }
    }
    Ok((
        statistics::spread(&native_seconds).map(|s| s.median),
        ratios.iter().map(|(program, all)| Cost::of(program, all)).collect(),
    ))
}

/// Seconds of the program, and of all processes.
fn timed(subject: &Subject, column: &Column, sonde: &Sonde) -> Result<(f64, f64)> {
    let job = column.job(subject, sonde);
    let (time, summary) = cpu_time::of(&job)?;
    column.check(&job, &summary)?;
    let all = time.as_secs_f64();
    Ok((trial::program_seconds(&summary).unwrap_or(all), all))
}
