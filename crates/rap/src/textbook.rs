//! The paper's tree, written down plainly (sections 2 and 3.1): the reference that the fast tree is tested against.
//!
//! Nothing here is done for speed. What the paper leaves open, or what its text read literally would break, is decided so
//! that both bounds hold at every event:
//!
//! * **Update** (2.1): the count goes to the smallest range that covers the key.
//! * **Split** (2.2.1): a range that cannot take the count without exceeding `SplitThreshold = eps * n / log_b(R)` keeps
//!   what it has, and the count goes to a new range below it. The paper counts first and splits afterwards; then a
//!   threshold below 1, at small `n`, leaves events too high in the tree for the promised error. For the same reason a
//!   weight that no range but a single key may hold goes straight to that key, as a whole.
//! * Only the sub-range that an event falls into is made, not all `b` at once: a counter at zero says nothing, and without
//!   those, and without chains of empty ranges, the node bound also holds for scattered keys.
//! * **Adoption** (3.3.1): ranges that already exist inside a new one become its children.
//! * **Merge** (2.2.2, 3.1): in batches, at `first_merge` events and then whenever `n` has grown by `q`. Bottom-up; a range
//!   gives its count to its parent when both together stay within the threshold, lightest first. What lies below a range
//!   that gave its count away may then rise itself ("interior merge", figure 1).

use crate::code::Code;
use crate::config::{Config, ConfigError};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::{Node, Snapshot};
use crate::tree::{MergeError, Sample, Stats};

mod counter;
use counter::{Counter, Limits};

/// When a memory limit binds, the threshold is raised by this factor and the tree merged, until it fits.
const COARSER: f64 = 1.25;

/// The plain range-adaptive tree. Same configuration, same snapshot as [`crate::Tree`]; the buffer setting is ignored,
/// since every event goes into the tree at once.
///
/// ```
/// use sonde_rap::{Config, textbook::TextbookTree};
/// let mut tree = TextbookTree::<u64>::new(Config::new())?;
/// for key in [7, 7, 7, 1 << 40] {
///     tree.add(key);
/// }
/// assert_eq!(tree.snapshot().bounds(7, 7).lower, 3);
/// # Ok::<(), sonde_rap::ConfigError>(())
/// ```
pub struct TextbookTree<K: Key> {
    config: Config,
    /// The threshold is never below this: 0 until memory or a merged tree forces more. It is a count and not a share, so
    /// that what memory costs while there are few events is soon a small share of them.
    floor: u64,
    events: u64,
    next_merge: f64,
    root: Counter<K::Code>,
    nodes: usize,
    nodes_max: usize,
    stats: Stats,
}

impl<K: Key> TextbookTree<K> {
    /// An empty tree: one range that covers every key.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(TextbookTree {
            floor: 0,
            next_merge: config.first_merge as f64,
            events: 0,
            root: Counter::new(K::Code::ZERO, K::BITS),
            nodes: 0,
            nodes_max: 0,
            stats: Stats::default(),
            config,
        })
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
        self.count(key.encode(), 0, weight);
        if self.events as f64 >= self.next_merge {
            self.merge_batch();
        }
        self.keep_within_memory();
    }

    fn count(&mut self, start: K::Code, free: u32, weight: u64) {
        let weight = weight.min(u64::MAX - self.events);
        if weight == 0 {
            return;
        }
        self.events += weight;
        let limits = self.limits();
        let effect = self.root.add(start, free, weight, limits);
        self.stats.splits += u64::from(effect.split);
        self.nodes += usize::from(effect.new_node);
        self.nodes_max = self.nodes_max.max(self.nodes);
    }

    fn limits(&self) -> Limits {
        let threshold = self.config.split_threshold(self.events, K::BITS).max(self.floor);
        Limits { threshold, level_bits: self.config.branching.bits() }
    }

    fn merge_batch(&mut self) {
        self.sample();
        self.stats.merge_batches += 1;
        self.stats.merges += self.root.settle(self.limits());
        self.nodes = self.root.nodes();
        self.sample();
        // From here, not from the last batch: a single weight can pass many intervals at once.
        self.next_merge = self.events as f64 * self.config.merge_ratio;
    }

    fn sample(&mut self) {
        self.stats.samples.push(Sample { events: self.events, nodes: self.nodes as u64 });
    }

    fn keep_within_memory(&mut self) {
        let Some(limit) = self.config.max_memory else { return };
        while self.memory_bytes() > limit && self.nodes > 1 {
            let threshold = self.limits().threshold;
            self.floor = ((threshold as f64 * COARSER) as u64).max(threshold.saturating_add(1));
            self.root.settle(self.limits());
            self.nodes = self.root.nodes();
        }
    }

    /// All events so far, weights added up.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The error bound that holds now, as a share of all events: `eps`, or what ranges filled up to the raised threshold on
    /// all levels can hold. Never more than 1, since no range misses more than all.
    pub fn eps_effective(&self) -> f64 {
        let height = f64::from(self.config.branching.levels(K::BITS));
        let forced = self.floor as f64 * height / self.events.max(1) as f64;
        forced.clamp(self.config.eps, 1.0)
    }

    /// Ranges that hold a count now.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The most ranges that have held a count so far.
    pub fn nodes_max(&self) -> usize {
        self.nodes_max
    }

    /// Bytes held by the ranges (what the allocator adds is not counted).
    pub fn memory_bytes(&self) -> usize {
        self.nodes * size_of::<Counter<K::Code>>()
    }

    /// Node counts over time, splits and merges.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The summary so far.
    pub fn snapshot(&self) -> Snapshot<K> {
        let mut nodes = Vec::with_capacity(self.nodes);
        self.root.visit(&mut |start, free, own| nodes.push(Node { range: Range::aligned(start, free), own }));
        Snapshot {
            config: self.config.clone(),
            events: self.events,
            eps_effective: self.eps_effective(),
            nodes_max: self.nodes_max as u64,
            nodes,
        }
    }

    /// Adds another tree's summary. With the same `eps` and `b` the error stays `eps * (n1 + n2)`: a range holds at most
    /// `eps * n1 / h + eps * n2 / h`. Otherwise [`TextbookTree::eps_effective`] grows to what holds.
    pub fn merge(&mut self, other: &Snapshot<K>) -> Result<(), MergeError> {
        other.check()?;
        if self.events.checked_add(other.events).is_none() {
            return Err(MergeError::Events);
        }
        let level_bits = self.config.branching.bits();
        // All events are there before the first count is placed, so that each is judged by the final threshold.
        let mine = self.events;
        for node in &other.nodes {
            let free = node.range.free_bits().next_multiple_of(level_bits).min(K::BITS);
            self.events = mine + other.events - node.own;
            self.count(node.range.start(), free, node.own);
        }
        self.admit_overfull_ranges();
        self.merge_batch();
        self.keep_within_memory();
        Ok(())
    }

    /// A tree with other parameters may have put more into a range than the threshold allows: then that is the threshold.
    fn admit_overfull_ranges(&mut self) {
        let mut fullest = 0;
        self.root.visit(&mut |_, free, own| fullest = if free > 0 { own.max(fullest) } else { fullest });
        if fullest > self.limits().threshold {
            self.floor = fullest;
        }
    }
}
