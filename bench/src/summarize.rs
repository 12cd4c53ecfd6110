//! What each summary of a stream costs: where the time of an exhaustive run with everything on goes.
//!
//! A recording in memory is played to the analyses as a live run would, each kind alone, the default set, all of them.
//! One core, CPU time of this thread, rounds interleaved; the cost of a kind is what it takes beyond counting by path.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use sonde_analysis::{Analyses, Config, Wanted};
use sonde_event::Count;

use crate::host;
use crate::recording::Recording;
use crate::statistics::spread;

/// Measure what each summary costs for a reference of the stream
#[derive(clap::Args)]
pub struct Summarize {
    /// The sonde to record with
    #[arg(long, value_name = "FILE", default_value = "target/release/sonde")]
    sonde: PathBuf,
    /// A trace to play instead of recording a program
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Megabytes of log to keep in memory
    #[arg(long, value_name = "MB", default_value_t = 256)]
    megabytes: usize,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Only these sets of summaries, each as `sonde run --what` takes it
    #[arg(long, value_name = "LIST")]
    what: Vec<String>,
    /// Where the results go; - prints only
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// The program to record; `gzip` of some generated text if none is given
    #[arg(trailing_var_arg = true, value_name = "PROG")]
    program: Vec<OsString>,
}

/// Every tree and the calls, which is what a profile of ranges is made of.
pub const RANGES: &str = "code,loads,stores,load-values,dl1-miss-values,dl2-miss-values,narrow,zero-loads,edges,\
                      code-data,calls";
const SETS: [&str; 17] = [
    "code",
    "loads",
    "stores",
    "load-values",
    "dl1-miss-values",
    "dl1-miss-values,dl2-miss-values",
    "narrow",
    "zero-loads",
    "edges",
    "code-data",
    "calls",
    "loops",
    "values",
    "streams",
    "default",
    RANGES,
    "all",
];

impl Summarize {
    /// Measures.
    pub fn run(&self) -> Result<()> {
        let mut recording = match &self.trace {
            Some(trace) => Recording::open(trace, self.megabytes << 20)?,
            None => Recording::make(&self.sonde, &self.program, self.megabytes << 20)?,
        };
        let chosen: Vec<&str> = self.what.iter().map(String::as_str).collect();
        let sets: &[&str] = if chosen.is_empty() { &SETS } else { &chosen };
        let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); sets.len() + 1];
        let mut count = Count::default();
        for _ in 0..self.rounds.max(1) {
            count = Count::default();
            seconds[0].push(recording.play(&mut count)?);
            for (set, seconds) in sets.iter().zip(&mut seconds[1..]) {
                let config = Config { wanted: Wanted::parse(set)?, ..Config::default() };
                let mut analyses = Analyses::new(&config)?;
                seconds.push(recording.play(&mut analyses)?);
                std::hint::black_box(analyses.finish(recording.catalog()));
            }
        }
        let counts = count.counts;
        let references = counts.loads + counts.stores;
        let mut page = host::heading("What each summary of a stream costs, one core");
        page += &format!(
            "\n`{}`, recorded in full with values: {:.1} million loads and stores, {:.1} million passes, {:.1} million \
             instructions. Each set also counts code.\n\n\
             | summaries | ns per load or store | lowest | highest | ns per instruction |\n|---|---|---|---|---|\n",
            recording.command(),
            references as f64 / 1e6,
            counts.runs as f64 / 1e6,
            counts.instructions as f64 / 1e6
        );
        let label = |set: &str| if set == RANGES { "all trees, calls".to_owned() } else { set.to_owned() };
        let names = std::iter::once("none: counting by path".to_owned()).chain(sets.iter().map(|s| label(s)));
        for (name, seconds) in names.zip(&seconds) {
            let each: Vec<f64> = seconds.iter().map(|s| s * 1e9 / references.max(1) as f64).collect();
            if let Some(s) = spread(&each) {
                let per_insn = s.median * references as f64 / counts.instructions.max(1) as f64;
                page +=
                    &format!("| {name} | {:.1} | {:.1} | {:.1} | {per_insn:.1} |\n", s.median, s.low, s.high);
            }
        }
        host::keep(&self.output, &page)
    }
}
