//! A finished tree of some kind.

use crate::kind::Kind;
use crate::unit::Unit;
use sonde_rap::Snapshot;

/// Trees of one and two dimensions.
#[derive(Clone, Debug, PartialEq)]
pub enum Trees {
    /// Over places or values.
    One(Snapshot<u64>),
    /// Over pairs of them.
    Two(Snapshot<[u64; 2]>),
}

/// One finished tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranges {
    /// What it is over.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// Events that were added, whatever they weigh.
    pub events: u64,
    /// The tree; keys that are addresses are places (`sonde-place`).
    pub tree: Trees,
}
