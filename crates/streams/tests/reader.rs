//! The reader and its profile: bounds against brute force, boundaries, threads, limits, merging, relocation.

use proptest::prelude::*;
use sonde_event::{Access, Begin, Cause, End, Reader, Ref};
use sonde_streams::signature::{Share, overlap};
use sonde_streams::{Shape, Stream, StreamsConfig, StreamsError, StreamsProfile, StreamsReader};
use std::collections::HashMap;

fn load(pc: u64, address: u64) -> Ref {
    Ref {
        pc,
        access: Access::Load,
        size: 8,
        recorded: true,
        address: Some(address),
        value: None,
        count: 1,
        atomic: false,
        conditional: false,
    }
}

/// A trace of symbols as references.
fn reference(symbol: u32) -> Ref {
    load(0x40_0000 + u64::from(symbol), 0x10_0000 + 24 * u64::from(symbol))
}

fn small() -> StreamsConfig {
    StreamsConfig { min_length: 3, max_length: 9, ..StreamsConfig::default() }
}

fn profile(config: StreamsConfig, trace: &[u32]) -> StreamsProfile {
    let mut reader = StreamsReader::new(config).unwrap();
    trace.iter().for_each(|s| reader.reference(1, &reference(*s)));
    reader.finish()
}

fn symbols(stream: &Stream) -> Vec<u32> {
    stream.pcs.iter().map(|pc| (pc - 0x40_0000) as u32).collect()
}

fn frequency(trace: &[u32], word: &[u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at + word.len() <= trace.len() {
        let here = trace[at..].starts_with(word);
        count += u64::from(here);
        at += if here { word.len() } else { 1 };
    }
    count
}

fn traces() -> impl Strategy<Value = Vec<u32>> {
    let words = prop::collection::vec(prop::collection::vec(0..12u32, 1..15), 1..6);
    (words, prop::collection::vec((0..6usize, 1..6usize), 1..30)).prop_map(|(words, plan)| {
        let times = |(w, n): (usize, usize)| words[w % words.len()].repeat(n);
        plan.into_iter().flat_map(times).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_true_frequency_is_within_the_bounds(trace in traces()) {
        let profile = profile(small(), &trace);
        profile.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(profile.references, trace.len() as u64);
        for stream in &profile.streams {
            let truth = frequency(&trace, &symbols(stream));
            prop_assert!(stream.frequency <= truth && truth <= stream.at_most, "{:?}: {}", stream, truth);
        }
    }

    #[test]
    fn merged_profiles_stay_true(a in traces(), b in traces()) {
        let (mut both, other) = (profile(small(), &a), profile(small(), &b));
        let mut swapped = other.clone();
        swapped.merge(&both);
        both.merge(&other);
        both.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(&both, &swapped);
        for stream in &both.streams {
            let word = symbols(stream);
            let truth = frequency(&a, &word) + frequency(&b, &word);
            prop_assert!(stream.frequency <= truth && truth <= stream.at_most);
        }
    }
}

#[test]
fn nothing_is_found_across_bursts() {
    let (begin, end) =
        (Begin { tid: 1, time: 0, pc: 0, kernel: None }, End { tid: 1, time: 0, cause: Cause::Stop, pc: 0 });
    // Each burst ends with 1 2 and the next begins with 3 4 5: the five together are never in one burst.
    let mut reader = StreamsReader::new(StreamsConfig { min_length: 5, max_length: 9, ..small() }).unwrap();
    for _ in 0..200 {
        reader.begin(&begin);
        [3, 4, 5, 1, 2].iter().for_each(|s| reader.reference(1, &reference(*s)));
        reader.end(&end);
    }
    let profile = reader.finish();
    profile.check().unwrap();
    assert_eq!(profile.bursts, 200);
    assert_eq!(profile.streams.len(), 1);
    assert_eq!((symbols(&profile.streams[0]), profile.streams[0].frequency), (vec![3, 4, 5, 1, 2], 200));
    assert_eq!(profile.coverage(), 1.0);
}

#[test]
fn a_gap_is_not_bridged_either() {
    let mut reader = StreamsReader::new(StreamsConfig { min_length: 5, max_length: 9, ..small() }).unwrap();
    for _ in 0..100 {
        [1, 2, 3].iter().for_each(|s| reader.reference(1, &reference(*s)));
        reader.gap();
    }
    let profile = reader.finish();
    assert_eq!((profile.streams.len(), profile.lost.gaps), (0, 100));
}

#[test]
fn threads_are_kept_apart_and_share_streams() {
    // Interleaved reference by reference, each thread walks 0..10 in its own rhythm.
    let mut reader = StreamsReader::new(StreamsConfig { min_length: 10, max_length: 10, ..small() }).unwrap();
    for i in 0..1000u32 {
        reader.reference(1, &reference(i % 10));
        reader.reference(2, &reference((i + 3) % 10));
    }
    let profile = reader.finish();
    profile.check().unwrap();
    assert!(profile.coverage() > 0.85, "{}", profile.coverage());
    // What both repeat is counted as one stream.
    let shared = profile.streams.iter().map(|s| s.frequency).max();
    assert!(shared > Some(100), "{shared:?}");
}

#[test]
fn memory_is_bounded_and_restarts_are_counted() {
    let config = StreamsConfig {
        max_grammar: 1 << 12,
        max_references: 1 << 10,
        max_streams: 8,
        ..StreamsConfig::default()
    };
    let mut reader = StreamsReader::new(config).unwrap();
    let mut most = 0;
    for i in 0..400_000u64 {
        // New references all the time, with a loop of 20 between.
        reader.reference(1, &load(1, 0x10_0000 + 8 * i));
        reader.reference(1, &load(2 + i % 20, 0x100 + i % 20));
        if i % 1000 == 0 {
            most = most.max(reader.memory_bytes());
        }
    }
    for i in 0..300_000u64 {
        // Few references, no order.
        reader.reference(1, &load(1, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55));
    }
    assert!(most < 1 << 20, "{most}");
    let profile = reader.finish();
    profile.check().unwrap();
    assert!(profile.lost.table_restarts >= 400_000 / 1024, "{:?}", profile.lost);
    assert!(profile.lost.grammar_restarts > 0);
    assert_eq!(profile.parts, 1 + profile.lost.table_restarts + profile.lost.grammar_restarts);
    assert_eq!(profile.references, 1_100_000);
    assert!(profile.streams.len() <= 8);
}

#[test]
fn streams_found_in_several_parts_add_up() {
    let config = StreamsConfig { max_references: 1 << 8, ..StreamsConfig::default() };
    let mut reader = StreamsReader::new(config).unwrap();
    for round in 0..100u64 {
        for _ in 0..50 {
            (0..20u32).for_each(|s| reader.reference(1, &reference(s)));
        }
        (0..100).for_each(|i| reader.reference(1, &load(9, 0x9000_0000 + 800 * round + 8 * i)));
    }
    let profile = reader.finish();
    profile.check().unwrap();
    assert!(profile.lost.table_restarts > 10);
    assert!(profile.coverage() > 0.85, "{}", profile.coverage());
    assert!(profile.streams[0].heat() > profile.references / 2);
}

#[test]
fn the_coldest_streams_are_dropped_and_counted() {
    let trace: Vec<u32> = (0..40u32)
        .flat_map(|w| (20 * w..20 * w + 20).collect::<Vec<_>>().repeat(3 + w as usize))
        .chain((0..800).rev())
        .collect();
    let all = profile(StreamsConfig::default(), &trace);
    let few = profile(StreamsConfig { max_streams: 5, ..StreamsConfig::default() }, &trace);
    few.check().unwrap();
    assert_eq!(few.streams.len(), 5);
    assert_eq!(few.lost.streams + 5, all.streams.len() as u64);
    assert_eq!(few.lost.heat + few.covered(), all.covered());
    assert_eq!(few.coverage_found(), all.coverage());
    assert_eq!(few.streams[0], all.streams[0]);
}

#[test]
fn what_is_left_out_is_counted() {
    let mut reader = StreamsReader::new(StreamsConfig { only: Some(Access::Load), ..small() }).unwrap();
    let odd = [
        Ref { address: None, ..load(1, 0) },
        Ref { conditional: true, ..load(1, 8) },
        Ref { count: 0, ..load(1, 8) },
        Ref { count: 5, ..load(1, 8) },
        Ref { access: Access::Store, ..load(1, 8) },
    ];
    odd.iter().for_each(|r| reader.reference(1, r));
    let profile = reader.finish();
    assert_eq!(profile.references, 1);
    let lost = profile.lost;
    assert_eq!((lost.without_address, lost.conditional, lost.repetitions), (1, 1, 1));
}

#[test]
fn lists_are_told_from_arrays_by_their_values() {
    let nodes: Vec<u64> = (0..15u64).map(|i| 0x20_0000 + (i * 7919 % 64) * 0x1000).collect();
    let mut reader = StreamsReader::new(StreamsConfig::default()).unwrap();
    for _ in 0..100 {
        for i in 0..nodes.len() {
            let next = nodes.get(i + 1).copied().unwrap_or(0);
            reader.reference(1, &Ref { value: Some(7), ..load(1, nodes[i]) });
            reader.reference(1, &Ref { value: Some(next), ..load(2, nodes[i] + 8) });
        }
    }
    let profile = reader.finish();
    assert!(profile.coverage() > 0.9);
    assert!(matches!(profile.streams[0].shape, Shape::PointerChasing { links } if links >= 8), "{profile:?}");
}

#[test]
fn relocated_streams_unite() {
    let mut reader = StreamsReader::new(small()).unwrap();
    for base in [0x10_0000u64, 0x20_0000] {
        for _ in 0..30 {
            (0..6).for_each(|i| reader.reference(1, &load(0x40_0000 + i, base + 8 * i)));
        }
    }
    let mut profile = reader.finish();
    let before = profile.covered();
    let mut places: HashMap<u64, u64> = HashMap::new();
    profile.relocate(&mut |a| {
        let place = if a < 0x40_0000 { (3 << 48) | (a & 0xffff) } else { (1 << 48) | (a - 0x40_0000) };
        *places.entry(a).or_insert(place)
    });
    profile.check().unwrap();
    assert_eq!(profile.covered(), before);
    assert!(profile.streams.iter().flat_map(|s| &s.pcs).all(|pc| pc >> 48 == 1));
    assert!(profile.streams.iter().flat_map(|s| &s.addresses).all(|a| a >> 48 == 3));
    let unique: std::collections::HashSet<_> =
        profile.streams.iter().map(|s| (s.pcs.clone(), s.addresses.clone())).collect();
    assert_eq!(unique.len(), profile.streams.len());
}

#[test]
fn overlap_by_signature() {
    let stream = |pcs: &[u64], address, frequency| Stream {
        pcs: pcs.to_vec(),
        addresses: vec![address; pcs.len()],
        frequency,
        at_most: frequency,
        shape: Shape::Irregular,
    };
    let p = StreamsProfile {
        streams: vec![stream(&[1, 2], 0, 30), stream(&[3, 4], 0, 10)],
        references: 100,
        ..StreamsProfile::default()
    };
    // The same signature at two addresses counts together; 3 4 is missing, 5 6 is new.
    let q = StreamsProfile {
        streams: vec![stream(&[1, 2], 8, 10), stream(&[1, 2], 16, 10), stream(&[5, 6], 8, 20)],
        references: 160,
        ..StreamsProfile::default()
    };
    assert_eq!(overlap(&p, &q, Share::OfProfile), 0.5);
    assert_eq!(overlap(&q, &p, Share::OfProfile), 0.5);
    assert_eq!(overlap(&p, &q, Share::OfTrace), 40.0 / 160.0);
    assert_eq!(overlap(&p, &p, Share::OfProfile), 1.0);
    assert_eq!(overlap(&p, &p, Share::OfTrace), 0.8);
    assert_eq!(overlap(&p, &StreamsProfile::default(), Share::OfProfile), 0.0);
}

#[test]
fn impossible_settings_are_refused() {
    let bad = |config: StreamsConfig| StreamsReader::new(config).expect_err("an error").to_string();
    let good = StreamsConfig::default();
    assert!(bad(StreamsConfig { min_length: 50, ..good }).contains("50 to 40"));
    assert!(bad(StreamsConfig { coverage: 0.0, ..good }).contains("coverage of 0"));
    assert!(bad(StreamsConfig { coverage: f64::NAN, ..good }).contains("NaN"));
    assert!(bad(StreamsConfig { max_grammar: 1, ..good }).contains("1024"));
    let error = StreamsReader::new(StreamsConfig { max_length: 1000, ..good }).err();
    assert_eq!(error, Some(StreamsError::Lengths { min: 10, max: 1000 }));
}

#[test]
fn broken_profiles_are_found() {
    let good = profile(small(), &[1, 2, 3, 4].repeat(50));
    good.check().unwrap();
    assert!(!good.streams.is_empty());
    let broken = |change: &dyn Fn(&mut StreamsProfile)| {
        let mut profile = good.clone();
        change(&mut profile);
        profile.check().expect_err("not right")
    };
    assert!(broken(&|p| p.references = 10).contains("account for"));
    assert!(broken(&|p| p.streams[0].frequency = 0).contains("occurs 0"));
    assert!(broken(&|p| p.streams[0].addresses.truncate(1)).contains("1 addresses"));
    assert!(broken(&|p| p.min_length = 100).contains("length"));
    assert!(broken(&|p| p.max_streams = 0).contains("at most 0"));
    assert!(broken(&|p| p.streams.push(Stream { frequency: 1, ..p.streams[0].clone() })).len() > 1);
}
