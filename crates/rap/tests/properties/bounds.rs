//! The error bound and the node bound, at every `n`, on every kind of stream.

use crate::streams::{SHAPES, Shape, key, stream, weights};
use crate::subject::{Subject, assert_within_bounds, count, for_all, most_nodes_allowed};
use proptest::prelude::*;
use sonde_rap::{Branching, Config, Key};

/// Feeds the events one by one and checks after each that `when` picks; the most nodes ever held are asked at the end.
fn check_at<K: Key, S: Subject<K>>(config: &Config, events: &[(K, u64)], when: impl Fn(usize) -> bool) {
    let mut tree = S::start(config.clone());
    for (index, &(key, weight)) in events.iter().enumerate() {
        tree.push(key, weight);
        if when(index + 1) {
            let summary = tree.summary();
            assert_eq!(&summary.config, config);
            assert_eq!(summary.eps_effective, config.eps, "without a memory limit nothing is given up");
            assert_within_bounds(S::NAME, &summary, &count(&events[..=index]));
        }
    }
    let most = most_nodes_allowed::<K>(config);
    assert!(tree.most_nodes() as u64 <= most, "{}: {} nodes, allowed {most}", S::NAME, tree.most_nodes());
}

fn events<K: Key>(shape: Shape, len: usize, seed: u64, weighted: bool) -> Vec<(K, u64)> {
    let weights = if weighted { weights(len, seed) } else { vec![1; len] };
    stream(shape, len, seed).into_iter().map(key).zip(weights).collect()
}

/// 1, 2, 3, 5, 8, ...: dense where the threshold is small, and never in step with the merges.
fn fibonacci(number: usize) -> bool {
    let (mut a, mut b) = (1, 2);
    while a < number {
        (a, b) = (b, a + b);
    }
    a == number
}

fn every_prefix<K: Key, S: Subject<K>>(config: &Config, shape: Shape, weighted: bool) {
    check_at::<K, S>(config, &events(shape, 120, 7, weighted), |_| true);
}

#[test]
fn bounds_hold_at_every_n_from_the_first_event() {
    for shape in SHAPES {
        for (eps, weighted) in [(0.001, false), (0.01, true), (0.1, false), (0.5, true)] {
            let config = Config::new().eps(eps).first_merge(16);
            for_all!(every_prefix(&config, shape, weighted));
        }
    }
}

fn long_stream<K: Key, S: Subject<K>>(config: &Config, shape: Shape) {
    let events = events::<K>(shape, 20_000, 11, false);
    check_at::<K, S>(config, &events, |n| n > 1000 && fibonacci(n) || n == events.len());
}

#[test]
fn bounds_hold_over_many_merges() {
    for shape in SHAPES {
        long_stream::<u64, sonde_rap::Tree<u64>>(&Config::new(), shape);
        long_stream::<u64, sonde_rap::textbook::TextbookTree<u64>>(&Config::new(), shape);
        let coarse = Config::new().eps(0.1).branching(Branching::Two);
        long_stream::<[u32; 2], sonde_rap::Tree<[u32; 2]>>(&coarse, shape);
        long_stream::<[u32; 2], sonde_rap::textbook::TextbookTree<[u32; 2]>>(&coarse, shape);
    }
}

fn random_case<K: Key, S: Subject<K>>(config: &Config, shape: Shape, len: usize, seed: u64, weighted: bool) {
    check_at::<K, S>(config, &events(shape, len, seed, weighted), |n| fibonacci(n) || n == len);
}

fn any_config() -> impl Strategy<Value = Config> {
    let eps = prop_oneof![Just(0.001), Just(0.5), 0.001..0.5];
    let ratio = prop_oneof![Just(2.0), 1.05..8.0];
    let first_merge = prop_oneof![Just(1u64 << 10), 1u64..2000];
    (0usize..4, eps, ratio, first_merge).prop_map(|(branching, eps, ratio, first_merge)| {
        Config::new()
            .branching(Branching::ALL[branching])
            .eps(eps)
            .merge_ratio(ratio)
            .first_merge(first_merge)
    })
}

proptest! {
    #![proptest_config(crate::streams::cases(16))]

    #[test]
    fn bounds_hold_for_any_parameters(
        config in any_config(),
        shape in 0..SHAPES.len(),
        len in 1usize..2000,
        seed: u64,
        weighted: bool,
    ) {
        for_all!(random_case(&config, SHAPES[shape], len, seed, weighted));
    }

    #[test]
    fn bounds_hold_for_any_keys_and_weights(
        config in any_config(),
        events in prop::collection::vec((any::<u64>(), prop_oneof![Just(1u64), 1u64..1000, any::<u32>().prop_map(u64::from)]), 1..200),
    ) {
        check_at::<u64, sonde_rap::Tree<u64>>(&config, &events, |_| true);
        check_at::<u64, sonde_rap::textbook::TextbookTree<u64>>(&config, &events, |_| true);
    }
}

/// Figure 9: the node count grows between batches and drops at them, and the samples say so.
fn saw_tooth<S: Subject<u64>>() {
    let keys: Vec<u64> = stream(Shape::Phases, 100_000, 3);
    let mut tree = S::start(Config::new().eps(0.02));
    tree.push_all(&keys);
    tree.summary();
    let stats = tree.statistics();
    // 1024, 2048, ... 65536: seven batches, give or take what a buffer held back.
    assert!((6..=8).contains(&stats.merge_batches), "{}: {stats:?}", S::NAME);
    assert!(stats.samples.windows(2).all(|pair| pair[0].events <= pair[1].events));
    let drops = stats.samples.windows(2).filter(|pair| pair[1].nodes < pair[0].nodes).count();
    let rises = stats.samples.windows(2).filter(|pair| pair[1].nodes > pair[0].nodes).count();
    assert!(drops >= 3 && rises >= 3, "{}: {stats:?}", S::NAME);
    let highest = stats.samples.iter().map(|sample| sample.nodes).max().unwrap_or(0);
    assert!(highest <= tree.most_nodes() as u64);
}

#[test]
fn figure_9_node_counts_over_time_are_a_saw_tooth() {
    saw_tooth::<sonde_rap::textbook::TextbookTree<u64>>();
    saw_tooth::<sonde_rap::Tree<u64>>();
}
