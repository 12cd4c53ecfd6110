//! How much default bursts have in common with the whole run: the program is run twice, once recorded from begin to end,
//! once in bursts, and the shares of the same functions and lines of code are laid over each other.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, IsTerminal, Seek, SeekFrom};
use std::os::fd::AsFd;

use anyhow::{Context, Result, ensure};
use sonde_event::maps::Mapping;
use sonde_event::{Begin, Catalog, Detail, End, Reader, Run};
use sonde_launch::{Options, Policy};
use sonde_place::{Place, Places};
use sonde_report::Namer;
use sonde_symbol::Symbols;

use super::source::Args;
use super::table::{Table, percent};

/// Fewer bursts than this say little: the table notes it.
const FEW: u64 = 100;
/// Functions never share these many bytes of code.
const ALIGNED: u64 = 16;
/// Where there are no symbols, a stretch of so many bytes stands for a function.
const STRETCH: u64 = 256;
/// A cache line of code.
const LINE: u64 = 64;

/// Where an execution of a path is counted: its exit, or for one that was cut short its superblock and instructions.
type Path = (Option<u32>, u32, u16);

fn path(run: &Run<'_>) -> Path {
    (run.exit(), run.path.superblock, run.path.insns)
}

/// Weights by path.
#[derive(Default)]
struct Tally {
    exits: Vec<f64>,
    cut_short: HashMap<(u32, u16), f64>,
}

impl Tally {
    fn add(&mut self, (exit, superblock, insns): Path, weight: f64) {
        let Some(exit) = exit else {
            *self.cut_short.entry((superblock, insns)).or_default() += weight;
            return;
        };
        let exit = exit as usize;
        if exit >= self.exits.len() {
            self.exits.resize(exit + 1, 0.0);
        }
        self.exits[exit] += weight;
    }

    /// Weights of instructions by pc.
    fn instructions(&self, catalog: &Catalog) -> BTreeMap<u64, f64> {
        let mut all = BTreeMap::new();
        let mut add = |superblock: u32, insns: u16, weight: f64| {
            let Some(superblock) = catalog.superblock(superblock).filter(|_| weight > 0.0) else { return };
            for insn in superblock.insns.iter().take(insns.into()) {
                *all.entry(insn.pc).or_default() += weight;
            }
        };
        for (exit, weight) in self.exits.iter().enumerate() {
            if let Some(path) = catalog.path(exit as u32) {
                add(path.superblock, path.insns, *weight);
            }
        }
        for ((superblock, insns), weight) in &self.cut_short {
            add(*superblock, *insns, *weight);
        }
        all
    }
}

/// The whole run.
#[derive(Default)]
struct Whole {
    places: Places,
    tally: Tally,
    instructions: u64,
}

impl Reader for Whole {
    fn run(&mut self, run: &Run<'_>) {
        self.instructions += run.instructions();
        self.tally.add(path(run), 1.0);
    }
    fn mapping(&mut self, mapping: &Mapping) {
        self.places.map(mapping);
    }
}

/// Bursts, weighed in two ways; and the second way for every other burst alone.
#[derive(Default)]
struct Bursts {
    places: Places,
    /// Every instruction counts the same.
    pooled: Tally,
    /// Every burst counts the same.
    timed: Tally,
    halves: [Tally; 2],
    instructions: u64,
    bursts: u64,
    /// The burst that each thread is in.
    current: HashMap<i32, (u64, Vec<Path>)>,
}

impl Bursts {
    fn finish(&mut self, tid: i32) {
        let Some((instructions, paths)) = self.current.remove(&tid).filter(|(n, _)| *n > 0) else { return };
        let weight = 1.0 / instructions as f64;
        for path in paths {
            self.pooled.add(path, 1.0);
            self.timed.add(path, weight);
            self.halves[self.bursts as usize % 2].add(path, weight);
        }
        self.instructions += instructions;
        self.bursts += 1;
    }
}

impl Reader for Bursts {
    fn begin(&mut self, begin: &Begin) {
        self.finish(begin.tid);
    }
    fn run(&mut self, run: &Run<'_>) {
        let (instructions, paths) = self.current.entry(run.tid).or_default();
        *instructions += run.instructions();
        paths.push(path(run));
    }
    fn end(&mut self, end: &End) {
        self.finish(end.tid);
    }
    fn mapping(&mut self, mapping: &Mapping) {
        self.places.map(mapping);
    }
}

/// Shares of named stretches of code.
type Shares = BTreeMap<String, f64>;

/// By module, by function (stretches where nothing is named), by line of code.
fn shares(tally: &Tally, catalog: &Catalog, places: &mut Places, symbols: &mut Symbols) -> [Shares; 3] {
    let mut chunks: BTreeMap<Place, f64> = BTreeMap::new();
    for (pc, weight) in tally.instructions(catalog) {
        let place = places.place(pc);
        *chunks.entry(Place(place.0 & !(ALIGNED - 1))).or_default() += weight;
    }
    let total: f64 = chunks.values().sum();
    let mut namer = Namer::new(symbols, places.regions(), &[]);
    let mut all: [Shares; 3] = Default::default();
    for (chunk, weight) in chunks {
        let cut = |bytes: u64| Place(chunk.0 & !(bytes - 1));
        let function = namer.function(chunk);
        let name = match function.start {
            Some(start) => namer.offset(start),
            None => namer.offset(cut(STRETCH)),
        };
        let line = namer.offset(cut(LINE));
        for (shares, key) in all.iter_mut().zip([function.module, name, line]) {
            *shares.entry(key).or_default() += weight / total;
        }
    }
    all
}

/// What two profiles have in common: the sum of the lesser shares.
fn overlap(a: &Shares, b: &Shares) -> f64 {
    a.iter().map(|(key, share)| share.min(*b.get(key).unwrap_or(&0.0))).sum()
}

fn largest_difference(a: &Shares, b: &Shares) -> f64 {
    let keys = a.keys().chain(b.keys());
    let share = |of: &Shares, key: &String| *of.get(key).unwrap_or(&0.0);
    keys.map(|key| (share(a, key) - share(b, key)).abs()).fold(0.0, f64::max)
}

/// Standard input, so that the second run reads the same as the first.
struct Input {
    file: File,
    start: Option<u64>,
}

impl Input {
    fn new() -> Result<Input> {
        let mut file = File::from(io::stdin().as_fd().try_clone_to_owned().context("standard input")?);
        let start = file.stream_position().ok();
        ensure!(
            start.is_some() || file.is_terminal(),
            "the program is run twice, but standard input can be read only once; give it a file"
        );
        Ok(Input { file, start })
    }

    fn rewind(&mut self) -> Result<()> {
        if let Some(start) = self.start {
            self.file.seek(SeekFrom::Start(start)).context("standard input")?;
        }
        Ok(())
    }
}

/// The table.
pub fn table(args: &Args) -> Result<Table> {
    ensure!(args.is_program(), "this experiment runs a program twice; a trace does not do");
    let mut input = Input::new()?;
    let (mut whole, mut bursts) = (Whole::default(), Bursts::default());
    let first = args.run(Policy::Always, Detail::Blocks, &mut whole)?;
    input.rewind()?;
    let second = args.run(Options::default().policy, Detail::Blocks, &mut bursts)?;
    let symbols = &mut Symbols::new();
    let truth = shares(&whole.tally, first.catalog(), &mut whole.places, symbols);
    let mut of = |tally: &Tally| shares(tally, second.catalog(), &mut bursts.places, symbols);
    let (pooled, timed) = (of(&bursts.pooled), of(&bursts.timed));
    let halves = [of(&bursts.halves[0]), of(&bursts.halves[1])];
    let row = |(i, name): (usize, &str)| {
        vec![
            name.into(),
            truth[i].len().to_string(),
            percent(overlap(&truth[i], &pooled[i])),
            percent(overlap(&truth[i], &timed[i])),
            percent(overlap(&halves[0][i], &halves[1][i])),
            percent(largest_difference(&truth[i], &pooled[i])),
            percent(largest_difference(&truth[i], &timed[i])),
        ]
    };
    let mut notes = vec![
        format!(
            "{} bursts with {} instructions; the whole run has {}",
            bursts.bursts, bursts.instructions, whole.instructions
        ),
        "the truth is in instructions, while bursts begin in proportion to time (docs/design/weights.md): code with few instructions per second gets more than here".into(),
        format!("overlap, and worst difference of one place, by instructions: pooled; by time: each burst weighs the same. Functions without symbols: stretches of {STRETCH} bytes"),
        "halves: what every other burst has in common with the rest, which is how far chance alone goes".into(),
    ];
    if bursts.bursts < FEW {
        notes.push(format!("fewer than {FEW} bursts: a longer run is needed for a judgement"));
    }
    Ok(Table {
        title: format!("default bursts against the whole run: {}", first.name),
        paper: vec![
            "no figure for code; paper 4 measures the overlap of hot data streams (sonde lab streams)".into(),
        ],
        columns: vec![
            "places",
            "number",
            "by instructions %",
            "by time %",
            "halves %",
            "worst by instructions %",
            "worst by time %",
        ],
        rows: ["modules", "functions", "64-byte lines"].into_iter().enumerate().map(row).collect(),
        layout: None,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares_of(of: &[(&str, f64)]) -> Shares {
        of.iter().map(|(key, share)| ((*key).to_owned(), *share)).collect()
    }

    #[test]
    fn overlap_is_what_both_have() {
        let (a, b) = (shares_of(&[("f", 0.7), ("g", 0.3)]), shares_of(&[("f", 0.5), ("h", 0.5)]));
        assert_eq!((overlap(&a, &a), overlap(&a, &b), overlap(&b, &a)), (1.0, 0.5, 0.5));
        assert_eq!(largest_difference(&a, &b), 0.5);
    }
}
