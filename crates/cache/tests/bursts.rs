//! Bursts cut out of streams whose truth a simulation of all of it knows: what the model says of them must contain it.

use proptest::prelude::*;
use sonde_cache::{Bounds, Cache, Config, Found, Geometry, Statistics};

fn geometries() -> impl Strategy<Value = Config> {
    let level = |lines: std::ops::Range<u32>| (0..4u32, 1..6u32, lines);
    (level(3..6), level(5..8)).prop_map(|(a, b)| {
        let geometry = |(sets, ways, line): (u32, u32, u32)| Geometry {
            size: u64::from(ways) << (sets + line),
            ways,
            line: 1 << line,
        };
        Config::new(geometry(a), geometry(b)).unwrap()
    })
}

type Step = (u64, u64, bool);

fn refer(cache: &mut Cache, (address, size, write): Step) -> Bounds {
    if write { cache.store(address, size) } else { cache.load(address, size) }
}

/// Plays windows of a stream to a model that forgets before each: what it counted, and what is true of the same references.
fn cut_out(config: &Config, steps: &[Step], burst: usize, gap: usize) -> (Statistics, [u64; 2]) {
    let (mut all, mut cut) = (Cache::new(config), Cache::new(config));
    let mut truth = [0; 2];
    for (at, step) in steps.iter().enumerate() {
        let true_bounds = refer(&mut all, *step);
        assert_eq!(true_bounds.nearest, true_bounds.farthest, "a whole stream leaves no doubt");
        let within = at % (burst + gap);
        if within < gap {
            continue;
        }
        if within == gap {
            cut.forget();
        }
        let bounds = refer(&mut cut, *step);
        let found = true_bounds.nearest;
        assert!(
            bounds.nearest <= found && found <= bounds.farthest,
            "{found:?} is not in {bounds:?}, step {at}"
        );
        truth[0] += u64::from(found > Found::First);
        truth[1] += u64::from(found == Found::Memory);
    }
    (cut.statistics(), truth)
}

fn contains(s: &Statistics, truth: [u64; 2]) -> bool {
    let first = s.first_load_misses + s.first_store_misses;
    let second = s.second_load_misses + s.second_store_misses;
    let first = first..=first + s.first_load_unknown + s.first_store_unknown;
    let second = second..=second + s.second_load_unknown + s.second_store_unknown;
    first.contains(&truth[0]) && second.contains(&truth[1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn the_truth_is_within_bounds(
        config in geometries(),
        steps in prop::collection::vec((0..4096u64, 0..70u64, any::<bool>()), 1..800),
        burst in 1..200usize,
        gap in 0..100usize,
    ) {
        let (counted, truth) = cut_out(&config, &steps, burst, gap);
        prop_assert!(contains(&counted, truth), "{counted:?} {truth:?}");
    }
}

/// Loads of whole lines, one after the other, again and again: a list that was laid out in order.
fn rounds(bytes: u64, count: usize) -> Vec<Step> {
    (0..count as u64).map(|i| (i * 64 % bytes, 8, false)).collect()
}

/// What fits the nearest cache misses nothing, and nothing is said to miss.
#[test]
fn a_small_list_is_never_called_a_miss() {
    let (counted, truth) = cut_out(&Config::default(), &rounds(31 << 10, 400_000), 5_000, 20_000);
    assert_eq!(truth, [0, 0]);
    assert_eq!((counted.first_load_misses, counted.second_load_misses), (0, 0));
    // In a burst of ten rounds, nine are known.
    let unknown = counted.first_load_unknown as f64 / counted.loads as f64;
    assert!((0.05..0.15).contains(&unknown), "{unknown}");
}

/// What fits neither misses both, and long bursts tell.
#[test]
fn a_large_list_misses_as_soon_as_sets_are_full() {
    let (counted, truth) = cut_out(&Config::default(), &rounds(64 << 20, 1_200_000), 100_000, 100_000);
    assert_eq!(truth, [counted.loads; 2]);
    assert!(contains(&counted, truth));
    let known = |misses: u64| misses as f64 / counted.loads as f64;
    assert!(known(counted.first_load_misses) > 0.98, "{counted:?}");
    assert!(known(counted.second_load_misses) > 0.8, "{counted:?}");
}

/// Short bursts cannot tell a list that misses from one that does not: the bounds say so.
#[test]
fn short_bursts_leave_it_open() {
    for bytes in [31 << 10, 64 << 20] {
        let (counted, truth) = cut_out(&Config::default(), &rounds(bytes, 400_000), 300, 5_000);
        assert!(contains(&counted, truth));
        assert_eq!((counted.first_load_misses, counted.first_load_unknown), (0, counted.loads));
    }
}
