//! Trees of one run in the region numbers of another: a region is an aligned stretch of 2^48 places, so that ranges
//! inside one stay ranges.

use crate::trees::heaviest_path;
use sonde_place::Place;
use sonde_rap::{Key, Node, Range, Snapshot};
use sonde_summary::{Domain, Ranges, Trees};
use std::cmp::Reverse;

/// What becomes of regions.
#[derive(Debug)]
pub(crate) struct Moves {
    /// New numbers, by number.
    pub slots: Vec<u16>,
    /// Weight that went to the root, since its ranges reach over regions that are moved apart.
    pub widened: u64,
    /// Regions that became part of another build's.
    pub pooled: u64,
}

impl Moves {
    /// Where a place goes.
    pub fn place(&self, place: u64) -> u64 {
        let slot = self.slots.get(usize::from(Place(place).slot())).copied().unwrap_or(0);
        Place::new(slot, Place(place).offset()).0
    }

    /// Where a stretch of one dimension goes; none if it is torn.
    fn stretch(&self, lo: u64, hi: u64) -> Option<(u64, u64)> {
        let (first, last) = (usize::from(Place(lo).slot()), usize::from(Place(hi).slot()));
        if first == last {
            let moved = self.place(lo);
            return Some((moved, moved + (hi - lo)));
        }
        // Regions that are not there hold nothing.
        let mut inside = self.slots.iter().enumerate().take(last + 1).skip(first);
        inside.all(|(slot, new)| slot == usize::from(*new)).then_some((lo, hi))
    }

    fn range<K: Key>(&self, range: &Range<K>, domains: &[Domain]) -> Option<Range<K>> {
        debug_assert_eq!(K::DIMS, domains.len());
        let (mut lo, mut hi) = ([0u128; 2], [0u128; 2]);
        for (dim, domain) in domains.iter().enumerate() {
            let ends = (range.lo.coordinate(dim) as u64, range.hi.coordinate(dim) as u64);
            let moved = if *domain == Domain::Value { ends } else { self.stretch(ends.0, ends.1)? };
            (lo[dim], hi[dim]) = (moved.0.into(), moved.1.into());
        }
        Some(Range { lo: K::from_coordinates(&lo[..K::DIMS]), hi: K::from_coordinates(&hi[..K::DIMS]) })
    }

    fn snapshot<K: Key>(&mut self, tree: &Snapshot<K>, domains: &[Domain]) -> Snapshot<K> {
        let mut moved = tree.clone();
        for node in &mut moved.nodes {
            node.range = self.range(&node.range, domains).unwrap_or_else(|| {
                self.widened = self.widened.saturating_add(node.own);
                Range::all()
            });
        }
        in_order(&mut moved.nodes);
        // Regions that became one, and all that went to the root, lie on fewer paths: the error may have grown.
        let lost = heaviest_path(&moved) as f64 / moved.events.max(1) as f64;
        moved.eps_effective = moved.eps_effective.max(lost);
        moved
    }
}

/// Sorts nodes as trees have them, and unites those of the same range.
fn in_order<K: Key>(nodes: &mut Vec<Node<K>>) {
    nodes.sort_by_key(|node| (node.range.start(), Reverse(node.range.free_bits())));
    nodes.dedup_by(|next, first| {
        let same = next.range == first.range;
        if same {
            first.own = first.own.saturating_add(next.own);
        }
        same
    });
}

/// The tree in other region numbers.
pub(crate) fn relocated(ranges: &Ranges, moves: &mut Moves) -> Ranges {
    let domains = ranges.kind.domains();
    let tree = match &ranges.tree {
        Trees::One(tree) => Trees::One(moves.snapshot(tree, domains)),
        Trees::Two(tree) => Trees::Two(moves.snapshot(tree, domains)),
    };
    Ranges { tree, ..ranges.clone() }
}
