//! Summaries against exact counts of the same stream, in every kind, with and without weights.

#[path = "../../event/tests/synthetic/mod.rs"]
mod synthetic;

use proptest::prelude::*;
use sonde_cache::{Cache, Found};
use sonde_event::maps::Mapping;
use sonde_event::{Access, Begin, Cause, Decoder, Detail, End, ExitKind, Reader, Run};
use sonde_place::Places;
use sonde_summary::{BurstTime, Bursts, Config, Kind, Summaries, Summary, Trees, Unit, What};
use sonde_wire::marker;
use std::collections::BTreeMap;
use std::time::Duration;
use synthetic::{BASE, Described, begin, end, program};

/// Everything that a made-up word can lead to is mapped: what waits for a mapping comes later to the cache.
const MAPS: &str = "\
00000000-00010000 rw-p 00000000 00:00 0 [low]
00020000-00400000 rw-p 00000000 00:00 0 [middle]
ffffffff00000000-ffffffffffffffff rw-p 00000000 00:00 0 [high]
00400000-00410000 r-xp 00000000 fe:01 1 /opt/made-up
00010000-00020000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
";

/// Counts by key: of one number, or of two.
type Exact = BTreeMap<Kind, BTreeMap<[u64; 2], u64>>;

/// The simple twin: every event at once, by the definitions, in maps.
struct Plain {
    places: Places,
    cache: Cache,
    has_gaps: bool,
    burst: Vec<(Kind, [u64; 2], u64)>,
    /// Where the burst began.
    began: u64,
    /// Instructions and references in superblocks that hold that, and whether there were any others.
    instructions: u64,
    references: u64,
    recorded: bool,
    /// Whether what is noted now counts.
    counts: bool,
    bursts: Bursts,
    time: Option<u64>,
    own_time: Option<u64>,
    exact: Exact,
}

impl Plain {
    fn new(config: &Config, time: Option<u64>) -> Plain {
        Plain {
            places: Places::new(),
            cache: Cache::new(&config.cache),
            has_gaps: config.in_parts || config.burst_time.is_some(),
            burst: Vec::new(),
            began: 0,
            instructions: 0,
            references: 0,
            recorded: false,
            counts: true,
            bursts: Bursts::default(),
            time,
            own_time: None,
            exact: Exact::new(),
        }
    }

    fn note(&mut self, kind: Kind, key: [u64; 2], times: u64) {
        if self.counts {
            self.burst.push((kind, key, times));
        }
    }

    /// Whether a pass is through the code that the burst began in.
    fn is_within(&self, run: &Run<'_>) -> bool {
        run.superblock.insns.iter().any(|insn| insn.pc == self.began)
    }

    fn reference(&mut self, run: &Run<'_>, r: &sonde_event::Ref) {
        let place = |places: &mut Places, at| places.place(at).0;
        let pc = place(&mut self.places, r.pc);
        let load = r.access == Access::Load;
        let lines: Vec<u64> = match (r.address.unwrap(), r.count) {
            (at, 1) => vec![at],
            (_, 0) => return,
            (at, n) => {
                (at..at.saturating_add(n * u64::from(r.size))).filter(|a| *a == at || a % 64 == 0).collect()
            }
        };
        for at in lines {
            let data = place(&mut self.places, at);
            self.note(if load { Kind::LoadAddresses } else { Kind::StoreAddresses }, [data, 0], 1);
            self.note(Kind::CodeData, [pc, data / 64 * 64], 1);
            let size = if r.count == 1 { u64::from(r.size) } else { 64 };
            let found = if load { self.cache.load(data, size) } else { self.cache.store(data, size) };
            let Some(value) = r.value.filter(|_| r.count == 1) else { continue };
            let signed = if r.size == 4 { i64::from(value as i32) } else { value as i64 };
            if r.size == 4 && (-32768..=32767).contains(&signed)
                || r.size == 8 && (-32768..=32767).contains(&signed)
            {
                self.note(Kind::NarrowPcs, [pc, 0], 1);
            }
            if !load {
                continue;
            }
            self.note(Kind::LoadValues, [value, 0], 1);
            if value == 0 && run.wide_value(0).iter().all(|w| *w == 0) {
                self.note(Kind::ZeroLoads, [data, 0], 1);
            }
            if found.nearest > Found::First {
                self.note(Kind::Dl1MissValues, [value, 0], 1);
            }
            if found.nearest == Found::Memory {
                self.note(Kind::Dl2MissValues, [value, 0], 1);
            }
        }
    }

    fn close(&mut self) {
        let mut weight = 1;
        if let Some(time) = self.time {
            let time = self.own_time.take().unwrap_or(time);
            self.bursts.empty += u64::from(!self.recorded);
            self.bursts.weigh(time);
            weight = time.checked_div(self.instructions).unwrap_or(0);
            self.bursts.weigh_references(self.references, weight);
            let place = self.places.place(self.began).0;
            *self.counts_of(Kind::Code).entry([place, 0]).or_default() += time;
        }
        (self.instructions, self.references) = (0, 0);
        for (kind, key, times) in std::mem::take(&mut self.burst) {
            *self.counts_of(kind).entry(key).or_default() += times * weight;
        }
    }

    fn counts_of(&mut self, kind: Kind) -> &mut BTreeMap<[u64; 2], u64> {
        self.exact.entry(kind).or_default()
    }
}

impl Reader for Plain {
    fn mapping(&mut self, mapping: &Mapping) {
        self.places.map(mapping);
    }

    fn run(&mut self, run: &Run<'_>) {
        self.counts = self.time.is_none() || self.is_within(run);
        self.recorded = true;
        if self.counts {
            self.instructions += run.instructions();
            self.references += u64::from(run.path.refs);
        }
        for block in run.blocks().filter(|_| self.time.is_none()).collect::<Vec<_>>() {
            let place = self.places.place(block.block.pc).0;
            self.note(Kind::Code, [place, 0], u64::from(block.insns));
        }
        let insns = run.insns();
        for pair in insns.windows(2).filter(|pair| pair[0].pc + u64::from(pair[0].len) != pair[1].pc) {
            let edge = [self.places.place(pair[0].pc).0, self.places.place(pair[1].pc).0];
            self.note(Kind::Edges, edge, 1);
        }
        if let (Some(last), Some(next)) = (insns.last().filter(|last| last.branch), run.next_pc)
            && run.path.kind != ExitKind::Fall
        {
            let edge = [self.places.place(last.pc).0, self.places.place(next).0];
            self.note(Kind::Edges, edge, 1);
        }
        let all: Vec<_> = run.references().collect();
        all.iter().for_each(|r| self.reference(run, r));
    }

    fn begin(&mut self, begin: &Begin) {
        self.bursts.count += 1;
        (self.began, self.recorded) = (begin.pc, false);
        if self.has_gaps {
            self.cache.forget();
        }
    }

    fn pace(&mut self, _: i32, period_ns: u64) {
        self.own_time = Some(period_ns * 1000);
    }

    fn end(&mut self, _: &End) {
        self.close();
    }
}

/// One pass of a burst: which superblock, which exit, and what its words are made from.
type Pass = (usize, usize, u64);

fn log(program: &[Described; 3], tid: i32, pace: Option<u64>, passes: &[Pass]) -> Vec<u64> {
    let mut log = begin(tid, 1, BASE);
    log.extend(pace.into_iter().flat_map(|ns| [marker::header(marker::Kind::Pace, 2).into(), ns]));
    for &(block, exit, seed) in passes {
        let described = &program[block];
        let exit = exit % described.plan.exits.len();
        // Small numbers: addresses in the heap, values that are often zero or narrow, repetitions that are short.
        let word = |i: usize| match seed.wrapping_mul(i as u64 + 1) % 5 {
            0 => 0,
            1 => 0x1_0000 + seed % 0x4000,
            2 => seed % 300,
            3 => 0u64.wrapping_sub(seed % 100_000),
            _ => 0x1_0000 + seed.wrapping_mul(64) % 0xf000,
        };
        let mut record = described.record(exit, word);
        bound_repeats(described, &mut record);
        log.extend(record);
    }
    log.extend(end(100, Cause::Checks, 0x40_2000));
    log
}

/// Repeated instructions run forward by a possible number.
fn bound_repeats(described: &Described, record: &mut [u64]) {
    for r in &described.plan.refs {
        if let sonde_x64::memory::Repeat::Counted { before, after } = r.repeat
            && let Some(after) = record.get(after as usize).copied()
        {
            record[before as usize] = after.wrapping_add(after % 500);
        }
    }
}

fn summarize(config: &Config, logs: &[Vec<u64>]) -> (Summary, Plain) {
    let program = program(Detail::Values);
    let mut decoder = Decoder::new(Detail::Values);
    program.iter().for_each(|d| decoder.describe(&d.words).unwrap());
    let time = config.burst_time.is_some().then_some(PERIOD.as_nanos() as u64 * 1000);
    let mut both = (Summaries::new(config.clone()).unwrap(), Plain::new(config, time));
    MAPS.lines().for_each(|line| both.mapping(&Mapping::parse(line).unwrap()));
    for (tid, log) in (1..).zip(logs) {
        decoder.log(tid, log, &mut both).unwrap();
    }
    let (summaries, plain) = both;
    (summaries.finish(decoder.catalog()), plain)
}

const PERIOD: Duration = Duration::from_millis(10);

fn config(weighted: bool, consumers: usize) -> Config {
    Config {
        what: What::all(),
        cache: sonde_cache::Config::parse("256:2:64,1K:4:64").unwrap(),
        burst_time: weighted.then(|| BurstTime::new(PERIOD)),
        consumers,
        ..Config::default()
    }
}

/// Every exact count lies within the bounds of its tree, and the totals agree.
fn agree(summary: &Summary, exact: &Exact) -> Result<(), TestCaseError> {
    let nothing = BTreeMap::new();
    for ranges in &summary.ranges {
        let exact = exact.get(&ranges.kind).unwrap_or(&nothing);
        let total: u64 = exact.values().sum();
        let (events, eps) = match &ranges.tree {
            Trees::One(tree) => (tree.events, tree.eps_effective),
            Trees::Two(tree) => (tree.events, tree.eps_effective),
        };
        prop_assert_eq!(events, total, "{:?}", ranges.kind);
        prop_assert!(eps <= 0.005 + 1e-9, "{:?}", ranges.kind);
        for (key, count) in exact {
            let bounds = match &ranges.tree {
                Trees::One(tree) => tree.bounds(key[0], key[0]),
                Trees::Two(tree) => tree.bounds(*key, *key),
            };
            prop_assert!(bounds.lower <= *count && *count <= bounds.upper, "{:?} {:x?}", ranges.kind, key);
            prop_assert!(
                *count - bounds.lower <= (eps * total as f64) as u64 + 1,
                "{:?} {:x?}",
                ranges.kind,
                key
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_kind_agrees_with_exact_counts(
        bursts in prop::collection::vec(
            (prop::option::of(1..100_000_000u64), prop::collection::vec((0..3usize, 0..4usize, any::<u64>()), 0..60)),
            1..20,
        ),
        weighted: bool,
        in_parts: bool,
    ) {
        let program = program(Detail::Values);
        let logs: Vec<Vec<u64>> = bursts.iter().map(|(pace, passes)| log(&program, 1, *pace, passes)).collect();
        let config = |consumers| Config { in_parts, ..config(weighted, consumers) };
        let (summary, plain) = summarize(&config(1), &logs);
        agree(&summary, &plain.exact)?;
        prop_assert_eq!(summary.ranges.len(), Kind::ALL.len());
        let mut statistics = plain.cache.statistics();
        statistics.first_touches = summary.cache.unwrap().statistics.first_touches;
        prop_assert_eq!(summary.cache.unwrap().statistics, statistics);
        if weighted {
            prop_assert_eq!(summary.unit, Unit::Picoseconds);
            prop_assert_eq!(summary.bursts, Bursts { thinned: 0, ..plain.bursts });
            let Trees::One(code) = &summary.of(Kind::Code).unwrap().tree else { panic!() };
            let b = summary.bursts;
            prop_assert_eq!(b.time, code.events + b.kernel_time);
        }
        prop_assert!(summary.memory.used <= summary.memory.limit);
        let (again, _) = summarize(&config(3), &logs);
        prop_assert_eq!(again.ranges, summary.ranges);
        prop_assert_eq!(again.cache, summary.cache);
    }
}

/// More than a batch at a time, which is looked at where the log has it, and less.
#[test]
fn long_logs_agree_with_exact_counts() {
    let program = program(Detail::Values);
    let pass =
        |i: u64| ((i % 7 % 3) as usize, (i / 11 % 4) as usize, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    let long: Vec<Pass> = (0..12_000).map(pass).collect();
    let short: Vec<Pass> = (0..500).map(pass).collect();
    let logs: Vec<Vec<u64>> =
        [&short, &long, &short, &short].map(|passes| log(&program, 1, None, passes)).to_vec();
    for (weighted, in_parts) in [(false, false), (false, true), (true, true)] {
        let config = |consumers| Config { in_parts, ..config(weighted, consumers) };
        let (summary, plain) = summarize(&config(1), &logs);
        agree(&summary, &plain.exact).unwrap();
        let mut statistics = plain.cache.statistics();
        statistics.first_touches = summary.cache.unwrap().statistics.first_touches;
        assert_eq!(summary.cache.unwrap().statistics, statistics);
        let (again, _) = summarize(&config(2), &logs);
        assert_eq!(again.ranges, summary.ranges);
    }
}

/// Logs of one superblock each, so that those all of whose passes are plain are counted without a list; registers that keep
/// their value for long and ones that change.
#[test]
fn long_logs_of_one_superblock_agree_with_exact_counts() {
    let program = program(Detail::Values);
    let logs: Vec<Vec<u64>> = (0..3)
        .flat_map(|block| [1, 9_000].map(|steady| (block, steady)))
        .map(|(block, steady)| {
            let seed = |i: u64| (i / steady).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let passes: Vec<Pass> = (0..20_000).map(|i| (block, (i / 11 % 4) as usize, seed(i))).collect();
            log(&program, 1, None, &passes)
        })
        .collect();
    for consumers in 1..=2 {
        let (summary, plain) = summarize(&config(false, consumers), &logs);
        agree(&summary, &plain.exact).unwrap();
        let mut statistics = plain.cache.statistics();
        statistics.first_touches = summary.cache.unwrap().statistics.first_touches;
        assert_eq!(summary.cache.unwrap().statistics, statistics);
    }
}

/// What is left out of a burst that is too long for the memory there is weighs no less.
#[test]
fn long_bursts_are_thinned_and_weigh_the_same() {
    let program = program(Detail::Values);
    let pass =
        |i: u64| ((i % 3) as usize, (i / 11 % 4) as usize, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    let logs = [log(&program, 1, None, &(0..100_000).map(pass).collect::<Vec<Pass>>())];
    let small = Config { max_memory: 12 << 20, ..config(true, 1) };
    let (summary, plain) = summarize(&small, &logs);
    assert_eq!(summary.bursts.thinned, 1);
    assert!(summary.memory.used <= summary.memory.limit);
    for ranges in &summary.ranges {
        let exact: u64 = plain.exact[&ranges.kind].values().sum();
        let Trees::One(tree) = &ranges.tree else { continue };
        let (low, high) = if ranges.kind == Kind::Code { (1.0, 1.0) } else { (0.9, 1.1) };
        let share = tree.events as f64 / exact as f64;
        // Misses depend on what was there before, which is thinned too.
        let of_cache = matches!(ranges.kind, Kind::Dl1MissValues | Kind::Dl2MissValues);
        assert!(of_cache || (low..=high).contains(&share), "{:?}: {share}", ranges.kind);
    }
}
