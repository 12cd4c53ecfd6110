//! The range-adaptive tree (paper section 2).

use std::collections::BTreeMap;
use std::fmt;

use crate::config::{Config, ConfigError};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::{Node, Snapshot};

mod stats;
pub use stats::{Sample, Stats};

/// A range-adaptive tree over keys of type `K`.
pub struct Tree<K: Key> {
    config: Config,
    events: u64,
    counts: BTreeMap<(K::Code, std::cmp::Reverse<u32>), u64>,
    stats: Stats,
}

impl<K: Key> Tree<K> {
    /// An empty tree.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Tree { config, events: 0, counts: BTreeMap::new(), stats: Stats::default() })
    }
    /// Counts one event.
    pub fn add(&mut self, key: K) {
        self.add_weighted(key, 1);
    }
    /// Counts `weight` events with the same key.
    pub fn add_weighted(&mut self, key: K, weight: u64) {
        if weight > 0 {
            self.events += weight;
            *self.counts.entry((key.encode(), std::cmp::Reverse(0))).or_default() += weight;
        }
    }
    /// Counts one event for each key; by far the fastest way in.
    pub fn add_slice(&mut self, keys: &[K]) {
        keys.iter().for_each(|&key| self.add(key));
    }
    /// Sends everything that is still in the buffer into the tree. Queries do it themselves.
    pub fn finish(&mut self) {}
    /// All events so far, weights added up.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// The error bound that holds now: `eps`, or more when the memory limit forced it.
    pub fn eps_effective(&self) -> f64 {
        self.config.eps
    }
    /// Ranges that hold a count now.
    pub fn nodes(&self) -> usize {
        self.counts.len()
    }
    /// The most ranges that have held a count so far.
    pub fn nodes_max(&self) -> usize {
        self.counts.len()
    }
    /// Bytes held by tree and buffer.
    pub fn memory_bytes(&self) -> usize {
        self.counts.len() * 32
    }
    /// Node counts over time.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
    /// The summary so far.
    pub fn snapshot(&mut self) -> Snapshot<K> {
        let node = |(&(code, std::cmp::Reverse(bits)), &own): (&(K::Code, std::cmp::Reverse<u32>), &u64)| {
            Node { range: Range::aligned(code, bits), own }
        };
        Snapshot {
            config: self.config.clone(),
            events: self.events,
            eps_effective: self.config.eps,
            nodes_max: self.counts.len() as u64,
            nodes: self.counts.iter().map(node).collect(),
        }
    }
    /// A tree that goes on where a snapshot stopped.
    pub fn from_snapshot(snapshot: Snapshot<K>) -> Result<Self, MergeError> {
        let mut tree = Tree::new(snapshot.config.clone()).map_err(MergeError::Config)?;
        tree.merge(&snapshot)?;
        Ok(tree)
    }
    /// Adds another tree's summary: counts add up, and so do the errors, so `eps * (n1 + n2)` holds.
    pub fn merge(&mut self, other: &Snapshot<K>) -> Result<(), MergeError> {
        for node in &other.nodes {
            let at = (node.range.start(), std::cmp::Reverse(node.range.free_bits()));
            *self.counts.entry(at).or_default() += node.own;
            self.events += node.own;
        }
        Ok(())
    }
}

/// Why a snapshot could not be taken into a tree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// The snapshot's parameters are not valid.
    Config(ConfigError),
    /// Node `0` of the snapshot has a range that no tree node can have.
    Range(usize),
    /// The nodes' counts do not add up to the snapshot's events, or to more than a tree can count.
    Events,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Config(error) => write!(f, "the snapshot's parameters are not valid: {error}"),
            MergeError::Range(node) => write!(f, "node {node} of the snapshot is no aligned range"),
            MergeError::Events => write!(f, "the snapshot's counts do not add up to its events"),
        }
    }
}

impl std::error::Error for MergeError {}
