//! A tree as a plain list of ranges with their own counts: what snapshots, statistics and rebuilding start from.

use std::cmp::Reverse;

use super::core::Core;
use super::slot::{Place, ROOT_PLACE, TOP, index_of, is_reference, level_of};
use super::top::Top;
use crate::code::Code;

/// A range, by its first code and its number of free bits, and its own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item<C> {
    pub start: C,
    pub free_bits: u32,
    pub count: u64,
}

impl<C: Code> Item<C> {
    /// Preorder: by start, larger ranges first.
    pub fn order(&self) -> (C, Reverse<u32>) {
        (self.start, Reverse(self.free_bits))
    }
}

impl<C: Code> Core<C> {
    /// Every range with a count of its own, in preorder.
    pub fn items(&self) -> Vec<Item<C>> {
        let mut items = Vec::with_capacity(self.arena.used() * 6 + 64);
        self.collect(ROOT_PLACE, C::ZERO, self.root_level(), &mut items);
        if !self.extras.is_empty() {
            self.collect_extras(&mut items);
        }
        items
    }

    fn collect(&self, at: Place, start: C, level: u32, items: &mut Vec<Item<C>>) {
        let slot = self.slot(at);
        let reference = is_reference(slot);
        let count = if reference {
            self.parked_count(index_of(slot))
        } else {
            u64::from(slot).saturating_add(self.wide(at))
        };
        if count > 0 {
            items.push(Item { start, free_bits: self.free_bits(level), count });
        }
        if reference {
            self.collect_node(index_of(slot), level_of(slot), items);
        }
    }

    fn collect_node(&self, node: u32, level: u32, items: &mut Vec<Item<C>>) {
        let start = self.node_start(node);
        let slots = if node == TOP { 1 << Top::<C>::BITS } else { 1 << self.step };
        for digit in 0..slots {
            let at = Place { node, digit };
            self.collect(at, start.or(C::from_low(digit.into()).shl(level * self.step)), level, items);
        }
    }

    fn parked_count(&self, node: u32) -> u64 {
        match (&self.top, node) {
            (Some(top), TOP) => top.parked,
            _ => self.arena.metas[node as usize].parked,
        }
    }

    fn collect_extras(&self, items: &mut Vec<Item<C>>) {
        let extra = |(&(start, Reverse(free_bits)), &count)| Item { start, free_bits, count };
        items.extend(self.extras.iter().map(extra));
        items.sort_unstable_by_key(Item::order);
        items.dedup_by(|later, kept| {
            let same = later.order() == kept.order();
            if same {
                kept.count = kept.count.saturating_add(later.count);
            }
            same
        });
    }
}
