//! Paper 5: DAProf in its three associativities, plain and with calls followed, and frequent loop detection, against the
//! exact loops of the same run.

use anyhow::Result;
use sonde_event::maps::Mapping;
use sonde_event::{Begin, End, Reader, Run, Signal, Syscall};
use sonde_loops::{
    Calls, CompareConfig, Comparison, DaprofConfig, DaprofReader, ExactConfig, ExactReader, FrequentConfig,
    FrequentReader, PartitionConfig, compare, daprof_reports, frequent_reports, partition,
};

use super::source::Args;
use super::table::{Table, percent};

/// All profilers on one stream.
struct Bench {
    exact: ExactReader,
    daprof: Vec<(String, DaprofReader)>,
    frequent: FrequentReader,
}

/// Tells all profilers the same.
macro_rules! tell {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        $self.exact.$method($($argument),*);
        $self.frequent.$method($($argument),*);
        for (_, daprof) in &mut $self.daprof {
            daprof.$method($($argument),*);
        }
    };
}

impl Reader for Bench {
    fn begin(&mut self, begin: &Begin) {
        tell!(self, begin(begin));
    }
    fn run(&mut self, run: &Run<'_>) {
        tell!(self, run(run));
    }
    fn end(&mut self, end: &End) {
        tell!(self, end(end));
    }
    fn syscall(&mut self, syscall: &Syscall) {
        tell!(self, syscall(syscall));
    }
    fn signal(&mut self, signal: &Signal) {
        tell!(self, signal(signal));
    }
    fn mapping(&mut self, mapping: &Mapping) {
        tell!(self, mapping(mapping));
    }
    fn gap(&mut self) {
        tell!(self, gap());
    }
}

fn bench() -> Result<Bench> {
    let mut daprof = Vec::new();
    for (calls, word) in [(Calls::Plain, "plain"), (Calls::Followed, "calls")] {
        for (ways, name) in [(32, "full"), (16, "16-way"), (8, "8-way")] {
            let config = DaprofConfig { calls, ..DaprofConfig::with_ways(ways) };
            daprof.push((format!("DAProf {name}, {word}"), DaprofReader::new(config)?));
        }
    }
    Ok(Bench {
        exact: ExactReader::new(ExactConfig::default())?,
        daprof,
        frequent: FrequentReader::new(FrequentConfig { distance: 1024, ..FrequentConfig::default() })?,
    })
}

fn row(name: String, c: &Comparison) -> Vec<String> {
    let maybe = |error: Option<f64>| error.map_or_else(|| "-".into(), |e| percent(1.0 - e));
    vec![
        name,
        maybe(c.average_error),
        maybe(c.executions_error),
        percent(1.0 - c.share_error),
        percent(c.captured),
        percent(c.possible),
        c.missed.to_string(),
    ]
}

/// The table.
pub fn table(args: &Args) -> Result<Table> {
    let mut all = bench()?;
    let fed = args.feed(&mut all)?;
    let exact = all.exact.finish(fed.catalog());
    let config = CompareConfig::default();
    let mut rows = Vec::new();
    for (name, reader) in all.daprof {
        let reports = daprof_reports(&reader.finish(), &config);
        rows.push(row(name, &compare(&reports, &exact, &config)));
    }
    let reports = frequent_reports(&all.frequent.finish(), &config);
    rows.push(row("frequent loops".into(), &compare(&reports, &exact, &config)));
    let hardware = partition(&exact, &PartitionConfig::default())?;
    Ok(Table {
        title: format!("loops: top {} against {} exact loops: {}", config.top, exact.loops.len(), fed.name),
        paper: vec![
            "accuracy of iterations / executions / time: 90 / 97 / 95 %, captured 78 % (62 % frequent loops)"
                .into(),
            "with calls followed: 98 / 97 / 95 %".into(),
        ],
        columns: vec![
            "profiler",
            "iterations %",
            "executions %",
            "time %",
            "captured %",
            "possible %",
            "missed",
        ],
        rows,
        notes: vec![format!(
            "hardware/software partitioning of {} loops would speed the program up {:.2} times (default costs)",
            hardware.chosen.len(),
            hardware.speedup
        )],
    })
}
