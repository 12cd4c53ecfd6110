//! The merging-event buffer (paper section 3.2): equal events are combined before they reach the tree.
//!
//! Exact: a front changes the order of events and nothing else. Which front pays depends on the stream; `Auto` decides
//! block by block from what it measures on the stream itself (misses and descents, never the clock, so that the same
//! stream always gives the same tree).

mod chooser;
mod table;
mod unlimited;

use chooser::Chooser;
use table::Table;
use unlimited::Unlimited;

use crate::config::Buffer;
use crate::key::Key;

/// Bytes of the automatic table: the size that measured best; see the design page.
const AUTO_BYTES: usize = 32 << 10;

/// What stands before the tree.
#[derive(Debug)]
pub(crate) enum Front<K> {
    /// Nothing.
    None,
    /// A table for every event.
    Table(Table<K>),
    /// A table that is passed by where it does not pay.
    Auto(Table<K>, Chooser),
    /// A map of everything.
    Unlimited(Unlimited<K>),
}

/// Which way the next block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Straight into the tree.
    Direct,
    /// Through the table (or map).
    Combined,
}

impl<K: Key> Front<K> {
    /// The front for this setting. `roomy`: whether memory allows the automatic table.
    pub fn new(buffer: Buffer, roomy: bool) -> Self {
        match buffer {
            Buffer::None => Front::None,
            Buffer::Auto if roomy => Front::Auto(Table::new(AUTO_BYTES), Chooser::default()),
            Buffer::Auto => Front::None,
            Buffer::Bytes(bytes) => Front::Table(Table::new(bytes)),
            Buffer::Unlimited => Front::Unlimited(Unlimited::default()),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Front::None => 0,
            Front::Table(table) | Front::Auto(table, _) => table.bytes(),
            Front::Unlimited(map) => map.bytes(),
        }
    }

    /// Whether runs of one key are to be looked for.
    pub fn finds_runs(&self) -> bool {
        matches!(self, Front::Auto(..))
    }

    /// Which way the next block goes.
    pub fn way(&self) -> Way {
        match self {
            Front::None => Way::Direct,
            Front::Auto(_, chooser) => chooser.way(),
            Front::Table(_) | Front::Unlimited(_) => Way::Combined,
        }
    }

    /// Combines a block; what it displaces is left in `out`, which must have room for the block.
    pub fn combine(&mut self, keys: &[K], out: &mut Vec<(K, u64)>) {
        out.clear();
        match self {
            Front::None => out.extend(keys.iter().map(|&key| (key, 1))),
            Front::Table(table) | Front::Auto(table, _) => table.combine(keys, out),
            Front::Unlimited(map) => keys.iter().for_each(|&key| map.add(key, 1)),
        }
    }

    /// Tells what the last block cost: slots visited in the tree for `descended` of its `keys` events.
    pub fn learn(&mut self, keys: usize, descended: usize, visits: usize) {
        if let Front::Auto(_, chooser) = self {
            chooser.learn(keys, descended, visits);
        }
    }

    /// Takes out everything.
    pub fn drain(&mut self) -> Vec<(K, u64)> {
        match self {
            Front::None => Vec::new(),
            Front::Table(table) | Front::Auto(table, _) => table.drain(),
            Front::Unlimited(map) => map.drain(),
        }
    }
}
