//! Runs added up are as good as one run over all of it, within bounds, wherever things lay.

mod common;

use common::{Random, event, profile, regions};
use proptest::prelude::*;
use sonde_place::{Kind as RegionKind, Place, Regions};
use sonde_profile::{MergeOptions, Profile, ProfileError};
use sonde_rap::worst_case::guaranteed_nodes;
use sonde_rap::{Config, Tree};
use sonde_summary::{Domain, Kind, Ranges, Summary, Trees, Unit};
use std::collections::BTreeMap;

const PLAIN: MergeOptions = MergeOptions { by_name: false };

fn one(ranges: &Ranges) -> &sonde_rap::Snapshot<u64> {
    match &ranges.tree {
        Trees::One(tree) => tree,
        Trees::Two(_) => panic!("of one dimension"),
    }
}

/// A place by name of its region, so that runs with other numbers can be compared.
type Named = (String, u64);

fn named(regions: &Regions, key: u64) -> Named {
    let region = regions.get(Place(key)).expect("a known region");
    (region.name.clone(), Place(key).offset())
}

/// A run over code places with what it truly counted.
fn run(seed: u64, events: u64, config: &Config) -> (Profile, BTreeMap<Named, u64>) {
    let mut random = Random(seed);
    let regions = regions(seed);
    let mut tree = Tree::<u64>::new(config.clone()).unwrap();
    let mut truth = BTreeMap::new();
    for _ in 0..events {
        let (key, weight) = (event(&mut random, &regions, Domain::Code), 1 + random.below(5));
        tree.add_weighted(key, weight);
        *truth.entry(named(&regions, key)).or_insert(0) += weight;
    }
    let code = Ranges { kind: Kind::Code, unit: Unit::Events, events, tree: Trees::One(tree.snapshot()) };
    let mut profile = profile(seed, 10, config);
    profile.summary = Summary { ranges: vec![code], regions, blocks: Vec::new(), ..profile.summary };
    (profile, truth)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn merged_runs_are_one_run_within_bounds(seed in 0u64..1 << 40, count in 2usize..6, eps in 0.005f64..0.1) {
        let config = Config::new().eps(eps);
        let runs: Vec<_> = (0..count as u64).map(|i| run(seed + i, 3000 + 1000 * i, &config)).collect();
        let (mut all, mut truth) = runs[0].clone();
        for (profile, counted) in &runs[1..] {
            all.merge(profile, &PLAIN).unwrap();
            counted.iter().for_each(|(key, weight)| *truth.entry(key.clone()).or_insert(0) += weight);
        }
        prop_assert_eq!(all.check(), Ok(()));
        let tree = one(all.summary.of(Kind::Code).unwrap());
        prop_assert_eq!(tree.events, truth.values().sum::<u64>());
        prop_assert_eq!(all.totals.runs, count as u64);
        let widened = all.totals.losses.get("merge_widened").copied().unwrap_or(0);
        let allowed = eps * tree.events as f64 + widened as f64 + 1.0;
        prop_assert!(tree.eps_effective * tree.events as f64 <= allowed, "{} {}", tree.eps_effective, eps);
        let bound = guaranteed_nodes(64, config.branching, eps, config.merge_ratio, config.first_merge);
        prop_assert!(tree.nodes.len() as u64 <= bound);
        for node in tree.nodes.iter().filter(|node| node.range.free_bits() <= 48) {
            let (lo, hi) = (named(&all.summary.regions, node.range.lo), named(&all.summary.regions, node.range.hi));
            let truly: u64 = truth.range(lo..=hi).map(|(_, weight)| weight).sum();
            let bounds = tree.bounds(node.range.lo, node.range.hi);
            prop_assert!(bounds.lower <= truly && truly <= bounds.upper, "{bounds:?} {truly}");
        }
        prop_assert_eq!(Profile::read_from(&all.to_bytes().unwrap()[..], &Default::default()).unwrap(), all);
    }
}

#[test]
fn all_kinds_of_trees_come_together() {
    let config = Config::new().eps(0.02);
    let (mut a, b) = (profile(1, 3000, &config), profile(2, 3000, &config));
    a.merge(&b, &PLAIN).unwrap();
    assert_eq!(a.check(), Ok(()));
    assert_eq!(a.summary.regions.all().len(), 5, "the same regions, met in another order");
    assert_eq!(a.summary.ranges.len(), Kind::ALL.len());
    assert_eq!(a.summary.counts.loads, 12);
    assert_eq!(a.totals.losses["skipped_code"], 40);
    assert_eq!(a.summary.blocks.len(), 30, "the same blocks");
    assert_eq!(a.summary.blocks.iter().map(|b| b.weight).sum::<u64>(), 2 * (5..35).sum::<u64>());
    assert_eq!(a.runs.len(), 2);
    let starts = a.starts.as_ref().unwrap();
    assert_eq!((starts.starts.len(), starts.all().count, starts.behind_calls.weight), (2, 184, 160));
    let calls = a.calls.as_ref().unwrap();
    assert_eq!((calls.calls, calls.functions.len(), calls.contexts.len()), (24, 2, 6), "the same functions");
    assert_eq!(a.streams.as_ref().unwrap().streams[0].frequency, 100);
    let values = a.values.as_ref().unwrap();
    assert_eq!((values.loads.len(), values.loads[0].values[0].lower), (2, 40));
    let loops = &a.loops.as_ref().unwrap().loops;
    assert_eq!((loops.len(), loops[0].whole.executions), (2, 8));
}

#[test]
fn lists_stay_bounded_and_what_goes_is_counted() {
    let mut a = profile(1, 10, &Config::new());
    let calls = a.calls.as_mut().unwrap();
    let (light, most) = (calls.contexts[3], 1 << 16);
    for i in 0..most as u64 + 500 {
        calls.contexts.push(sonde_calls::Context {
            function: light.function + 8 + i,
            weight: 1,
            instructions: 1,
            calls: 1,
            ..light
        });
        calls.functions.push(sonde_calls::Invoked { entry: (1 << 40) + i, count: 1, weight: 0 });
        calls.regions.push(sonde_calls::Region { branch: (1 << 40) + i, ..Default::default() });
    }
    let (calls_before, weight, contexts) =
        (calls.calls + most as u64 + 500, calls.weight + most as u64 + 500, calls.contexts.len());
    (calls.calls, calls.weight, calls.instructions) =
        (calls_before, weight, calls.instructions + most as u64 + 500);
    calls.regions.sort_by_key(|region| region.branch);
    calls.functions.sort_by_key(|function| function.entry);
    assert_eq!(calls.check(), Ok(()));
    let read = Profile::read_from(&a.to_bytes().unwrap()[..], &Default::default()).unwrap();
    let kept = read.calls.as_ref().unwrap();
    assert_eq!((kept.contexts.len(), kept.functions.len(), kept.regions.len()), (most, most, most));
    assert_eq!((kept.calls, kept.weight), (calls_before, weight), "sums stay");
    assert_eq!(kept.not_kept.contexts, (contexts - most) as u64);
    assert_eq!(read.totals.losses["code_regions_left_out"], 501);
}

#[test]
fn the_order_of_runs_does_not_matter_to_what_is_certain() {
    let config = Config::new().eps(0.01);
    let (a, b) = (run(5, 5000, &config).0, run(6, 5000, &config).0);
    let (mut ab, mut ba) = (a.clone(), b.clone());
    ab.merge(&b, &PLAIN).unwrap();
    ba.merge(&a, &PLAIN).unwrap();
    let whole = |profile: &Profile, name: &str| {
        let all = &profile.summary.regions;
        let lo = common::place(all, name, 0);
        one(profile.summary.of(Kind::Code).unwrap()).bounds(lo, lo + ((1 << 48) - 1))
    };
    for name in ["/opt/program", "/lib/libc.so.6"] {
        let (x, y) = (whole(&ab, name), whole(&ba, name));
        assert!(x.lower <= y.upper && y.lower <= x.upper, "{x:?} {y:?}");
    }
}

#[test]
fn other_builds_stay_apart_unless_pooled_by_name() {
    let (a, mut b) = (profile(0, 500, &Config::new()), profile(0, 500, &Config::new()));
    let mut all = b.summary.regions.all().to_vec();
    let program = all.iter().position(|r| r.name == "/opt/program").unwrap();
    all[program] = common::region(RegionKind::Module, "/home/me/program", &[9, 9]);
    b.summary.regions = Regions::from_parts(all, 0).unwrap();
    let mut apart = a.clone();
    apart.merge(&b, &PLAIN).unwrap();
    assert_eq!(apart.summary.regions.all().len(), a.summary.regions.all().len() + 1);
    assert!(!apart.totals.pooled_by_name);
    let mut pooled = a.clone();
    pooled.merge(&b, &MergeOptions { by_name: true }).unwrap();
    assert_eq!(pooled.summary.regions, a.summary.regions);
    assert!(pooled.totals.pooled_by_name);
    assert_eq!((apart.check(), pooled.check()), (Ok(()), Ok(())));
}

#[test]
fn what_cannot_be_added_up_is_refused_and_changes_nothing() {
    let (a, mut b) = (profile(0, 100, &Config::new()), profile(0, 100, &Config::new()));
    b.summary.unit = Unit::Picoseconds;
    b.summary.ranges.iter_mut().for_each(|tree| tree.unit = Unit::Picoseconds);
    let mut sum = a.clone();
    assert!(matches!(sum.merge(&b, &PLAIN), Err(ProfileError::Units { .. })));
    assert_eq!(sum, a);
    let mut other_caches = a.clone();
    other_caches.summary.cache.as_mut().unwrap().config = sonde_cache::Config::parse("32K,2M").unwrap();
    assert!(matches!(sum.merge(&other_caches, &PLAIN), Err(ProfileError::CacheModels { .. })));
    let mut full = a.clone();
    let Trees::One(tree) = &mut full.summary.ranges[0].tree else { panic!() };
    let extra = u64::MAX - tree.events;
    tree.nodes[0].own += extra;
    tree.events = u64::MAX;
    assert!(matches!(sum.merge(&full, &PLAIN), Err(ProfileError::Trees { kind: Kind::Code, .. })));
    assert_eq!(sum, a);
}

#[test]
fn a_tree_that_some_runs_lack_is_said_to_be_of_the_others() {
    let (mut a, mut b) = (profile(0, 100, &Config::new()), profile(1, 100, &Config::new()));
    b.summary.ranges.retain(|tree| tree.kind != Kind::Edges);
    a.summary.ranges.retain(|tree| tree.kind != Kind::Code);
    a.merge(&b, &PLAIN).unwrap();
    assert_eq!(a.totals.losses["runs_without_edges"], 1);
    assert_eq!(a.totals.losses["runs_without_code"], 1);
    assert_eq!(a.check(), Ok(()));
}

#[test]
fn of_very_many_runs_the_sums_are_kept() {
    let small = profile(0, 20, &Config::new());
    let mut all = small.clone();
    for _ in 0..9 {
        let half = all.clone();
        all.merge(&half, &PLAIN).unwrap();
    }
    assert_eq!(all.totals.runs, 512);
    assert_eq!(all.totals.bursts, 51_200);
    assert_eq!((all.runs.len(), all.runs_left_out()), (Profile::MOST_RUNS, 512 - 256));
    assert_eq!(all.check(), Ok(()));
    let bytes = all.to_bytes().unwrap();
    assert_eq!(Profile::read_from(&bytes[..], &Default::default()).unwrap(), all);
}
