//! Figure 2, line by line: a sequence worked out by hand, and what must hold for any.

use super::*;
use crate::daprof::{Average, Granularity, Rounding};
use proptest::prelude::*;

fn at(pc: u64, distance: u32) -> Branch {
    Branch { pc, distance }
}

/// (tag, offset, executions, current, average in eighths, in_loop, freshness)
type Bits = (u32, u8, u16, u16, u16, bool, u8);

fn bits(cache: &ProfileCache) -> Vec<Bits> {
    let valid = cache.entries.iter().filter(|e| e.valid);
    valid.map(|e| (e.tag, e.offset, e.executions, e.current, e.average, e.in_loop, e.freshness)).collect()
}

/// Two places, so that everything happens soon; freshness at most 1.
fn tiny() -> DaprofConfig {
    DaprofConfig { entries: 2, ways: 2, max_freshness: 1, ..DaprofConfig::default() }
}

#[test]
fn every_line_of_figure_2_by_hand() {
    let mut cache = ProfileCache::new(tiny());
    // Not found (13-22): the first place is empty. 40 bytes are 10 words.
    cache.branch(at(0x1000, 40), 0);
    assert_eq!(bits(&cache), [(0x1000, 10, 1, 1, 0, true, 1)]);
    // Found, in the loop (1-3).
    cache.branch(at(0x1000, 40), 0);
    assert_eq!(bits(&cache), [(0x1000, 10, 1, 2, 0, true, 1)]);
    // An inner loop: not found, ages the other (14), lies in its bounds, so that one goes on (23-24). 7 bytes: 2 words.
    cache.branch(at(0xff0, 7), 0);
    assert_eq!(bits(&cache), [(0x1000, 10, 1, 2, 0, true, 0), (0xff0, 2, 1, 1, 0, true, 1)]);
    // The outer branch again: an iteration (3); it is not in the bounds of the inner loop, which is over (25-26):
    // average (7 * 0 + 8 * 1) / 8 = 1 eighth.
    cache.branch(at(0x1000, 40), 0);
    assert_eq!(bits(&cache), [(0x1000, 10, 1, 3, 0, true, 0), (0xff0, 2, 1, 1, 1, false, 1)]);
    // Found, not in the loop (4-9): ages all (5), then is fresh again.
    cache.branch(at(0xff0, 7), 0);
    assert_eq!(bits(&cache), [(0x1000, 10, 1, 3, 0, true, 0), (0xff0, 2, 2, 1, 1, true, 1)]);
    cache.branch(at(0xff0, 7), 0);
    cache.branch(at(0xff0, 7), 0);
    assert_eq!(bits(&cache)[1], (0xff0, 2, 2, 3, 1, true, 1));
    // A third loop elsewhere: the victim is the one that is not fresh, though it is in its loop and its total is the
    // least by chance (0). The inner loop is over: (7 * 1 + 8 * 3) / 8 = 3 (31 / 8 cut off).
    cache.branch(at(0x2000, 1023), 0);
    assert_eq!(bits(&cache), [(0x2000, 255, 1, 1, 0, true, 1), (0xff0, 2, 2, 3, 3, false, 0)]);
    assert_eq!((cache.replaced, cache.halvings), (1, 0));
    // Saturation (10-11): 65534 executions before this one.
    cache.entries[1].executions = 65534;
    cache.branch(at(0xff0, 7), 0);
    assert_eq!(cache.halvings, 1);
    // 65535 >> 1 and 1 >> 1; the loop at 0x2000 is over with average (0 + 8) / 8 = 1.
    assert_eq!(bits(&cache), [(0x2000, 255, 0, 1, 1, false, 0), (0xff0, 2, 32767, 1, 3, true, 1)]);
    // Current iterations stay at 1023.
    for _ in 0..2000 {
        cache.branch(at(0xff0, 7), 0);
    }
    assert_eq!(bits(&cache)[1].3, 1023);
    // (7 * 3 + 8 * 1023) / 8 = 1025 (8205 / 8 cut off).
    cache.branch(at(0x2000, 1023), 0);
    assert_eq!(bits(&cache), [(0x2000, 255, 1, 1, 1, true, 1), (0xff0, 2, 32767, 1023, 1025, false, 0)]);
}

#[test]
fn averages_with_other_ratios() {
    // (7 * 80 + 8 * 20) / 8, (15 * 80 + 8 * 20) / 16, (31 * 80 + 8 * 20) / 32; 82.5 is cut to 82.
    assert_eq!(Average::SevenEighths.next(Rounding::Down, 80, 20), 90);
    assert_eq!(Average::FifteenSixteenths.next(Rounding::Down, 80, 20), 85);
    assert_eq!(Average::ThirtyOneThirtySeconds.next(Rounding::Down, 80, 20), 82);
    assert_eq!(Average::SevenEighths.next(Rounding::Down, 8191, 1023), 8190);
    // 82.5 up; (7 * 8 + 8 * 1 + 4) / 8 = 8.5 down.
    assert_eq!(Average::ThirtyOneThirtySeconds.next(Rounding::Nearest, 80, 20), 83);
    assert_eq!(Average::SevenEighths.next(Rounding::Nearest, 8, 1), 8);
}

/// Where the average of a loop that always has `n` iterations comes to rest, in eighths.
fn rest(rounding: Rounding, n: u16) -> u16 {
    (0..1000).fold(0, |average, _| Average::SevenEighths.next(rounding, average, n))
}

#[test]
fn averages_come_to_rest_below_the_truth() {
    for n in [1, 5, 100, 1000] {
        assert_eq!(rest(Rounding::Down, n), 8 * n - 7);
        assert_eq!(rest(Rounding::Nearest, n), 8 * n - 3);
    }
}

#[test]
fn among_those_not_fresh_the_least_total_makes_room() {
    let config = DaprofConfig { entries: 4, ways: 4, max_freshness: 1, ..DaprofConfig::default() };
    let mut cache = ProfileCache::new(config);
    // Far apart; rounds 5, 2, 9, 1.
    for (pc, rounds) in [(0x1000, 5), (0x2000, 2), (0x3000, 9), (0x4000, 1)] {
        for _ in 0..rounds {
            cache.branch(at(pc, 16), 0);
        }
    }
    // 0x4000 has total 0, but is fresh; of the others 0x2000 has the least.
    cache.branch(at(0x5000, 16), 0);
    let tags: Vec<u32> = bits(&cache).iter().map(|b| b.0).collect();
    assert_eq!(tags, [0x1000, 0x5000, 0x3000, 0x4000]);
}

/// Section 4.4: a loop that calls a function with a loop.
fn call_in_loop(calls: Calls) -> (u16, f64) {
    let mut cache = ProfileCache::new(DaprofConfig { calls, ..DaprofConfig::default() });
    for _ in 0..20 {
        for _ in 0..14 {
            for _ in 0..3 {
                cache.branch(at(0x9000, 8), 1);
            }
            cache.branch(at(0x1000, 40), 0);
        }
        cache.branch(at(0x2000, 8), 0);
    }
    let entry = cache.entries.iter().find(|e| e.tag == 0x1000).unwrap();
    (entry.executions, entry.average())
}

#[test]
fn calls_interfere_unless_they_are_followed() {
    assert_eq!(call_in_loop(Calls::Plain).0, 20 * 14);
    let (executions, average) = call_in_loop(Calls::Followed);
    assert_eq!(executions, 20);
    // 14 * (1 - (7/8)^20) is 13.03; cutting off bits costs up to 7/8.
    assert!((12.1..=13.1).contains(&average), "{average}");
}

#[test]
fn another_depth_is_another_activation() {
    let mut cache = ProfileCache::new(DaprofConfig { calls: Calls::Followed, ..DaprofConfig::default() });
    cache.branch(at(0x1000, 8), 0);
    cache.branch(at(0x1000, 8), 0);
    cache.branch(at(0x1000, 8), 1);
    let e = cache.entries[0];
    assert_eq!((e.executions, e.current, e.average, e.depth), (2, 1, 2, 1));
}

#[test]
fn words_make_neighbours_one() {
    let config = DaprofConfig { granularity: Granularity::Word, ..DaprofConfig::default() };
    let mut cache = ProfileCache::new(config);
    cache.branch(at(0x1000, 8), 0);
    cache.branch(at(0x1002, 8), 0);
    assert_eq!((bits(&cache).len(), cache.aliased), (1, 1));
}

proptest! {
    #[test]
    fn widths_tags_and_freshness_hold(
        branches in prop::collection::vec((0u64..80, 0u32..1024, 0u32..4), 0..600),
        ways in prop::sample::select(vec![8usize, 16, 32]),
        followed in any::<bool>(),
        word in any::<bool>(),
    ) {
        let config = DaprofConfig {
            calls: if followed { Calls::Followed } else { Calls::Plain },
            granularity: if word { Granularity::Word } else { Granularity::Byte },
            ..DaprofConfig::with_ways(ways)
        };
        prop_assert!(config.validate().is_ok());
        let mut cache = ProfileCache::new(config);
        for (pc, distance, depth) in branches {
            let branch = at(0x40_0000 + pc * 6, distance);
            cache.branch(branch, depth);
            let valid: Vec<&Entry> = cache.entries.iter().filter(|e| e.valid).collect();
            let tags: std::collections::BTreeSet<u32> = valid.iter().map(|e| e.tag).collect();
            prop_assert_eq!(tags.len(), valid.len());
            prop_assert!(valid.iter().all(|e| e.fits()));
            // Each new execution makes one fresh and all others older.
            let fresh = valid.iter().filter(|e| e.freshness > 0).count();
            prop_assert!(fresh <= usize::from(config.max_freshness));
            for (i, e) in cache.entries.iter().enumerate().filter(|(_, e)| e.valid) {
                prop_assert!(cache.set(e.tag).contains(&i));
            }
            // What was just seen is there, and running.
            prop_assert!(valid.iter().any(|e| e.in_loop && (e.pc == branch.pc || word)));
        }
    }
}
