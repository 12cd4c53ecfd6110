//! Trees from snapshots, and the union of trees that were built apart (the station does it for whole fleets).

use std::fmt;

use super::Tree;
use super::items::Item;
use crate::code::Code;
use crate::config::ConfigError;
use crate::key::Key;
use crate::snapshot::{Node, Snapshot};

impl<K: Key> Tree<K> {
    /// A tree that goes on where a snapshot stopped, with its parameters.
    pub fn from_snapshot(snapshot: Snapshot<K>) -> Result<Self, MergeError> {
        let mut tree = Tree::new(snapshot.config.clone()).map_err(MergeError::Config)?;
        tree.merge(&snapshot)?;
        tree.nodes_max = tree.nodes_max.max(snapshot.nodes_max);
        Ok(tree)
    }

    /// Adds another tree's summary. Counts add up, and so do errors: `eps * (n1 + n2)` holds when it held for both.
    ///
    /// The other tree may have had another `eps` or branching factor, whose ranges are widened to this tree's: then
    /// `eps_effective` tells what holds. Nothing is changed on an error.
    pub fn merge(&mut self, other: &Snapshot<K>) -> Result<(), MergeError> {
        other.check()?;
        self.finish();
        let events = self.events.checked_add(other.events).ok_or(MergeError::Events)?;
        for node in &other.nodes {
            self.core.put(self.item_of(node));
        }
        self.events = events;
        self.keep_schedule();
        Ok(())
    }

    /// A node as an item of this tree: a range between its levels, from a tree with another branching factor, is widened.
    fn item_of(&self, node: &Node<K>) -> Item<K::Code> {
        let level = node.range.free_bits().next_multiple_of(self.config.branching.bits());
        let free_bits = level.min(K::BITS);
        Item { start: node.range.start().shr(free_bits).shl(free_bits), free_bits, count: node.own }
    }
}

/// Why a snapshot could not be taken into a tree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MergeError {
    /// The snapshot's parameters are not valid.
    Config(ConfigError),
    /// This node of the snapshot (counted from 0) has a range that no tree with its parameters can have.
    Range(usize),
    /// The nodes' counts do not add up to the snapshot's events, or both trees' to more than a tree can count.
    Events,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Config(error) => write!(f, "the snapshot's parameters are not valid: {error}"),
            MergeError::Range(node) => {
                write!(f, "node {node} of the snapshot is no range of a tree with its branching factor")
            }
            MergeError::Events => {
                write!(f, "the snapshot's counts do not add up to its events, or exceed 64 bits")
            }
        }
    }
}

impl std::error::Error for MergeError {}
