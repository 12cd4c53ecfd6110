//! The merging-event buffer (paper section 3.2): equal events are combined before they reach the tree.
//!
//! Exact: a front changes the order of events and nothing else. Which front pays depends on the stream; `Auto` decides
//! block by block from what it measures on the stream itself (misses and descents, never the clock, so that the same
//! stream always gives the same tree).

mod chooser;
mod filter;
mod table;
mod unlimited;

use chooser::Chooser;
use filter::Filter;
use table::Table;
use unlimited::Unlimited;

use crate::config::Buffer;
use crate::key::Key;

/// Bytes of the automatic table: the size that measured best; see the design page.
const AUTO_BYTES: usize = 64 << 10;

/// What stands before the tree.
#[derive(Debug)]
pub(crate) enum Front<K> {
    /// Nothing.
    None,
    /// A table for every event.
    Table(Table<K>),
    /// A table and a filter that are passed by where they do not pay.
    Auto(Auto<K>),
    /// A map of everything.
    Unlimited(Unlimited<K>),
}

/// The parts of the automatic front.
#[derive(Debug)]
pub(crate) struct Auto<K> {
    table: Table<K>,
    filter: Filter<K>,
    chooser: Chooser,
}

/// Which way the next block goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Straight into the tree.
    Direct,
    /// Through the table (or map): equal events are combined.
    Combined,
    /// Through the filter: hot values stay there, all others go straight into the tree.
    Filtered,
}

impl<K: Key> Front<K> {
    /// The front for this setting. `roomy`: whether memory allows the automatic one.
    pub fn new(buffer: Buffer, roomy: bool) -> Self {
        match buffer {
            Buffer::None => Front::None,
            Buffer::Auto if roomy => Front::Auto(Auto {
                table: Table::new(AUTO_BYTES),
                filter: Filter::new(),
                chooser: Chooser::new(K::DIMS),
            }),
            Buffer::Auto => Front::None,
            Buffer::Bytes(bytes) => Front::Table(Table::new(bytes)),
            Buffer::Unlimited => Front::Unlimited(Unlimited::default()),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Front::None => 0,
            Front::Table(table) => table.bytes(),
            Front::Auto(auto) => auto.table.bytes() + auto.filter.bytes(),
            Front::Unlimited(map) => map.bytes(),
        }
    }

    /// Whether runs of one key are to be looked for.
    pub fn finds_runs(&self) -> bool {
        matches!(self, Front::Auto(_))
    }

    /// Which way the next block goes.
    pub fn way(&self) -> Way {
        match self {
            Front::None => Way::Direct,
            Front::Auto(auto) => auto.chooser.way(),
            Front::Table(_) | Front::Unlimited(_) => Way::Combined,
        }
    }

    /// Takes a block in. What has to go into the tree is left at the start of `missed` (single events; their number is
    /// returned, and there must be room for a block) and in `displaced` (combined ones).
    pub fn take(&mut self, keys: &[K], missed: &mut [K], displaced: &mut Vec<(K, u64)>) -> usize {
        displaced.clear();
        match self {
            Front::Table(table) => table.combine(keys, displaced),
            Front::Unlimited(map) => keys.iter().for_each(|&key| map.add(key, 1)),
            Front::Auto(auto) => match auto.chooser.way() {
                Way::Filtered => return auto.filter.pass(keys, missed, displaced),
                Way::Combined => auto.table.combine(keys, displaced),
                Way::Direct => return pass_by(keys, missed),
            },
            Front::None => return pass_by(keys, missed),
        }
        0
    }

    /// Tells what the last block cost: slots visited in the tree for `descended` of its `keys` events.
    pub fn learn(&mut self, keys: usize, descended: usize, visits: usize) {
        if let Front::Auto(auto) = self {
            let before = auto.chooser.way();
            auto.chooser.learn(keys, descended, visits);
            if before != Way::Filtered && auto.chooser.way() == Way::Filtered {
                auto.filter.wake();
            }
        }
    }

    /// Takes out everything.
    pub fn drain(&mut self) -> Vec<(K, u64)> {
        match self {
            Front::None => Vec::new(),
            Front::Table(table) => table.drain(),
            Front::Auto(auto) => {
                let mut entries = auto.table.drain();
                entries.extend(auto.filter.drain());
                entries
            }
            Front::Unlimited(map) => map.drain(),
        }
    }
}

fn pass_by<K: Key>(keys: &[K], missed: &mut [K]) -> usize {
    missed[..keys.len()].copy_from_slice(keys);
    keys.len()
}
