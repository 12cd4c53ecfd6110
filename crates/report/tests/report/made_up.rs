//! A real program with debug information, and a made-up profile of it.

use std::path::Path;
use std::process::Command;

use sonde_calls::{CallProfile, Context, Invoked, Pair, Region as CodeRegion};
use sonde_event::Counts;
use sonde_loops::{LoopStats, LoopsProfile, Spread};
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_rap::{Config, Tree};
use sonde_report::{About, Options, Report, Section, Style, Subject, report, write};
use sonde_starts::StartsProfile;
use sonde_streams::{Shape, Stream, StreamsProfile};
use sonde_summary::{BlockWeight, Bursts, Kind, Missing, Ranges, Trees, Unit};
use sonde_symbol::Symbols;
use sonde_values::{LoadValues, ValueCount, ValueProfile};

pub const SOURCE: &str = "\
int table[1000];
int other[1000];
__attribute__((noinline)) int hot(int x) {
    for (int i = 0; i < x; i++)
        table[i % 1000] += i;
    return table[x % 1000];
}
__attribute__((noinline)) int cold(int x) {
    return x * 3 + other[x % 1000];
}
int main(int argc, char **argv) {
    (void)argv;
    return hot(argc) + cold(argc);
}
";

/// A program with debug information, and where its symbols are.
pub struct Built {
    pub folder: tempfile::TempDir,
    pub symbols: Vec<(String, u64, u64)>,
}

pub fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Built {
    pub fn new() -> Built {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("source.c"), SOURCE).unwrap();
        run("cc", &["-g", "-O1", "-pie", "-fPIE", "-o", "program", "source.c"], folder.path());
        Built::of(folder)
    }

    /// What was built in a folder.
    pub fn of(folder: tempfile::TempDir) -> Built {
        let table = run("nm", &["-S", "program"], folder.path());
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let symbol = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let [at, size, _, name] = words[..] else { return None };
            Some((name.to_owned(), hex(at)?, hex(size)?))
        };
        Built { symbols: table.lines().filter_map(symbol).collect(), folder }
    }

    pub fn at(&self, name: &str) -> (u64, u64) {
        let (_, at, size) = self.symbols.iter().find(|(n, ..)| n == name).unwrap();
        (*at, *size)
    }
}

/// What a summary would have kept.
pub struct Kept {
    pub regions: Regions,
    pub ranges: Vec<Ranges>,
    pub blocks: Vec<BlockWeight>,
    pub counts: Counts,
    pub bursts: Bursts,
    pub starts: Option<StartsProfile>,
    pub calls: CallProfile,
    pub loops: LoopsProfile,
    pub values: ValueProfile,
    pub streams: StreamsProfile,
    pub missing: Missing,
    pub runs: Vec<About>,
    pub unit: Unit,
}

pub fn tree(points: &[(u64, u64)]) -> Trees {
    let mut tree = Tree::<u64>::new(Config::new().eps(0.01)).unwrap();
    points.iter().for_each(|(key, weight)| tree.add_weighted(*key, *weight));
    Trees::One(tree.snapshot())
}

/// The same with nothing of it but a program as its only region, and the number of that.
pub fn kept_of(built: &Built) -> (Kept, u16) {
    let mut kept = kept(&Built::new(), Unit::Events);
    kept.regions = Regions::default();
    let name = built.folder.path().join("program").display().to_string();
    let module = kept.regions.number(&Region { kind: RegionKind::Module, name, build_id: Vec::new() });
    (kept, module)
}

pub fn kept(built: &Built, unit: Unit) -> Kept {
    let mut regions = Regions::default();
    let name = built.folder.path().join("program").display().to_string();
    let module = regions.number(&Region { kind: RegionKind::Module, name, build_id: Vec::new() });
    let heap =
        regions.number(&Region { kind: RegionKind::Heap, name: "[heap]".into(), build_id: Vec::new() });
    let place = |offset: u64| Place::new(module, offset);
    let ((hot, hot_size), (cold, cold_size)) = (built.at("hot"), built.at("cold"));
    let block = |at, bytes: u64, weight| BlockWeight { place: place(at), bytes: bytes as u32, weight };
    let blocks = vec![block(hot, hot_size, 900), block(cold, cold_size, 60)];
    let code = tree(&[(place(hot).0, 900), (place(cold).0, 60), (place(cold + 8).0, 40)]);
    let (table, _) = built.at("table");
    let data: Vec<(u64, u64)> = (0..100).map(|i| (place(table + 4 * i).0, 8)).collect();
    let on_heap: Vec<(u64, u64)> = (0..20).map(|i| (Place::new(heap, 0x1000 + 8 * i).0, 10)).collect();
    let loads = tree(&[data.clone(), on_heap.clone()].concat());
    let zeros = tree(&on_heap);
    let value_tree = tree(&[(0, 700), (u64::MAX, 200), (0x7f00_1234_5678, 100)]);
    let mut edges = Tree::<[u64; 2]>::new(Config::new().eps(0.01)).unwrap();
    edges.add_weighted([place(hot + 12).0, place(hot).0], 500);
    let of = |kind, tree| Ranges { kind, unit, events: 1000, tree };
    let context = |parent, function, instructions| Context {
        parent,
        function,
        calls: 1,
        instructions,
        weight: instructions,
        ..Context::default()
    };
    let mut calls = CallProfile { instructions: 1000, weight: 1000, calls: 2, ..CallProfile::default() };
    let entry = |at: u64| place(at).0;
    let (main, _) = built.at("main");
    let mut entries = [entry(hot), entry(cold)];
    entries.sort_unstable();
    calls.functions = entries.map(|entry| Invoked { entry, count: 1, weight: 1 }).to_vec();
    calls.pairs = vec![Pair { site: entry(main + 10), callee: entry(hot), count: 1, weight: 1 }];
    calls.regions = vec![CodeRegion { branch: entry(hot + 12), count: 10, instructions: 900, weight: 900 }];
    calls.contexts = vec![Context::default(); 2];
    calls.contexts.push(Context { calls: 0, ..context(0, entry(main), 40) });
    calls.contexts.push(context(2, entry(hot), 900));
    calls.contexts.push(context(2, entry(cold), 60));
    let stream = Stream {
        pcs: vec![entry(hot + 4); 4],
        addresses: (0..4).map(|i| Place::new(heap, 0x1000 + 64 * i).0).collect(),
        frequency: 20,
        at_most: 25,
        shape: Shape::Strided { stride: 64 },
    };
    let streams =
        StreamsProfile { streams: vec![stream], references: 100, bursts: 1, ..StreamsProfile::default() };
    let mut whole = Spread { executions: 2, iterations: 40, least: 10, most: 30, ..Spread::default() };
    (whole.buckets[4], whole.buckets[5]) = (1, 1);
    let one = LoopStats {
        header: entry(hot + 4),
        low: entry(hot),
        extent: hot_size,
        depth: 1,
        whole,
        own: 900,
        inclusive: 950,
        own_weight: 0.9,
        inclusive_weight: 0.95,
        ..LoopStats::default()
    };
    let loops = LoopsProfile { loops: vec![one], weight: 1.0, instructions: 1000, ..LoopsProfile::default() };
    let count = |value, n: u64| ValueCount { value, lower: n, estimate: n as f64, upper: n };
    let load = LoadValues {
        pc: entry(hot + 4),
        size: 4,
        executions: 80,
        seen: 80,
        values: vec![count(7, 60), count(0x1_0000, 20)],
        glacial: Some(true),
        ..LoadValues::default()
    };
    let totals = sonde_values::Totals { loads: 100, profiled: 80, samples: 80, ..Default::default() };
    let values = ValueProfile { loads: vec![load], totals, ..ValueProfile::default() };
    Kept {
        regions,
        ranges: vec![
            of(Kind::Code, code),
            of(Kind::LoadAddresses, loads),
            of(Kind::LoadValues, value_tree),
            of(Kind::ZeroLoads, zeros),
            of(Kind::Edges, Trees::Two(edges.snapshot())),
        ],
        blocks,
        counts: Counts { bursts: 400, instructions: 1000, ..Counts::default() },
        bursts: Bursts { count: 400, time: 1000, ..Bursts::default() },
        starts: None,
        calls,
        loops,
        values,
        streams,
        missing: Missing { unplaced_data: 3, ..Missing::default() },
        runs: vec![About {
            command: vec!["program".into(), "1".into()],
            facts: vec![("trigger".into(), "none".into())],
            losses: vec![(7, "bursts were skipped".into())],
            cpu_seconds: 1.5,
            system_seconds: Some(0.25),
        }],
        unit,
    }
}

impl Kept {
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            runs: &self.runs,
            unit: self.unit,
            counts: &self.counts,
            bursts: &self.bursts,
            ranges: &self.ranges,
            blocks: &self.blocks,
            regions: &self.regions,
            cache: None,
            starts: self.starts.as_ref(),
            calls: Some(&self.calls),
            loops: Some(&self.loops),
            values: Some(&self.values),
            streams: Some(&self.streams),
            missing: &self.missing,
        }
    }

    pub fn report(&self) -> Report {
        report(&self.subject(), &mut Symbols::new(), &Options::default())
    }
}

pub fn text(report: &Report, sections: &[Section], width: usize) -> String {
    let mut out = Vec::new();
    write(&mut out, report, sections, Style { width, colour: false, top: 12 }).unwrap();
    String::from_utf8(out).unwrap()
}
