//! What is under test, behind one interface, and the judge: every aligned range around every key against exact counts.

use sonde_rap::code::Code;
use sonde_rap::exact::{ExactCounts, SortedCounts};
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Config, Key, Snapshot, Stats, Tree, worst_case};
use std::cmp::Reverse;

/// A tree under test.
pub trait Subject<K: Key> {
    const NAME: &'static str;
    fn start(config: Config) -> Self;
    fn push(&mut self, key: K, weight: u64);
    fn push_all(&mut self, keys: &[K]);
    fn summary(&mut self) -> Snapshot<K>;
    fn take_in(&mut self, other: &Snapshot<K>);
    fn node_count(&self) -> usize;
    fn most_nodes(&self) -> usize;
    fn bytes(&self) -> usize;
    fn statistics(&self) -> Stats;
}

macro_rules! subject {
    ($tree:ident, $name:literal) => {
        impl<K: Key> Subject<K> for $tree<K> {
            const NAME: &'static str = $name;
            fn start(config: Config) -> Self {
                $tree::new(config).expect("the configuration is valid")
            }
            fn push(&mut self, key: K, weight: u64) {
                self.add_weighted(key, weight);
            }
            fn push_all(&mut self, keys: &[K]) {
                self.add_slice(keys);
            }
            fn summary(&mut self) -> Snapshot<K> {
                self.snapshot()
            }
            fn take_in(&mut self, other: &Snapshot<K>) {
                self.merge(other).expect("the snapshot is well formed");
            }
            fn node_count(&self) -> usize {
                self.nodes()
            }
            fn most_nodes(&self) -> usize {
                self.nodes_max()
            }
            fn bytes(&self) -> usize {
                self.memory_bytes()
            }
            fn statistics(&self) -> Stats {
                self.stats().clone()
            }
        }
    };
}
subject!(Tree, "fast");
subject!(TextbookTree, "textbook");

/// Runs a generic test function for both trees and all key types: `for_all!(function(arguments))`.
macro_rules! for_all {
    ($function:ident($($argument:expr),*)) => {
        crate::subject::for_all!(@key $function, ($($argument),*), u32, u64, u128, [u32; 2], [u64; 2], [u32; 3], [u64; 3]);
    };
    (@key $function:ident, $arguments:tt, $($key:ty),*) => {
        $(crate::subject::for_all!(@call $function, $key, $arguments);)*
    };
    (@call $function:ident, $key:ty, ($($argument:expr),*)) => {
        $function::<$key, sonde_rap::Tree<$key>>($($argument),*);
        $function::<$key, sonde_rap::textbook::TextbookTree<$key>>($($argument),*);
    };
}
pub(crate) use for_all;

/// Exact counts of weighted keys.
pub fn count<K: Key>(events: &[(K, u64)]) -> SortedCounts<K> {
    let mut exact = ExactCounts::new();
    events.iter().for_each(|&(key, weight)| exact.add_weighted(key, weight));
    exact.sorted()
}

/// The largest miss of any range, as a share of all events; panics when an estimate is above the truth. Looks at *every*
/// aligned range that holds an event, of all widths, not only of the tree's levels.
pub fn worst_miss<K: Key>(snapshot: &Snapshot<K>, exact: &SortedCounts<K>) -> f64 {
    assert_eq!(snapshot.events, exact.events(), "all events are there");
    assert_eq!(snapshot.check(), Ok(()), "the snapshot is well formed");
    let nodes: Vec<(K::Code, Reverse<u32>, u64)> = snapshot
        .nodes
        .iter()
        .map(|node| (node.range.start(), Reverse(node.range.free_bits()), node.own))
        .collect();
    let keys: Vec<(K::Code, u64)> = exact.keys().iter().map(|&(key, count)| (key.encode(), count)).collect();
    let worst = (0..=K::BITS).map(|free| worst_miss_of_width(&nodes, &keys, free)).max().unwrap_or(0);
    worst as f64 / exact.events().max(1) as f64
}

/// Walks the ranges of `2^free` keys and the nodes side by side.
fn worst_miss_of_width<C: Code>(nodes: &[(C, Reverse<u32>, u64)], keys: &[(C, u64)], free: u32) -> u64 {
    let mut worst = 0;
    let mut next = 0;
    for group in keys.chunk_by(|a, b| a.0.xor(b.0).shr(free) == C::ZERO) {
        let start = group[0].0.shr(free).shl(free);
        let end = start.or(C::ones(free));
        let actual: u64 = group.iter().map(|key| key.1).sum();
        // Larger ranges with the same start come before, and do not count.
        while next < nodes.len() && (nodes[next].0, nodes[next].1) < (start, Reverse(free)) {
            next += 1;
        }
        let mut lower = 0;
        while next < nodes.len() && nodes[next].0 <= end {
            lower += nodes[next].2;
            next += 1;
        }
        assert!(lower <= actual, "a lower bound is one: {lower} > {actual} at {start:?}/{free}");
        worst = worst.max(actual - lower);
    }
    worst
}

/// Both bounds at one moment.
pub fn assert_within_bounds<K: Key>(name: &str, snapshot: &Snapshot<K>, exact: &SortedCounts<K>) {
    let miss = worst_miss(snapshot, exact);
    let allowed = snapshot.eps_effective * (1.0 + 1e-9);
    assert!(miss <= allowed, "{name}: a range misses {miss}, allowed {allowed}, n = {}", exact.events());
    let most = most_nodes_allowed::<K>(&snapshot.config);
    assert!(snapshot.nodes.len() as u64 <= most, "{name}: {} nodes, allowed {most}", snapshot.nodes.len());
    assert!(snapshot.nodes_max >= snapshot.nodes.len() as u64);
}

/// The node bound of the crate for a configuration.
pub fn most_nodes_allowed<K: Key>(config: &Config) -> u64 {
    worst_case::guaranteed_nodes(
        K::BITS,
        config.branching,
        config.eps,
        config.merge_ratio,
        config.first_merge,
    )
}
