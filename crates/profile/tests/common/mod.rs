//! Profiles that are made up, but as full as real ones.
#![allow(dead_code, reason = "each test uses a part")]

use sonde_calls::{Backward, CallProfile, Context, Invoked, NotKept, Pair, Region as CodeRegion};
use sonde_event::Counts;
use sonde_event::trace::Machine;
use sonde_loops::{Doubts, LoopStats, LoopsProfile, Spread};
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_profile::{Ending, Profile, Run, Timeline};
use sonde_rap::{Config, Tree};
use sonde_starts::{Start, StartsProfile, Sum};
use sonde_streams::{Lost, Shape, Stream, StreamsProfile};
use sonde_summary::{
    BlockWeight, Bursts, CacheCounts, Domain, Kind, Memory, Missing, Ranges, Summary, Trees, Unit,
};
use sonde_values::filter::Recorded;
use sonde_values::{LoadValues, Method, Totals, ValueCount, ValueProfile};

/// Numbers that look random and are always the same (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub fn region(kind: RegionKind, name: &str, build_id: &[u8]) -> Region {
    Region { kind, name: name.into(), build_id: build_id.into() }
}

/// A program, a library, heap and stack, met in an order that depends on the seed.
pub fn regions(seed: u64) -> Regions {
    let mut known = [
        region(RegionKind::Module, "/opt/program", &[1, 2, 3]),
        region(RegionKind::Module, "/lib/libc.so.6", &[4, 5, 6]),
        region(RegionKind::Heap, "[heap]", &[]),
        region(RegionKind::Stack, "[stack]", &[]),
    ];
    known.rotate_left((seed % 4) as usize);
    let mut regions = Regions::default();
    known.iter().for_each(|region| {
        regions.number(region);
    });
    regions
}

/// The place of an offset in a region known by its name.
pub fn place(regions: &Regions, name: &str, offset: u64) -> u64 {
    let slot = regions.all().iter().position(|r| r.name == name).expect("a known region");
    Place::new(slot as u16, offset).0
}

/// One event of a kind: skewed, so that there are hot and cold ranges.
pub fn event(random: &mut Random, regions: &Regions, domain: Domain) -> u64 {
    let near = |random: &mut Random, span: u64| {
        let bits = random.below(20);
        random.below(1 << bits) * 8 % span
    };
    match domain {
        Domain::Code if random.below(4) == 0 => {
            place(regions, "/lib/libc.so.6", 0x2_0000 + near(random, 0x8000))
        }
        Domain::Code => place(regions, "/opt/program", 0x1000 + near(random, 0x4000)),
        Domain::Data if random.below(3) == 0 => {
            place(regions, "[stack]", (1 << 47) - 8 - near(random, 0x1000))
        }
        Domain::Data => place(regions, "[heap]", near(random, 0x10_0000)),
        Domain::Value => random.next() >> random.below(64),
    }
}

pub fn ranges(random: &mut Random, regions: &Regions, kind: Kind, events: u64, config: &Config) -> Ranges {
    let tree = match kind.domains() {
        [domain] => {
            let mut tree = Tree::<u64>::new(config.clone()).expect("valid");
            for _ in 0..events {
                let key = event(random, regions, *domain);
                tree.add_weighted(key, 1 + random.below(9));
            }
            Trees::One(tree.snapshot())
        }
        domains => {
            let mut tree = Tree::<[u64; 2]>::new(config.clone()).expect("valid");
            for _ in 0..events {
                let key = [event(random, regions, domains[0]), event(random, regions, domains[1])];
                tree.add_weighted(key, 1 + random.below(9));
            }
            Trees::Two(tree.snapshot())
        }
    };
    Ranges { kind, unit: Unit::Events, events, tree }
}

pub fn run(seed: u64) -> Run {
    let mut run = Run {
        recorder: "0.1.0".into(),
        path: "/opt/program".into(),
        policy: "bursts".into(),
        record: "values".into(),
        trigger: Some("stops".into()),
        trigger_note: Some("perf events are forbidden here".into()),
        loader: "placed".into(),
        period_ns: 10_000_000,
        burst_checks: 1000,
        rate: Some(0.01),
        max_overhead: Some(0.03),
        mean_period_ns: Some(12_000_000),
        bursts_left_out: 20,
        random_gap: 0.5,
        seed,
        started_ms: 1_700_000_000_000 + seed,
        machine: Machine { processor: "x".into(), processors: 2, kernel: "6.1".into() },
        cpu_ns: 123_456_789,
        system_ns: Some(3_456_789),
        sonde_ns: Some(98_765_432),
        wall_ns: 234_567_890,
        ending: if seed.is_multiple_of(2) { Ending::Status(0) } else { Ending::Signal(9) },
        bursts: 100,
        burst_ns: 1_000_000,
        became: None,
        error: None,
        counters: [("triggers".into(), 120)].into(),
        burst_ends: [("checks".into(), 90), ("syscall".into(), 10)].into(),
        losses: [("skipped_code".into(), 20)].into(),
        timeline: Timeline::default(),
        ..Run::default()
    };
    run.set_command(["program", "--fast", ""]);
    (0..50).for_each(|i| run.timeline.add(i * 3_000_000, 2_000_000, 2));
    run
}

/// A profile with a tree of every kind.
pub fn profile(seed: u64, events: u64, config: &Config) -> Profile {
    let mut random = Random(seed);
    let regions = regions(seed);
    let ranges: Vec<Ranges> =
        Kind::ALL.iter().map(|kind| ranges(&mut random, &regions, *kind, events, config)).collect();
    let mut blocks: Vec<BlockWeight> = (0..30u64)
        .map(|i| BlockWeight {
            place: Place(place(&regions, "/opt/program", 0x1000 + i * 16)),
            bytes: 9,
            weight: 5 + i,
        })
        .collect();
    blocks.sort();
    let summary = Summary {
        unit: Unit::Events,
        counts: Counts {
            bursts: 100,
            runs: 9,
            blocks: 8,
            instructions: 7,
            loads: 6,
            stores: 5,
            without_address: 4,
            repetitions: 3,
            unrecorded: 2,
        },
        bursts: Bursts {
            count: 100,
            empty: 1,
            thinned: 2,
            time: 3,
            kernel_time: 1,
            squares: 4,
            reference_time: 5,
            reference_squares: 6,
        },
        ranges,
        blocks,
        regions,
        cache: Some(CacheCounts {
            config: sonde_cache::Config::default(),
            statistics: sonde_cache::Statistics {
                loads: 60,
                first_load_misses: 50,
                first_load_unknown: 9,
                second_load_misses: 40,
                second_load_unknown: 8,
                stores: 30,
                first_store_misses: 20,
                first_store_unknown: 7,
                second_store_misses: 10,
                second_store_unknown: 6,
                first_touches: 5,
            },
        }),
        missing: Missing { unplaced_code: 1, gaps: 2, ..Missing::default() },
        memory: Memory { limit: 1 << 20, used: 1 << 19 },
    };
    let code = |offset| place(&summary.regions, "/opt/program", offset);
    let (calls, streams, loops) = (calls(&code), streams(&code), loops(&code));
    Profile {
        values: Some(values(&code)),
        starts: Some(starts(&code)),
        calls: Some(calls),
        streams: Some(streams),
        loops: Some(loops),
        ..Profile::of_run(run(seed), summary)
    }
}

/// Bursts began at two instructions, and behind system calls.
pub fn starts(code: &dyn Fn(u64) -> u64) -> StartsProfile {
    let start = |offset, count| Start { pc: code(offset), sum: Sum { count, weight: 10 * count } };
    StartsProfile {
        starts: vec![start(0x1010, 70), start(0x1200, 20)],
        behind_calls: Sum { count: 8, weight: 80 },
        in_faults: Sum { count: 3, weight: 30 },
        not_kept: Sum { count: 2, weight: 20 },
    }
}

/// main calls two functions, one of which calls the other.
pub fn calls(code: &dyn Fn(u64) -> u64) -> CallProfile {
    let context = |parent, offset, calls, instructions| Context {
        parent,
        function: code(offset),
        around: parent == 0,
        calls,
        calls_weight: 3 * calls,
        instructions,
        weight: 3 * instructions,
        rest: 0,
    };
    let root = Context::default();
    CallProfile {
        instructions: 160,
        weight: 480,
        bursts: 100,
        calls: 12,
        returns: 11,
        regions: vec![CodeRegion { branch: code(0x1008), count: 12, instructions: 90, weight: 270 }],
        backward: vec![Backward { branch: code(0x1100), count: 3, weight: 9 }],
        functions: vec![
            Invoked { entry: code(0x1200), count: 5, weight: 15 },
            Invoked { entry: code(0x1300), count: 6, weight: 18 },
        ],
        pairs: vec![Pair { site: code(0x1010), callee: code(0x1200), count: 5, weight: 15 }],
        contexts: vec![
            root,
            root,
            context(0, 0x1000, 0, 100),
            context(2, 0x1200, 5, 40),
            context(3, 0x1300, 4, 15),
            context(2, 0x1300, 3, 5),
        ],
        not_kept: NotKept { contexts: 0, pairs: 7, functions: 1 },
        ..CallProfile::default()
    }
}

/// Two streams.
pub fn streams(code: &dyn Fn(u64) -> u64) -> StreamsProfile {
    let stream = |step: u64, frequency, shape| Stream {
        pcs: vec![code(0x1010); 12],
        addresses: (0..12).map(|i| code(0x8000 + i * step)).collect(),
        frequency,
        at_most: frequency + 4,
        shape,
    };
    StreamsProfile {
        streams: vec![
            stream(64, 50, Shape::Strided { stride: -64 }),
            stream(8, 20, Shape::PointerChasing { links: 7 }),
        ],
        references: 2000,
        bursts: 100,
        parts: 1,
        lowest_threshold: 20,
        highest_threshold: 30,
        min_length: 10,
        max_length: 40,
        max_streams: 100,
        lost: Lost { heat: 3, streams: 1, gaps: 2, ..Lost::default() },
    }
}

/// A loop in a loop.
pub fn loops(code: &dyn Fn(u64) -> u64) -> LoopsProfile {
    let one = |header, parent, depth| {
        let mut whole = Spread { executions: 4, iterations: 10, least: 1, most: 4, ..Spread::default() };
        (whole.buckets[1], whole.buckets[2], whole.buckets[3]) = (1, 2, 1);
        LoopStats {
            header,
            function: code(0x1000),
            parent,
            depth,
            latches: vec![header + 8],
            low: header,
            extent: 16,
            body: 5,
            whole,
            passes: 11,
            single: 1,
            own: 50,
            inclusive: 50,
            own_weight: 1.5,
            inclusive_weight: 1.5,
            ..LoopStats::default()
        }
    };
    LoopsProfile {
        loops: vec![one(code(0x1040), None, 1), one(code(0x1060), Some(code(0x1040)), 2)],
        instructions: 160,
        bursts: 100,
        weight: 4.0,
        doubts: Doubts { lost: 3, ..Doubts::default() },
        ..LoopsProfile::default()
    }
}

/// Values of two loads.
pub fn values(code: &dyn Fn(u64) -> u64) -> ValueProfile {
    let value =
        |value, lower: u64| ValueCount { value, lower, estimate: lower as f64 + 0.5, upper: lower + 1 };
    let load = |offset, glacial| LoadValues {
        pc: code(offset),
        size: 8,
        executions: 40,
        seen: 30,
        missed: 2,
        values: vec![value(0, 20), value(u64::MAX, 5)],
        unlisted: 1,
        glacial,
    };
    ValueProfile {
        method: Method::Slots { slots: 64, narrow: true },
        loads: vec![load(0x1010, None), load(0x1018, Some(true))],
        totals: Totals {
            loads: 100,
            profiled: 90,
            returns: 4,
            without_value: 6,
            samples: 60,
            masked: 12,
            ..Totals::default()
        },
        timeline: vec![
            Recorded { loads: 50, logged: 50, recorded: 45, passes: 20, skipped: 1 },
            Recorded { loads: 90, logged: 28, recorded: 15, passes: 18, skipped: 9 },
        ],
    }
}
