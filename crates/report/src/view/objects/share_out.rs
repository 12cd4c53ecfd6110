//! The weight of a tree, shared out among the objects that its ranges lie in.

use super::{Ground, Part};
use sonde_place::Place;
use sonde_rap::Snapshot;
use std::collections::BTreeMap;

/// An object: number of its region, and which part of it.
pub(super) type Object = (u16, Part);

/// A tree, shared out.
pub(super) struct Shared {
    /// Objects that have something for sure, and how much.
    pub parts: BTreeMap<Object, u64>,
    /// All weight.
    pub all: u64,
    /// Weight of ranges that reach over several regions: the first, the last, and how much.
    across: Vec<(u16, u16, u64)>,
    /// Weight of ranges that reach over several pieces of a region: the first, the last, and how much.
    inside: BTreeMap<u16, Vec<(usize, usize, u64)>>,
}

impl Shared {
    /// Least and most weight of an object.
    pub fn bounds(&self, object: Object, ground: &Ground) -> (u64, u64) {
        let (slot, part) = object;
        let across = self.across.iter().filter(|(first, last, _)| (*first..=*last).contains(&slot));
        let inside = self.inside.get(&slot).into_iter().flatten();
        let inside = inside.filter(|(first, last, _)| ground.has(part, *first, *last));
        let more = across.map(|(.., own)| *own).chain(inside.map(|(.., own)| *own));
        let least = self.parts.get(&object).copied().unwrap_or(0);
        (least, more.fold(least, u64::saturating_add))
    }

    /// Weight in ranges of several objects.
    pub fn in_several(&self) -> u64 {
        let inside = self.inside.values().flatten().map(|(.., own)| *own);
        self.across.iter().map(|(.., own)| *own).chain(inside).fold(0, u64::saturating_add)
    }
}

/// Shares a tree out among objects; regions by number.
pub(super) fn share_out(tree: &Snapshot<u64>, grounds: &[Ground]) -> Shared {
    let mut shared =
        Shared { parts: BTreeMap::new(), all: tree.events, across: Vec::new(), inside: BTreeMap::new() };
    for node in &tree.nodes {
        let (lo, hi) = (Place(node.range.lo), Place(node.range.hi));
        let slot = lo.slot();
        let Some(ground) = grounds.get(usize::from(slot)).filter(|_| hi.slot() == slot) else {
            shared.across.push((slot, hi.slot(), node.own));
            continue;
        };
        let (first, last) = (ground.piece(lo.offset()), ground.piece(hi.offset()));
        if first == last {
            let sum = shared.parts.entry((slot, ground.part(first))).or_default();
            *sum = sum.saturating_add(node.own);
        } else {
            shared.inside.entry(slot).or_default().push((first, last, node.own));
        }
    }
    shared
}
