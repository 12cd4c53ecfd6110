//! Paper 5: DAProf in its three associativities, plain and with calls followed, and frequent loop detection, against the
//! exact loops of the same run.

use anyhow::Result;
use sonde_event::{Catalog, Detail, Reader};
use sonde_loops::{
    Calls, CompareConfig, Comparison, DaprofConfig, DaprofReader, ExactConfig, ExactReader, FrequentConfig,
    FrequentReader, LoopsProfile, ObserverProfile, ObserverReader, PartitionConfig, Reported, Rounding,
    compare, daprof_reports, errors_to_observer, frequent_reports, in_the_papers_terms, observer_reports,
    partition,
};
use sonde_place::Places;
use sonde_report::Namer;
use sonde_symbol::Symbols;

use super::layout::{Group, Layout};
use super::source;
use super::table::{Table, percent};

/// What DAProf takes for a short backward branch, in bytes.
const SHORT: u32 = 1024;
/// What 10 bits hold.
const TEN_BITS: f64 = 1023.0;
/// Profilers whose loops `--rows` lists.
const LISTED: [&str; 2] = ["DAProf 8-way, plain", "DAProf 8-way, calls"];

/// Options of the experiment. (Its name must differ from that of the options it holds: they are groups of clap.)
#[derive(clap::Args, Debug)]
pub struct LoopsArgs {
    /// List the ten loops behind the figures instead: function and line, what was reported, what was true
    #[arg(long)]
    rows: bool,
    #[command(flatten)]
    pub source: source::Args,
}

/// All profilers on one stream.
struct Bench {
    exact: ExactReader,
    daprof: Vec<DaprofReader>,
    /// Of `daprof`, in the same order.
    names: Vec<String>,
    frequent: FrequentReader,
    observer: ObserverReader,
    places: Places,
}

impl Bench {
    /// All of them as one reader.
    fn readers(&mut self) -> impl Reader + '_ {
        let daprof = self.daprof.as_mut_slice();
        (&mut self.exact, (&mut self.frequent, (&mut self.observer, (daprof, &mut self.places))))
    }
}

fn bench() -> Result<Bench> {
    let (mut daprof, mut names) = (Vec::new(), Vec::new());
    for (calls, word) in [(Calls::Plain, "plain"), (Calls::Followed, "calls")] {
        for (ways, name) in [(32, "full"), (16, "16-way"), (8, "8-way")] {
            let config = DaprofConfig { calls, ..DaprofConfig::with_ways(ways) };
            names.push(format!("DAProf {name}, {word}"));
            daprof.push(DaprofReader::new(config)?);
        }
    }
    let rounded =
        DaprofConfig { calls: Calls::Followed, rounding: Rounding::Nearest, ..DaprofConfig::with_ways(8) };
    names.push("DAProf 8-way, calls, rounded".into());
    daprof.push(DaprofReader::new(rounded)?);
    Ok(Bench {
        exact: ExactReader::new(ExactConfig::default())?,
        daprof,
        names,
        frequent: FrequentReader::new(FrequentConfig { distance: SHORT, ..FrequentConfig::default() })?,
        observer: ObserverReader::new(SHORT),
        places: Places::new(),
    })
}

/// Everything that was found out.
struct Found {
    exact: LoopsProfile,
    observer: ObserverProfile,
    /// By profiler.
    reports: Vec<(String, Vec<Reported>)>,
    /// Branches that found DAProf's queue full, of all of them.
    dropped: (u64, u64),
}

impl Found {
    fn new(all: Bench, catalog: &Catalog, config: &CompareConfig) -> Found {
        let observer = all.observer.finish();
        let mut dropped = (0, 0);
        let mut reports: Vec<(String, Vec<Reported>)> = Vec::new();
        for (name, reader) in all.names.into_iter().zip(all.daprof) {
            let profile = reader.finish();
            dropped = (profile.dropped, profile.branches);
            reports.push((name, daprof_reports(&profile, config)));
        }
        reports.push(("frequent loops".into(), frequent_reports(&all.frequent.finish(), config)));
        reports.push(("all branches, no limits".into(), observer_reports(&observer, config)));
        Found { exact: all.exact.finish(catalog), observer, reports, dropped }
    }

    fn row(&self, name: &str, reports: &[Reported], config: &CompareConfig) -> Vec<String> {
        let c = compare(reports, &self.exact, config);
        let f = compare(reports, &self.exact, &fair(config));
        let (seen_average, seen_executions) = errors_to_observer(&f.rows, &self.observer);
        let paper = in_the_papers_terms(reports, &self.observer, config);
        let maybe = |error: Option<f64>| error.map_or_else(|| "-".into(), |e| percent(1.0 - e));
        vec![
            name.into(),
            maybe(paper.iterations_error),
            maybe(paper.executions_error),
            percent(1.0 - paper.time_error),
            maybe(c.average_error),
            maybe(c.executions_error),
            percent(1.0 - c.share_error),
            maybe(f.average_error),
            maybe(f.executions_error),
            percent(1.0 - f.share_error),
            maybe(seen_average),
            maybe(seen_executions),
            percent(c.captured),
            percent(c.possible),
            c.missed.to_string(),
        ]
    }
}

/// What can be asked of the profiler: its ten bits, and loops.
fn fair(config: &CompareConfig) -> CompareConfig {
    CompareConfig { most_iterations: Some(TEN_BITS), only_loops: true, ..*config }
}

/// The table.
pub fn table(args: &LoopsArgs) -> Result<Table> {
    let mut all = bench()?;
    let fed = args.source.feed(Detail::Blocks, &mut all.readers())?;
    let config = CompareConfig::default();
    let mut places = std::mem::take(&mut all.places);
    let found = Found::new(all, fed.catalog(), &config);
    let table = Table {
        title: format!(
            "loops: top {} against {} exact loops: {}",
            config.top,
            found.exact.loops.len(),
            fed.name
        ),
        paper: vec![
            "accuracy of iterations / executions / time: 90 / 97 / 95 %, captured 78 % (62 % frequent loops)"
                .into(),
            "with calls followed: 98 / 97 / 95 %".into(),
        ],
        ..Table::default()
    };
    if args.rows {
        Ok(listed(table, &found, &config, &mut places))
    } else {
        summed_up(table, &found, &config)
    }
}

fn summed_up(table: Table, found: &Found, config: &CompareConfig) -> Result<Table> {
    let hardware = partition(&found.exact, &PartitionConfig::default())?;
    let (dropped, branches) = found.dropped;
    Ok(Table {
        columns: vec![
            "profiler",
            "iterations paper %",
            "executions paper %",
            "time paper %",
            "iterations %",
            "executions %",
            "time %",
            "iterations fair %",
            "executions fair %",
            "time fair %",
            "iterations seen %",
            "executions seen %",
            "captured %",
            "possible %",
            "missed",
        ],
        rows: found.reports.iter().map(|(name, reports)| found.row(name, reports, config)).collect(),
        layout: Some(side_by_side()),
        notes: vec![
            "iter, exec, time   how right the iterations of an execution, the number of executions and the share of time are, in %".into(),
            "                   (100 less the error of the ten loops; exec: less the sum of differences of shares, so -100 at the least)".into(),
            format!("{dropped} of {branches} branches found the queue full; see docs/design/loops.md, and --rows"),
            format!(
                "hardware/software partitioning of {} loops would speed the program up {:.2} times (default costs)",
                hardware.chosen.len(),
                hardware.speedup
            ),
        ],
        ..table
    })
}

/// The loops that were compared, by profiler.
fn listed(table: Table, found: &Found, config: &CompareConfig, places: &mut Places) -> Table {
    let mut rows: Vec<(&str, Comparison)> = Vec::new();
    for (name, reports) in found.reports.iter().filter(|(name, _)| LISTED.contains(&name.as_str())) {
        rows.push((name, compare(reports, &found.exact, config)));
    }
    let mut symbols = Symbols::new();
    let mut cells = Vec::new();
    for (name, row) in rows.iter().flat_map(|(name, c)| c.rows.iter().map(move |row| (*name, row))) {
        let place = places.place(row.header.unwrap_or(row.reported.branch));
        let seen = found.observer.get(row.reported.branch).copied().unwrap_or_default();
        let loop_name = Namer::new(&mut symbols, places.regions(), &[]).instruction(place);
        let number = |n: f64| format!("{n:.2}");
        cells.push(vec![
            name.into(),
            if row.header.is_some() { loop_name } else { format!("{loop_name} (no natural loop)") },
            format!("{:.0}", row.reported.executions.unwrap_or(0.0)),
            number(row.reported.average.unwrap_or(0.0)),
            percent(row.reported.share),
            format!("{:.0}", row.executions),
            number(row.average),
            percent(row.share),
            seen.executions.to_string(),
            number(seen.average()),
        ]);
    }
    Table {
        columns: vec![
            "profiler",
            "loop",
            "reported executions",
            "iterations",
            "time %",
            "actual executions",
            "actual iterations",
            "actual time %",
            "seen executions",
            "seen iterations",
        ],
        rows: cells,
        layout: Some(listed_loops()),
        notes: vec!["exec: executions; iter: iterations of each, in times that it went back; time: share of the time, in %".into()],
        ..table
    }
}

/// The columns of the summary for people.
fn side_by_side() -> Layout {
    let three = |first: usize| vec![(first, "iter"), (first + 1, "exec"), (first + 2, "time")];
    let group = |title, columns, about| Group { title, columns, about };
    let groups = vec![
        group(
            "paper",
            three(1),
            "in its own terms, as far as they are told: each short backward branch is a loop; the truth is the last row in 10 bits",
        ),
        group("natural loops", three(4), "against the loops of the code"),
        group(
            "fair",
            three(7),
            "the same without branches that close no loop; averages above 1023, the most DAProf can tell, are 1023",
        ),
        group(
            "branches",
            vec![(10, "iter"), (11, "exec")],
            "fair, but against all backward branches without limits of hardware (the last row)",
        ),
        group(
            "top ten",
            vec![(12, "captured"), (13, "possible"), (14, "missed")],
            "time in the ten loops it says are hottest, in the ten that are, in %; how many of these it misses",
        ),
    ];
    Layout { groups, by_first: false, last: None }
}

/// The columns of single loops for people.
fn listed_loops() -> Layout {
    let three = |first: usize| vec![(first, "exec"), (first + 1, "iter"), (first + 2, "time")];
    let group = |title, columns, about| Group { title, columns, about };
    let groups = vec![
        group(
            "reported",
            three(2),
            "by the profiler; executions are halved together when one is full: only their shares mean something",
        ),
        group("actual", three(5), "of the natural loop"),
        group(
            "branch",
            vec![(8, "exec"), (9, "iter")],
            "of this backward branch alone, without limits of hardware",
        ),
    ];
    Layout { groups, by_first: true, last: Some((1, "loop")) }
}
