//! What holds for any stream of values, against an exact count without bounds.

use proptest::prelude::*;
use sonde_values::filter::SourceFilter;
use sonde_values::slots::estimate::{Watched, samples_of};
use sonde_values::slots::{SlotArray, SlotConfig, SlotProfiler};
use sonde_values::{ExactTable, Lfsr, LoadValues, TableConfig, Totals, ValueProfile};
use std::collections::HashMap;

type Truth = HashMap<u64, HashMap<u64, u64>>;

fn truth(samples: &[(u64, u64)]) -> Truth {
    let mut all = Truth::new();
    for (pc, value) in samples {
        *all.entry(*pc).or_default().entry(*value).or_insert(0) += 1;
    }
    all
}

/// Few values in short runs, so that counters are hit, taken over and pushed out.
fn samples(pcs: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let run = (0..pcs, prop_oneof![0..4u64, 0..40u64, any::<u64>()], 1..6usize);
    prop::collection::vec(run, 0..400).prop_map(|runs| {
        runs.into_iter().flat_map(|(pc, value, n)| std::iter::repeat_n((pc, value), n)).collect()
    })
}

fn counted(samples: &[(u64, u64)], counters: usize) -> Vec<LoadValues> {
    let mut table = ExactTable::new(TableConfig { counters, loads: 1024 }).unwrap();
    samples.iter().for_each(|(pc, value)| table.add_at(*pc, *value));
    table.into_loads()
}

/// A profile of loads all of which were looked at.
fn profile(mut loads: Vec<LoadValues>) -> ValueProfile {
    loads.iter_mut().for_each(|l| l.executions = l.seen + l.missed);
    let all = loads.iter().map(|l| l.executions).sum();
    ValueProfile {
        loads,
        totals: Totals { loads: all, profiled: all, ..Totals::default() },
        ..ValueProfile::default()
    }
}

fn assert_bounds(profile: &ValueProfile, truth: &Truth) {
    profile.check().unwrap();
    for load in &profile.loads {
        let values = &truth[&load.pc];
        let seen: u64 = values.values().sum();
        assert!(load.seen <= seen && seen <= load.seen + load.missed);
        for (value, count) in values {
            let bound = load.value(*value);
            assert!(bound.lower <= *count && *count <= bound.upper, "{value:#x} {count} {bound:?}");
        }
    }
}

proptest! {
    // Making the input takes the time.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_of_the_exact_table_hold(samples in samples(5), counters in 2..20usize) {
        let truth = truth(&samples);
        let profile = profile(counted(&samples, counters));
        assert_bounds(&profile, &truth);
        prop_assert_eq!(profile.loads.len(), truth.len());
        for load in &profile.loads {
            let different = truth[&load.pc].len();
            let error = load.values.iter().map(|v| v.upper - v.lower).max().unwrap_or(0);
            prop_assert!(error <= load.seen / counters as u64);
            prop_assert!(load.unlisted <= load.seen / counters as u64);
            prop_assert!(different > counters || (error == 0 && load.values.len() == different));
        }
    }

    #[test]
    fn merging_is_like_counting_both(a in samples(4), b in samples(4), counters in 2..12usize) {
        let both = truth(&[a.clone(), b.clone()].concat());
        let mut merged = profile(counted(&a, counters));
        merged.merge(&profile(counted(&b, counters)));
        assert_bounds(&merged, &both);
        let mut other_way = profile(counted(&b, counters));
        other_way.merge(&profile(counted(&a, counters)));
        prop_assert_eq!(&merged, &other_way);
    }

    #[test]
    fn loads_that_come_to_the_same_place_are_united(samples in samples(8), counters in 2..12usize) {
        let mut relocated = profile(counted(&samples, counters));
        relocated.relocate(&mut |pc| (1 << 48) | (pc / 2));
        let placed: Vec<(u64, u64)> = samples.iter().map(|(pc, v)| ((1 << 48) | (pc / 2), *v)).collect();
        assert_bounds(&relocated, &truth(&placed));
    }

    #[test]
    fn slots_never_claim_what_was_not_there(samples in samples(40), slots in 1..9usize, seed: u32) {
        let truth = truth(&samples);
        let mut array = SlotArray::new(slots, 1 << 20).unwrap();
        let mut random = Lfsr::new(seed);
        for (pc, value) in &samples {
            array.sample(*pc, *value, &mut random);
        }
        let mut on = Vec::new();
        for slot in array.slots().iter().filter(|s| s.total > 0) {
            let values = &truth[&slot.pc];
            prop_assert!(u64::from(slot.hit) <= values[&slot.value]);
            prop_assert!(u64::from(slot.total) <= values.values().sum::<u64>());
            prop_assert!(u32::from(slot.hit) + u32::from(slot.miss) <= u32::from(slot.total));
            on.extend(slot.on.then_some(slot.pc));
        }
        let many = on.len();
        on.sort_unstable();
        on.dedup();
        prop_assert_eq!(on.len(), many, "a load has one slot that is on");
        prop_assert_eq!(array.samples(), samples.len() as u64);
    }

    #[test]
    fn the_profile_of_slots_is_consistent(samples in samples(60), slots in 1..9usize, seed: u32) {
        let config = SlotConfig {
            slots, failed_limit: 16, patience: 50, resample: 700, glance: 200, least: 1, mask_log2: 10,
            ..SlotConfig::default()
        };
        let mut profiler = SlotProfiler::new(config, Lfsr::new(seed)).unwrap();
        let mut offered = 0;
        for (pc, value) in &samples {
            let version = profiler.filters().version();
            if profiler.filters().wants(*pc) {
                profiler.sample(*pc, *value);
                offered += 1;
            }
            profiler.elapsed(1);
            prop_assert!(profiler.filters().version() >= version);
        }
        profiler.flush();
        prop_assert_eq!(profiler.stats().samples, offered);
        let truth = truth(&samples);
        for (pc, learned) in profiler.table().loads() {
            let seen: u64 = truth[&pc].values().sum();
            prop_assert!(learned.total <= seen);
            prop_assert!(learned.watched.iter().all(|w| w.hits <= truth[&pc][&w.value]));
        }
        let known: u64 = profiler.table().loads().map(|(_, l)| l.total).sum();
        prop_assert!(known + profiler.stats().discarded <= offered);
    }

    #[test]
    fn estimates_share_out_no_more_than_there_is(
        counts in prop::collection::vec((0..300u64, 0..300u64), 1..12),
        unknown in 0..1000u64,
    ) {
        let watched: Vec<Watched> = counts
            .iter()
            .enumerate()
            .map(|(i, (hits, misses))| Watched { value: i as u64, hits: *hits, misses: *misses, lasting: 0 })
            .collect();
        let all: u64 = counts.iter().map(|(h, m)| h + m).sum::<u64>() + unknown;
        let estimates = samples_of(&watched, all);
        prop_assert!(estimates.iter().sum::<f64>() <= all as f64 + 1e-6);
        prop_assert!(estimates.iter().zip(&watched).all(|(e, w)| *e >= w.hits as f64 - 1e-9));
    }
}

proptest! {
    // Each case fills a whole table.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn bounds_hold_when_loads_are_forgotten(samples in samples(3000)) {
        let mut many: Vec<(u64, u64)> = (0..1500).map(|pc| (pc, 1)).collect();
        many.extend(&samples);
        many.extend((500..2500).map(|pc| (pc, 2)));
        many.extend(&samples);
        assert_bounds(&profile(counted(&many, 4)), &truth(&many));
    }
}
