//! A tree as a plain list of ranges with their own counts: what snapshots, statistics and rebuilding start from.

use std::cmp::Reverse;

use super::core::Core;
use super::slot::{Place, ROOT_PLACE, TOP, index_of, is_reference, level_of};
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

#[inline]
fn push<C: Code>(items: &mut Vec<Item<C>>, start: C, free_bits: u32, count: u64) {
    if count > 0 {
        items.push(Item { start, free_bits, count });
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
        let free_bits = self.free_bits(level);
        if !is_reference(slot) {
            return push(items, start, free_bits, u64::from(slot).saturating_add(self.wide(at)));
        }
        let (node, level) = (index_of(slot), level_of(slot));
        push(items, start, free_bits, self.parked(node));
        match (&self.top, node) {
            (Some(top), TOP) => self.collect_slots(node, level, &top.slots[..], items),
            _ => self.collect_slots(node, level, &self.arena.lines[node as usize].0[..1 << self.step], items),
        }
    }

    fn collect_slots(&self, node: u32, level: u32, slots: &[u32], items: &mut Vec<Item<C>>) {
        let (start, free_bits) = (self.node_start(node), self.free_bits(level));
        let spilled = self.has_wides(node);
        for (digit, &slot) in slots.iter().enumerate() {
            let start = start.or(C::from_low(digit as u64).shl(level * self.step));
            if spilled || is_reference(slot) {
                self.collect(Place { node, digit: digit as u32 }, start, level, items);
            } else {
                push(items, start, free_bits, slot.into());
            }
        }
    }

    fn has_wides(&self, node: u32) -> bool {
        match (&self.top, node) {
            (Some(top), TOP) => top.has_wides(),
            _ => self.arena.has_wides(node),
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
