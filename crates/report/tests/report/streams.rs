//! Hot data streams: where they are, and what there is to gain.

use sonde_place::{Kind as RegionKind, Place, Region};
use sonde_report::{Report, Section};
use sonde_streams::{Lost, Shape};
use sonde_summary::Unit;

use crate::made_up::{Built, Kept, kept, text};

const HEAP: u16 = 2;

/// A report of one stream over so many cache lines, that often among so many references.
fn told(kept: &mut Kept, slot: u16, lines: u64, frequency: u64, references: u64) -> Report {
    let stream = &mut kept.streams.streams[0];
    stream.addresses = (0..lines).map(|i| Place::new(slot, 0x1000 + 64 * i).0).collect();
    stream.pcs = vec![stream.pcs[0]; lines as usize];
    (stream.frequency, stream.at_most) = (frequency, frequency);
    kept.streams.references = references;
    kept.report()
}

#[test]
fn streams_are_told_with_where_they_are_and_what_to_do() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let report = told(&mut kept, HEAP, 1040, 20, 30_000);
    let stream = &report.streams.as_ref().unwrap().streams[0];
    assert!((stream.share - 0.693333333).abs() < 1e-9);
    assert_eq!(stream.code.len(), 1, "one line");
    assert!(stream.code[0].starts_with("hot, source.c:"), "{:?}", stream.code);
    assert_eq!((stream.data.len(), stream.shape.as_str()), (1040, "strided by 64 B"));
    assert_eq!(stream.advice, Shape::Strided { stride: 64 }.advice());
}

/// Data that do not leave the nearest cache are no reason for advice.
#[test]
fn there_is_no_advice_for_what_stays_in_the_cache() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let stack = kept.regions.number(&Region {
        kind: RegionKind::Stack,
        name: "[stack]".into(),
        build_id: Vec::new(),
    });
    let mut advice = |slot, lines, frequency, references| {
        told(&mut kept, slot, lines, frequency, references).streams.unwrap().streams.remove(0).advice
    };
    let gain = Shape::Strided { stride: 64 }.advice();
    assert!(advice(stack, 40, 10, 100_000).starts_with("All of it is on the stack"));
    // 64 KiB are 1024 lines.
    assert_eq!(advice(HEAP, 1025, 10, 10_300), gain);
    assert!(advice(HEAP, 1024, 10, 10_300).starts_with("All hot streams together are in 64 KiB, which"));
    assert!(advice(HEAP, 40, 100, 102_400).starts_with("It comes again every 1,024 references or less"));
    assert_eq!(advice(HEAP, 1025, 100, 102_500), gain);
    kept.streams.lost = Lost { streams: 1, heat: 1, ..Lost::default() };
    let others_not_known = told(&mut kept, HEAP, 1000, 10, 10_300).streams.unwrap().streams.remove(0).advice;
    assert_eq!(others_not_known, gain);
    // A variable of 4 B, whatever else there is.
    let stream = &mut kept.streams.streams[0];
    stream.addresses = vec![Place::new(1, built.at("_IO_stdin_used").0).0; 40];
    let advice = kept.report().streams.unwrap().streams.remove(0).advice;
    assert!(advice.starts_with("All of it is in 4 B: too little"), "{advice}");
}

/// What covers little says nothing about the rest, and what lies between bursts is not known.
#[test]
fn too_little_to_conclude_is_told_as_that() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let advice = |kept: &mut Kept, lines, frequency, references| {
        told(kept, HEAP, lines, frequency, references).streams.unwrap().streams.remove(0).advice
    };
    let open = "Hot streams cover 0.4 % of 100,000 references; the others did not repeat in what was recorded: too little";
    let seen = advice(&mut kept, 40, 10, 100_000);
    assert!(seen.starts_with(open), "{seen}");
    // Between: small, if the rest leaves it alone.
    let perhaps = advice(&mut kept, 1000, 10, 14_000);
    assert!(
        perhaps.contains("less than the nearest cache (64 KiB), if the 28.6 % of references"),
        "{perhaps}"
    );
    // Every 500 references of what was recorded.
    let again = advice(&mut kept, 40, 200, 100_000);
    assert!(again.starts_with("It comes again every 500 references"), "{again}");
    // The same in bursts of 1,000 references: half of the occurrences may be the last of their burst.
    kept.streams.bursts = 100;
    let across = advice(&mut kept, 40, 200, 100_000);
    assert!(across.starts_with("Hot streams cover 8.0 % of 100,000 references"), "{across}");
    let within = advice(&mut kept, 40, 500, 100_000);
    assert!(within.starts_with("It comes again every 250 references"), "{within}");
    // A stream that is much by itself has its advice.
    let much = advice(&mut kept, 1025, 20, 100_000);
    assert_eq!(much, Shape::Strided { stride: 64 }.advice());
}

#[test]
fn sentences_are_never_cut_and_places_told_once() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    let mut report = told(&mut kept, HEAP, 40, 20, 100_000);
    let stream = &mut report.streams.as_mut().unwrap().streams[0];
    stream.code = ["one, a.c:1", "two, a.c:2"].repeat(20).into_iter().map(String::from).collect();
    let advice = stream.advice.clone();
    let shown = text(&report, &[Section::Streams], 60);
    let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(&advice), "{shown}");
    assert!(joined.contains("code one, a.c:1 > two, a.c:2 data "), "{shown}");
    assert!(joined.contains("data heap+0x1000 > heap+0x1040 and 38 more "), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
}
