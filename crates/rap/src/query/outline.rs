//! The hierarchy that a list of nodes implies: who lies in whom, and the ranges where branches meet.
//!
//! Trees do not keep ranges without a count, but such a range can still be hot: four cold quarters may make a hot whole.
//! Sums change only at nodes and where two branches meet, so adding the meeting ranges is enough to find every hot one.

use crate::code::Code;
use crate::key::Key;
use crate::snapshot::Snapshot;
use std::cmp::Reverse;

/// A range of the hierarchy.
pub(super) struct Entry<C> {
    pub start: C,
    /// The range has `2^free` keys.
    pub free: u32,
    /// Count of this very range; 0 where branches only meet.
    pub own: u64,
    /// Count of this range and all inside.
    pub total: u64,
    /// Index of the closest range around this one.
    pub parent: Option<usize>,
}

/// Start, free bits and count; ordered like the preorder of the tree.
type Ranked<C> = (C, Reverse<u32>, u64);

/// All nodes and meeting ranges in preorder: parents before children, so that going backwards is bottom-up.
pub(super) fn outline<K: Key>(snapshot: &Snapshot<K>) -> Vec<Entry<K::Code>> {
    let ranked =
        snapshot.nodes.iter().map(|node| (node.range.start(), Reverse(node.range.free_bits()), node.own));
    let mut ranges: Vec<Ranked<K::Code>> = ranked.collect();
    let level_bits = snapshot.config.branching.bits();
    let meetings: Vec<_> = ranges.windows(2).map(|pair| meeting::<K>(pair[0], pair[1], level_bits)).collect();
    ranges.extend(meetings);
    ranges.sort_unstable();
    let mut entries: Vec<Entry<K::Code>> = Vec::with_capacity(ranges.len());
    for (start, Reverse(free), own) in ranges {
        match entries.last_mut() {
            Some(last) if (last.start, last.free) == (start, free) => last.own = last.own.saturating_add(own),
            _ => entries.push(Entry { start, free, own, total: 0, parent: None }),
        }
    }
    link_parents(&mut entries);
    add_up(&mut entries);
    entries
}

/// The smallest range of the tree's levels around two nodes; never wider than all keys.
fn meeting<K: Key>(a: Ranked<K::Code>, b: Ranked<K::Code>, level_bits: u32) -> Ranked<K::Code> {
    let differing = a.0.xor(b.0).bit_length().max(a.1.0).max(b.1.0);
    let free = differing.next_multiple_of(level_bits).min(K::BITS);
    (a.0.shr(free).shl(free), Reverse(free), 0)
}

fn link_parents<C: Code>(entries: &mut [Entry<C>]) {
    let mut around: Vec<usize> = Vec::new();
    for index in 0..entries.len() {
        let start = entries[index].start;
        while let Some(&top) = around.last() {
            if entries[top].start.xor(start).shr(entries[top].free) == C::ZERO {
                break;
            }
            around.pop();
        }
        entries[index].parent = around.last().copied();
        around.push(index);
    }
}

fn add_up<C>(entries: &mut [Entry<C>]) {
    for index in (0..entries.len()).rev() {
        let total = entries[index].total.saturating_add(entries[index].own);
        entries[index].total = total;
        if let Some(parent) = entries[index].parent {
            entries[parent].total = entries[parent].total.saturating_add(total);
        }
    }
}

/// Counts held by the ranges around each entry: what its count may miss.
pub(super) fn held_above<C>(entries: &[Entry<C>]) -> Vec<u64> {
    let mut above: Vec<u64> = Vec::with_capacity(entries.len());
    for entry in entries {
        above.push(entry.parent.map_or(0, |parent| above[parent].saturating_add(entries[parent].own)));
    }
    above
}
