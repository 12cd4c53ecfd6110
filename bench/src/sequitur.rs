//! How fast Sequitur takes symbols, on one core: on the references of recorded programs, and on two extremes.
//!
//! Floors, each over the same symbols: hashing every digram once into a table without probing, and looking every digram up
//! in a hash map. Nothing that notes digrams is faster than the first. CPU time of this thread, rounds interleaved, ratios
//! inside a round.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_gettime};
use rustc_hash::FxHashMap;
use sonde_event::trace::{TraceReader, replay};
use sonde_event::{Access, Reader, Ref, Run};
use sonde_streams::sequitur::Sequitur;
use sonde_streams::{StreamsConfig, StreamsReader};

use crate::host;
use crate::statistics::{geometric_mean, spread};
use crate::streams::Random;

/// Million symbols a second that each stream must reach, by the median of the rounds.
const GOAL: f64 = 20.0;

/// Measure how fast Sequitur takes symbols; status 1 when the goal is missed
#[derive(clap::Args)]
pub struct Rates {
    /// The sonde to record with
    #[arg(long, value_name = "FILE", default_value = "target/release/sonde")]
    sonde: PathBuf,
    /// Million symbols of each stream, at most
    #[arg(long, value_name = "N", default_value_t = 8)]
    millions: usize,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Where the results go; - prints only
    #[arg(short = 'o', long = "output", value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// References as numbers, and what the numbers stand for.
#[derive(Default)]
struct Stream {
    name: String,
    recorded: bool,
    symbols: Vec<u32>,
    references: Vec<(u64, u64)>,
    numbers: FxHashMap<(u64, u64), u32>,
    limit: usize,
}

impl Reader for Stream {
    fn run(&mut self, run: &Run<'_>) {
        for r in run.references() {
            if let Some(address) = r.address
                && self.symbols.len() < self.limit
            {
                self.push(r.pc, address);
            }
        }
    }
}

impl Stream {
    fn push(&mut self, pc: u64, address: u64) {
        let next = self.references.len() as u32;
        let number = *self.numbers.entry((pc, address)).or_insert(next);
        if number == next {
            self.references.push((pc, address));
        }
        self.symbols.push(number);
    }

    fn made_up(name: &str, addresses: impl Iterator<Item = u64>) -> Stream {
        let mut stream = Stream { name: name.into(), ..Stream::default() };
        addresses.for_each(|a| stream.push(1, a));
        stream
    }
}

/// Programs to record: each works mainly in one thread, on an input that is made here.
const PROGRAMS: [(&str, &[&str]); 4] = [
    ("gzip", &["gzip", "-c", "input"]),
    ("sort", &["sort", "--parallel=1", "input"]),
    ("perl", &["perl", "-ne", "$n{substr $_, 0, 4}++; END { print scalar keys %n }", "input"]),
    ("python", &["/usr/bin/python3", "-S", "-c", "print(len({line[:4]: line for line in open('input')}))"]),
];

impl Rates {
    /// Measures; false when the goal is missed.
    pub fn run(&self) -> Result<bool> {
        let limit = self.millions.max(1) * 1_000_000;
        let folder = tempfile::tempdir()?;
        let lines: String = (0..100_000u32).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
        std::fs::write(folder.path().join("input"), lines)?;
        let mut streams = Vec::new();
        for (name, program) in PROGRAMS {
            streams.push(self.record(folder.path(), name, program, limit)?);
        }
        let mut random = Random::new(7);
        streams.push(Stream::made_up("a loop of 1,000", (0..limit as u64).map(|i| i % 1000)));
        streams.push(Stream::made_up("65,536 at random", (0..limit).map(|_| random.below(1 << 16))));
        let rows: Vec<Row> = streams.iter().map(|s| self.measure(s)).collect::<Result<_>>()?;
        host::keep(&self.output, &page(&rows))?;
        Ok(rows.iter().all(|r| r.ours.1 >= GOAL))
    }

    fn record(&self, folder: &Path, name: &str, program: &[&str], limit: usize) -> Result<Stream> {
        let sonde = self.sonde.canonicalize().with_context(|| format!("no {}", self.sonde.display()))?;
        let trace = folder.join("trace");
        let status = Command::new(sonde)
            .current_dir(folder)
            .args(["trace", "record", "--policy", "always", "-o"])
            .arg(&trace)
            .arg("--")
            .args(program)
            .stdout(Stdio::null())
            .status()
            .context("cannot run sonde")?;
        if !status.success() {
            bail!("recording {name} ended with {status}");
        }
        let mut stream = Stream { name: name.into(), recorded: true, limit, ..Stream::default() };
        replay(&mut TraceReader::new(File::open(&trace)?)?, &mut stream)?;
        Ok(stream)
    }

    fn measure(&self, stream: &Stream) -> Result<Row> {
        let mut seconds: [Vec<f64>; 4] = Default::default();
        let mut row = Row { name: stream.name.clone(), recorded: stream.recorded, ..Row::default() };
        for _ in 0..self.rounds.max(1) {
            seconds[0].push(timed(|| hash_digrams(&stream.symbols))?.0);
            seconds[1].push(timed(|| look_digrams_up(&stream.symbols))?.0);
            let (time, (size, restarts)) = timed(|| grammar(&stream.symbols))?;
            seconds[2].push(time);
            (row.size, row.restarts) = (size, restarts);
            let (time, coverage) = timed(|| profile(stream))?;
            seconds[3].push(time);
            row.coverage = coverage?;
        }
        row.symbols = stream.symbols.len();
        row.different = stream.references.len();
        let rate = |s: &f64| stream.symbols.len() as f64 / s / 1e6;
        let rates: Vec<f64> = seconds[2].iter().map(rate).collect();
        row.ours = spread(&rates).map_or((0.0, 0.0, 0.0), |s| (s.low, s.median, s.high));
        row.reader = median(seconds[3].iter().map(rate));
        row.to_hashing = median(seconds[0].iter().zip(&seconds[2]).map(|(floor, ours)| floor / ours));
        row.to_map = median(seconds[1].iter().zip(&seconds[2]).map(|(floor, ours)| floor / ours));
        Ok(row)
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    spread(&values.collect::<Vec<_>>()).map_or(0.0, |s| s.median)
}

/// Seconds of CPU time of this thread.
fn timed<T>(work: impl FnOnce() -> T) -> Result<(f64, T)> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("clock_gettime");
    let before = Duration::from(now()?);
    let result = std::hint::black_box(work());
    Ok(((Duration::from(now()?) - before).as_secs_f64(), result))
}

/// The floor: each digram goes to its slot, and whether it was there is counted.
fn hash_digrams(symbols: &[u32]) -> u64 {
    let mut slots = vec![0u64; 1 << 20];
    let mut hits = 0;
    for pair in symbols.windows(2) {
        let key = u64::from(pair[0]) << 32 | u64::from(pair[1]);
        let at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize;
        hits += u64::from(slots[at] == key);
        slots[at] = key;
    }
    hits
}

/// What a user would write to note digrams.
fn look_digrams_up(symbols: &[u32]) -> usize {
    let mut places: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (i, pair) in symbols.windows(2).enumerate() {
        places.entry((pair[0], pair[1])).or_insert(i as u32);
    }
    places.len()
}

/// The grammar with the reader's default limit; its last size and how often it was begun anew.
fn grammar(symbols: &[u32]) -> (usize, u64) {
    let limit = StreamsConfig::default().max_grammar;
    let mut sequitur = Sequitur::new();
    let mut sequence = sequitur.sequence();
    let mut restarts = 0;
    // As many at a time as a superblock makes references.
    for some in symbols.chunks(32) {
        sequitur.extend(sequence, some);
        if sequitur.size() >= limit {
            sequitur.clear();
            sequence = sequitur.sequence();
            restarts += 1;
        }
    }
    sequitur.flush();
    (sequitur.size(), restarts)
}

/// The whole analysis: numbers for references, grammar, hot streams.
fn profile(stream: &Stream) -> Result<f64> {
    let mut reader = StreamsReader::new(StreamsConfig::default())?;
    for symbol in &stream.symbols {
        let (pc, address) = stream.references[*symbol as usize];
        let load = Ref {
            pc,
            access: Access::Load,
            size: 8,
            recorded: true,
            address: Some(address),
            value: None,
            count: 1,
            atomic: false,
            conditional: false,
        };
        reader.reference(1, &load);
    }
    Ok(reader.finish().coverage())
}

#[derive(Default)]
struct Row {
    name: String,
    recorded: bool,
    symbols: usize,
    different: usize,
    size: usize,
    restarts: u64,
    /// Lowest, median, highest rate.
    ours: (f64, f64, f64),
    to_hashing: f64,
    to_map: f64,
    reader: f64,
    coverage: f64,
}

fn page(rows: &[Row]) -> String {
    let mut page = host::heading("Sequitur, one core");
    page += &format!(
        "\nReferences (pc and address) as numbers. Goal: {GOAL:.0} million symbols a second on each stream, by the \
         median of the rounds. CPU time. Ratios are speed relative to hashing each digram once into a table without probing, and to looking \
         it up in an FxHashMap. *Whole reader*: numbering references, grammar and hot streams; *covered* by those.\n\n\
         | stream | million symbols | different | grammar | restarts | million/s | lowest | highest | to hashing | to a map | whole reader, million/s | covered |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for r in rows {
        page += &format!(
            "| {} | {:.1} | {} | {} | {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.1} | {:.0} % |\n",
            r.name,
            r.symbols as f64 / 1e6,
            r.different,
            r.size,
            r.restarts,
            r.ours.1,
            r.ours.0,
            r.ours.2,
            r.to_hashing,
            r.to_map,
            r.reader,
            100.0 * r.coverage,
        );
    }
    let recorded: Vec<f64> = rows.iter().filter(|r| r.recorded).map(|r| r.ours.1).collect();
    if let Some(mean) = geometric_mean(&recorded) {
        page += &format!("\nRecorded programs, geometric mean: {mean:.1} million symbols a second.\n");
    }
    let missed: Vec<&str> = rows.iter().filter(|r| r.ours.1 < GOAL).map(|r| r.name.as_str()).collect();
    page += &match missed.as_slice() {
        [] => "Each stream reaches the goal: PASS.\n".to_owned(),
        some => format!("Below the goal: {}: FAIL.\n", some.join(", ")),
    };
    page
}
