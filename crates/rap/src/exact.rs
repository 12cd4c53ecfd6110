//! Exact counts of the same stream: what estimates are compared with, in tests and for `--exact`.
//!
//! Memory grows with the number of different keys; that is the cost that range-adaptive trees avoid.

use crate::config::{Branching, Config};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::{Node, Snapshot};
use std::collections::HashMap;

/// Counts every key for itself.
///
/// ```
/// use sonde_rap::exact::ExactCounts;
/// let mut exact = ExactCounts::<u64>::new();
/// exact.add_slice(&[1, 1, 900]);
/// assert_eq!(exact.sorted().count(0, 255), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ExactCounts<K: Key> {
    counts: HashMap<K, u64>,
    events: u64,
}

impl<K: Key> ExactCounts<K> {
    /// Nothing counted yet.
    pub fn new() -> Self {
        ExactCounts { counts: HashMap::new(), events: 0 }
    }

    /// Counts one event.
    pub fn add(&mut self, key: K) {
        self.add_weighted(key, 1);
    }

    /// Counts one event for each key.
    pub fn add_slice(&mut self, keys: &[K]) {
        keys.iter().for_each(|&key| self.add(key));
    }

    /// Counts `weight` events with the same key. All counts together stop at `u64::MAX`.
    pub fn add_weighted(&mut self, key: K, weight: u64) {
        let weight = weight.min(u64::MAX - self.events);
        if weight > 0 {
            self.events += weight;
            *self.counts.entry(key).or_default() += weight;
        }
    }

    /// All events, weights added up.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Different keys seen.
    pub fn keys(&self) -> usize {
        self.counts.len()
    }

    /// The counts in key order, for queries.
    pub fn sorted(&self) -> SortedCounts<K> {
        let mut keys: Vec<(K, u64)> = self.counts.iter().map(|(&key, &count)| (key, count)).collect();
        keys.sort_unstable_by_key(|&(key, _)| key.encode());
        SortedCounts { keys, events: self.events }
    }
}

/// Exact counts, in the order of the keys' codes.
#[derive(Clone, Debug)]
pub struct SortedCounts<K: Key> {
    keys: Vec<(K, u64)>,
    events: u64,
}

impl<K: Key> SortedCounts<K> {
    /// Events in the box from `lo` to `hi`, both included.
    pub fn count(&self, lo: K, hi: K) -> u64 {
        // A box lies between its corners in code order, so only that stretch has to be looked at.
        let (first, last) = (lo.encode(), hi.encode());
        let from = self.keys.partition_point(|(key, _)| key.encode() < first);
        let inside = Range { lo, hi };
        let stretch = self.keys[from..].iter().take_while(|(key, _)| key.encode() <= last);
        stretch.filter(|(key, _)| inside.contains_key(*key)).map(|(_, count)| count).sum()
    }

    /// The keys with their counts, in code order.
    pub fn keys(&self) -> &[(K, u64)] {
        &self.keys
    }

    /// All events, weights added up.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The exact counts as a snapshot, every key a node of its own: asked for its hot ranges, it gives the true ones.
    pub fn snapshot(&self, branching: Branching) -> Snapshot<K> {
        let node = |&(key, own): &(K, u64)| Node { range: Range { lo: key, hi: key }, own };
        Snapshot {
            config: Config::new().branching(branching),
            events: self.events,
            eps_effective: 0.0,
            nodes_max: self.keys.len() as u64,
            nodes: self.keys.iter().map(node).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_count_what_lies_inside() {
        let mut exact = ExactCounts::<[u32; 2]>::new();
        for x in 0..10 {
            for y in 0..10 {
                exact.add_weighted([x, y], 2);
            }
        }
        assert_eq!((exact.events(), exact.keys()), (200, 100));
        assert_eq!(exact.sorted().count([3, 0], [4, 9]), 40);
        assert_eq!(exact.sorted().count([3, 7], [3, 7]), 2);
        assert_eq!(exact.sorted().count([10, 0], [u32::MAX, u32::MAX]), 0);
    }

    #[test]
    fn counts_stop_at_the_largest_number() {
        let mut exact = ExactCounts::<u64>::new();
        exact.add_weighted(1, u64::MAX);
        exact.add_weighted(2, 5);
        assert_eq!((exact.events(), exact.keys()), (u64::MAX, 1));
    }
}
