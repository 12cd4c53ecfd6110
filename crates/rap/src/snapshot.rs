//! A finished summary: the nodes of a tree at one moment, apart from how the tree was kept. All queries are asked of it.

use crate::config::Config;
use crate::key::Key;
use crate::range::Range;

/// One range and the events that were counted for it and for none of its sub-ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<K> {
    /// The range, aligned.
    pub range: Range<K>,
    /// Events counted at this very range; never 0 in a snapshot.
    pub own: u64,
}

/// The nodes of a tree, in preorder: by the code of the lower corner, larger ranges first.
///
/// The sum of `own` over all nodes is `events`. A range's lower bound is the sum of `own` inside it; what it may miss is
/// held by ranges that reach beyond it: at most `eps_effective * events`.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<K: Key> {
    /// The parameters of the tree.
    pub config: Config,
    /// All events, weights added up.
    pub events: u64,
    /// The proven error as a share of `events`: `config.eps`, or more when a memory limit forced it.
    pub eps_effective: f64,
    /// The most nodes the tree has had so far.
    pub nodes_max: u64,
    /// The nodes, in preorder, each with `own > 0`.
    pub nodes: Vec<Node<K>>,
}
