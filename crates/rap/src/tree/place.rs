//! Puts a known count at a known range: how snapshots are absorbed and how the tree is rebuilt around a new top.

use std::cmp::Reverse;

use super::core::Core;
use super::items::Item;
use super::slot::{Place, ROOT_PLACE, TOP, index_of, is_reference, level_of};
use crate::code::Code;

impl<C: Code> Core<C> {
    /// Adds `item.count` to the range's own count, creating the nodes that lead there.
    ///
    /// When memory does not allow those nodes the count stays at the smallest range that exists around it.
    pub fn put(&mut self, item: Item<C>) {
        if item.free_bits != self.key_bits && !item.free_bits.is_multiple_of(self.step) {
            return self.put_extra(item);
        }
        let target = item.free_bits.div_ceil(self.step);
        let (mut at, mut level) = (ROOT_PLACE, self.root_level());
        loop {
            let slot = self.slot(at);
            if level == target {
                return self.add_here(at, slot, item.count);
            }
            let next = if is_reference(slot) {
                if index_of(slot) == TOP && self.inside_top(target, item.start) {
                    return self.put_extra(item);
                }
                self.lead_towards(at, slot, target, item.start)
            } else {
                self.take_node(target, item.start).map(|node| {
                    self.replace_count_by_node(at, target, node);
                    (self.place(node, target, item.start), target)
                })
            };
            match next {
                Some(place_and_level) => (at, level) = place_and_level,
                None => return self.add_here(at, slot, item.count),
            }
        }
    }

    fn put_extra(&mut self, item: Item<C>) {
        let key = (item.start, Reverse(item.free_bits));
        if let Some(count) = self.extras.get_mut(&key) {
            *count = count.saturating_add(item.count);
        } else if self.arena.lend(Self::EXTRA_BYTES) {
            self.extras.insert(key, item.count);
        } else {
            let at = self.place_around(item.start, item.free_bits);
            self.add_here(at, self.slot(at), item.count);
        }
    }

    /// Whether a range at `target` lies strictly between the top's whole range and its slots.
    fn inside_top(&self, target: u32, code: C) -> bool {
        self.top.as_ref().is_some_and(|top| {
            top.covers(code) && target > top.level && target * self.step < top.bits.min(self.key_bits)
        })
    }

    fn add_here(&mut self, at: Place, slot: u32, count: u64) {
        if is_reference(slot) {
            self.park(index_of(slot), count);
        } else {
            let total = u64::from(slot).saturating_add(self.wide(at));
            self.set_count(at, total.saturating_add(count));
        }
    }

    /// One step down an edge towards the slot for `code` at `target`, forking the edge where it leads elsewhere.
    fn lead_towards(&mut self, at: Place, slot: u32, target: u32, code: C) -> Option<(Place, u32)> {
        let (node, level) = (index_of(slot), level_of(slot));
        let node_bits = self.node_bits(level, node);
        let wanted_bits = (target + 1) * self.step;
        let bits = node_bits.max(wanted_bits);
        let difference = code.xor(self.node_start(node)).shr(bits);
        let fork_level = match difference.bit_length() {
            0 if node_bits >= wanted_bits => return Some((self.place(node, level, code), level)),
            0 => target,
            length => (bits + length - 1) / self.step,
        };
        let fork = self.fork(at, slot, fork_level, code)?;
        Some((self.place(fork, fork_level, code), fork_level))
    }
}
