//! Hot data streams of a real program whose references are known: recorded in full, read from the trace file.

#[path = "common/sonde.rs"]
mod sonde;

use std::fs::File;
use std::path::Path;

use sonde::Bench;
use sonde_event::trace::{TraceReader, replay};
use sonde_streams::bursts::{FIGURE_7, OverlapExperiment, Setting};
use sonde_streams::{Shape, Stream, StreamsConfig, StreamsProfile, StreamsReader};

const NODES: u64 = 31;
const ROUNDS: u64 = 400;
const ELEMENTS: u64 = 24;
const NODE: u64 = 256;

/// Where the program's data lie.
struct Places {
    nodes: u64,
    array: u64,
    cells: u64,
}

fn record(bench: &Bench) -> Places {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/streams.c");
    let source = std::fs::read_to_string(source).unwrap();
    let program = bench.compile("streams", &source, &["-O1"]);
    let args = ["trace", "record", "--policy", "always", "-o", "t", "--", program.to_str().unwrap()];
    let out = bench.sonde(&args).good().text();
    let hex = |w: &str| u64::from_str_radix(w.trim_start_matches("0x"), 16).unwrap();
    let places: Vec<u64> = out.lines().next().unwrap().split(' ').map(hex).collect();
    Places { nodes: places[0], array: places[1], cells: places[2] }
}

fn trace(bench: &Bench) -> TraceReader<File> {
    TraceReader::new(File::open(bench.path("t")).unwrap()).unwrap()
}

/// The streams that are mostly between two addresses. A call and a return stand between two rounds, and are part of what
/// repeats.
fn mostly_within(profile: &StreamsProfile, from: u64, bytes: u64) -> Vec<&Stream> {
    let mostly = |s: &&Stream| inside(s, from, bytes).len() * 2 > s.addresses.len();
    profile.streams.iter().filter(mostly).collect()
}

fn inside(stream: &Stream, from: u64, bytes: u64) -> Vec<u64> {
    stream.addresses.iter().copied().filter(|a| (from..from + bytes).contains(a)).collect()
}

/// Whether addresses are a stretch of what is visited round and round.
fn stretch_of(addresses: &[u64], round: &[u64]) -> bool {
    let rounds = round.repeat(2 + addresses.len() / round.len());
    rounds.windows(addresses.len()).any(|w| w == addresses)
}

fn heat(streams: &[&Stream]) -> u64 {
    streams.iter().map(|s| s.heat()).sum()
}

#[test]
fn lists_and_strides_are_found_and_told_apart_and_what_never_repeats_is_not() {
    let bench = Bench::new();
    let places = record(&bench);
    let mut reader = StreamsReader::new(StreamsConfig::default()).unwrap();
    let replayed = replay(&mut trace(&bench), &mut reader).unwrap();
    assert_eq!(replayed.errors, 0);
    let profile = reader.finish();
    profile.check().unwrap();
    assert_eq!((profile.bursts, profile.lost.gaps), (1, 0));

    let list = mostly_within(&profile, places.nodes, NODES * NODE);
    let order = (0..NODES).map(|i| places.nodes + i * 7 % NODES * NODE);
    let walk: Vec<u64> = order.flat_map(|n| [n + 8, n]).collect();
    for stream in &list {
        assert!(matches!(stream.shape, Shape::PointerChasing { links } if links >= 4), "{stream:x?}");
        assert!(stretch_of(&inside(stream, places.nodes, NODES * NODE), &walk), "{stream:x?}");
        assert!(stream.frequency <= ROUNDS && ROUNDS <= stream.at_most + 1, "{stream:?}");
    }
    assert!(heat(&list) * 10 > ROUNDS * 2 * NODES * 9, "{} of {}", heat(&list), ROUNDS * 2 * NODES);

    let visited: Vec<u64> = (0..ELEMENTS).map(|i| places.array + NODE * i).collect();
    let array = mostly_within(&profile, places.array, ELEMENTS * NODE);
    for stream in &array {
        assert_eq!(stream.shape, Shape::Strided { stride: NODE as i64 }, "{stream:x?}");
        assert!(stretch_of(&inside(stream, places.array, ELEMENTS * NODE), &visited), "{stream:x?}");
    }
    assert!(heat(&array) * 10 > ROUNDS * ELEMENTS * 9, "{} of {}", heat(&array), ROUNDS * ELEMENTS);

    // A word of ten that the generator gives twice would be a wonder.
    assert!(mostly_within(&profile, places.cells, 8 * 65536).is_empty());
}

#[test]
fn sampled_profiles_are_compared_with_the_full_one() {
    let bench = Bench::new();
    record(&bench);
    let everything = Setting { check: 1, instr: u32::MAX };
    let settings = [&FIGURE_7[..], &[everything]].concat();
    let mut experiment = OverlapExperiment::new(StreamsConfig::default(), &settings).unwrap();
    replay(&mut trace(&bench), &mut experiment).unwrap();
    let (full, rows) = experiment.finish();
    full.check().unwrap();
    for row in &rows {
        row.profile.check().unwrap();
        assert!((0.0..=1.0 + 1e-9).contains(&row.overlap), "{}", row.overlap);
        // Checks are sampled at the rate; references follow, unevenly.
        let ratio = row.recorded / row.setting.rate();
        assert!((0.3..3.0).contains(&ratio), "{:?} recorded {}", row.setting, row.recorded);
    }
    let last = rows.last().unwrap();
    assert!(last.overlap > 0.9 && last.bursts == 1, "{} {}", last.overlap, last.bursts);
    // At the same rate, bursts of one check are too short for a stream; longer ones are not.
    let of = |check, instr| rows.iter().find(|r| r.setting == Setting { check, instr }).unwrap().overlap;
    assert!(of(1000, 50) > of(20, 1), "{} {}", of(1000, 50), of(20, 1));
}

const LISTS: &str = include_str!("programs/lists.c");

/// The report of a walk over a list: what the cache model counted, and what is said of hot data streams.
fn walked(bench: &Bench, list: [&str; 2], policy: &[&str]) -> serde_json::Value {
    let program = bench.compile("lists", LISTS, &["-O1", "-g"]);
    let what = ["run", "--quiet", "--what", "loads,dl1-miss-values,dl2-miss-values,streams", "-o", "p"];
    let command = [program.to_str().unwrap(), list[0], list[1]];
    bench.sonde(&[&what[..], policy, &["--"], &command].concat()).good();
    let report = bench.sonde(&["report", "--json", "p"]).good();
    serde_json::from_slice(&report.out).unwrap()
}

fn advice(report: &serde_json::Value) -> Vec<&str> {
    let streams = report["streams"]["streams"].as_array().unwrap();
    streams.iter().map(|stream| stream["advice"].as_str().unwrap()).collect()
}

/// A list that stays in the nearest cache is never said to miss, and there is no advice for it.
#[test]
fn bursts_of_a_small_list_miss_nothing_that_is_known() {
    let bench = Bench::new();
    // 31 KiB: natively it is loaded once and stays.
    let report = walked(&bench, ["496", "ordered"], &["--period", "5ms"]);
    let cache = &report["cache"];
    let share = |name: &str| cache[name].as_f64().unwrap();
    assert!(share("first_level_misses") < 0.005 && share("second_level_misses") < 0.005, "{cache}");
    // The first round of each burst is what nobody knows.
    assert!(share("first_level_misses_at_most") > share("first_level_misses"), "{cache}");
    assert!(!advice(&report).iter().any(|advice| advice.contains("hides the misses")), "{report}");
}

/// A list that fits no cache is never said to fit, however little of it repeats in bursts.
#[test]
fn bursts_of_a_large_shuffled_list_are_not_said_to_fit() {
    let bench = Bench::new();
    let report = walked(&bench, ["500000", "shuffled"], &["--period", "5ms"]);
    let cache = &report["cache"];
    // All but the stack misses both levels: one load of two is of a node's second word.
    let most = cache["second_level_misses_at_most"].as_f64().unwrap();
    assert!(most > 0.4, "{cache}");
    let of_the_list = advice(&report).into_iter().filter(|advice| !advice.contains("on the stack"));
    for advice in of_the_list {
        assert!(!advice.contains("has room for"), "{advice}: {report}");
    }
}
