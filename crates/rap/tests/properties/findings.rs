//! Three ways in which a tree built from the paper's text breaks its own bounds; each is a stream that must not.

use crate::streams::{Rng, key};
use crate::subject::{Subject, assert_within_bounds, count, for_all, worst_miss};
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Config, Key, Tree, worst_case};

/// Below `log_b(R) / eps` events the threshold is less than one event: rounded to an integer it is 0, and a tree that counts
/// first and splits afterwards leaves its first events at the root.
fn finding_1<K: Key, S: Subject<K>>() {
    let config = Config::new();
    let small = (f64::from(config.branching.levels(K::BITS)) / config.eps) as u64;
    assert_eq!(config.split_threshold(small - 1, K::BITS), 0);
    let mut tree = S::start(config);
    let mut events: Vec<(K, u64)> = Vec::new();
    for n in 1..small {
        events.push((key(n % 7 * 0x1234_5678_9ABC), 1));
        tree.push(events[events.len() - 1].0, 1);
        if n < 50 || n % 97 == 0 {
            let summary = tree.summary();
            assert_eq!(worst_miss(&summary, &count(&events)), 0.0, "{}: exact at n = {n}", S::NAME);
        }
    }
}

#[test]
fn finding_1_an_integer_threshold_of_zero_at_small_n_keeps_the_bound() {
    for_all!(finding_1());
}

/// A weighted insert that tops up every range on its way down spreads one key's weight over all of its ancestors.
fn finding_2<K: Key, S: Subject<K>>() {
    let mut tree = S::start(Config::new());
    let mut events: Vec<(K, u64)> =
        (0..5000u64).map(|i| (key(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)), 1)).collect();
    events.push((key(42), 1_000_000));
    events.iter().for_each(|&(key, weight)| tree.push(key, weight));
    let summary = tree.summary();
    assert_within_bounds(S::NAME, &summary, &count(&events));
    let bounds = summary.bounds(key(42), key(42));
    assert!(bounds.lower >= 1_000_000, "{}: the whole weight is at its key: {bounds:?}", S::NAME);
}

#[test]
fn finding_2_a_weighted_insert_sends_its_whole_weight_down() {
    for_all!(finding_2());
}

/// 1,400 equally hot keys far apart: a tree that keeps the chain of ranges above each needs 85,081 nodes.
fn finding_3<S: Subject<u64>>() {
    let mut rng = Rng(1);
    let keys: Vec<u64> = (0..1400).map(|_| rng.next()).collect();
    let mut tree = S::start(Config::new());
    let allowed = worst_case::nodes_continuous(64, Config::new().branching, 0.01);
    assert_eq!(allowed, 12_800.0);
    for round in 0..500 {
        tree.push_all(&keys);
        let nodes = tree.node_count();
        assert!(nodes as f64 <= allowed, "{}: {nodes} nodes in round {round}", S::NAME);
    }
    let events: Vec<(u64, u64)> = keys.iter().map(|&key| (key, 500)).collect();
    let summary = tree.summary();
    assert_within_bounds(S::NAME, &summary, &count(&events));
    println!("{}: {} nodes now, {} at most", S::NAME, summary.nodes.len(), tree.most_nodes());
    assert!(tree.most_nodes() as f64 <= allowed);
}

#[test]
fn finding_3_scattered_hot_keys_stay_within_the_node_bound() {
    finding_3::<Tree<u64>>();
    finding_3::<TextbookTree<u64>>();
}
