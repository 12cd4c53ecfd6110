//! Merge batches (paper section 2.2 and 2.3): light nodes go back into their parent, and lines become free again.

use super::core::Core;
use super::fold::{Levels, children, common_bits};
use super::items::Item;
use super::slot::{Place, ROOT_PLACE, TOP, index_of, is_reference, level_of, reference};
use super::top::Top;
use crate::code::Code;

impl<C: Code> Core<C> {
    /// Frees every node whose events, with those of the range it refines, weigh no more than the threshold; and every
    /// node that only leads to one other, when what it holds itself can be held by the range above.
    pub fn merge_light_nodes(&mut self) -> u64 {
        let merged = self.merge_below(ROOT_PLACE);
        self.merge_extras();
        merged
    }

    fn merge_below(&mut self, at: Place) -> u64 {
        let slot = self.slot(at);
        if !is_reference(slot) {
            return 0;
        }
        let node = index_of(slot);
        if node == TOP {
            return self.merge_below_top();
        }
        let (mut merged, mut counted, mut child) = (0, 0u64, None);
        let mut children = 0;
        for digit in 0..1 << self.step {
            let place = Place { node, digit };
            merged += self.merge_below(place);
            let slot = self.slot(place);
            if is_reference(slot) {
                children += 1;
                child = Some(slot);
            } else {
                counted = counted.saturating_add(u64::from(slot)).saturating_add(self.wide(place));
            }
        }
        let own = counted.saturating_add(self.parked(node));
        let freed = match child {
            None => self.merge_leaf(at, node, own),
            Some(child) if children == 1 => self.merge_link(at, node, child, own),
            Some(_) => false,
        };
        merged + u64::from(freed)
    }

    fn merge_below_top(&mut self) -> u64 {
        let mut merged = 0;
        for digit in 0..=Top::<C>::MASK {
            let at = Place { node: TOP, digit };
            if is_reference(self.slot(at)) {
                merged += self.merge_below(at);
            }
        }
        merged
    }

    fn merge_leaf(&mut self, at: Place, node: u32, own: u64) -> bool {
        if own > self.threshold {
            return false;
        }
        self.arena.release(node);
        self.set_count(at, own);
        true
    }

    fn merge_link(&mut self, at: Place, node: u32, child: u32, own: u64) -> bool {
        let together = own.saturating_add(self.parked(index_of(child)));
        if together > self.threshold {
            return false;
        }
        self.set_parked(index_of(child), together);
        self.arena.release(node);
        self.set_slot(at, child);
        true
    }

    /// Counts that no slot stands for go to the slot around them, as soon as that may hold them.
    fn merge_extras(&mut self) {
        let extras = std::mem::take(&mut self.extras);
        for ((start, free_bits), count) in extras {
            let at = self.place_around(start, free_bits.0);
            let slot = self.slot(at);
            let held = if is_reference(slot) {
                self.parked(index_of(slot))
            } else {
                u64::from(slot).saturating_add(self.wide(at))
            };
            let together = held.saturating_add(count);
            if together > self.threshold {
                self.extras.insert((start, free_bits), count);
                continue;
            }
            self.arena.take_back(Self::EXTRA_BYTES);
            if is_reference(slot) {
                self.set_parked(index_of(slot), together);
            } else {
                self.set_count(at, together);
            }
        }
    }

    /// The slot for the smallest range that exists around the given one.
    pub fn place_around(&self, code: C, free_bits: u32) -> Place {
        let mut at = ROOT_PLACE;
        loop {
            let slot = self.slot(at);
            let (node, level) = (index_of(slot), level_of(slot));
            if !is_reference(slot)
                || level * self.step < free_bits
                || code.xor(self.node_start(node)).shr(self.node_bits(level, node)) != C::ZERO
            {
                return at;
            }
            at = self.place(node, level, code);
        }
    }

    /// Puts the top where it covers the smallest range that nearly all events, here as `items`, fall into, unless it is
    /// there already.
    pub fn settle_top(&mut self, items: &[Item<C>]) {
        if items.is_empty() {
            return;
        }
        let (code, bits) = heavy_range(items, Levels { key_bits: self.key_bits, branch_bits: self.step });
        let level = bits.saturating_sub(Top::<C>::BITS).div_ceil(self.step);
        if self.top.as_ref().is_some_and(|top| top.level == level && top.covers(code)) {
            return;
        }
        self.rebuild(items, Some(Box::new(Top::new(code, level, self.step))));
    }

    /// Builds the tree anew from `items`, around a new top.
    fn rebuild(&mut self, items: &[Item<C>], top: Option<Box<Top<C>>>) {
        let lent = self.extras.len() * Self::EXTRA_BYTES;
        let mut fresh = Core::new(self.key_bits, self.step, self.arena.bytes_limit().saturating_add(lent));
        fresh.set_threshold(self.threshold);
        if let Some(top) = top {
            fresh.root = reference(top.level, TOP);
            fresh.top = Some(top);
        }
        items.iter().for_each(|&item| fresh.put(item));
        fresh.splits = self.splits;
        fresh.starved |= self.starved;
        *self = fresh;
    }
}

/// The smallest range of lines that holds at least 15/16 of all counts: a code in it and its free bits.
fn heavy_range<C: Code>(items: &[Item<C>], levels: Levels) -> (C, u32) {
    let weigh = |part: &[Item<C>]| part.iter().map(|item| u128::from(item.count)).sum::<u128>();
    let enough = weigh(items) / 16 * 15;
    let mut part = items;
    loop {
        let bits = common_bits(part, levels);
        let below = if part[0].free_bits == bits { &part[1..] } else { part };
        // Ranges from a snapshot may lie between two levels of lines; then a child can be all of the part: stop there.
        let narrower = |child: &&[Item<C>]| child.len() < part.len() && weigh(child) > enough;
        match children(below, bits.max(1), levels).find(narrower) {
            Some(child) => part = child,
            None => return (part[0].start, bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heavy_range_is_found_and_ends() {
        let levels = Levels { key_bits: 64, branch_bits: 4 };
        let item = |start: u64, free_bits, count| Item { start, free_bits, count };
        let spread = [item(0, 64, 3), item(0x1000, 0, 50), item(0x1fff, 0, 50), item(1 << 60, 0, 1)];
        assert_eq!(heavy_range(&spread, levels), (0x1000, 12));
        let between_levels = [item(0x40, 2, 100)];
        assert_eq!(heavy_range(&between_levels, levels), (0x40, 4));
        let nested = [item(0x40, 6, 10), item(0x40, 2, 100)];
        assert_eq!(heavy_range(&nested, levels).1, 8);
        assert_eq!(heavy_range(&[item(9, 0, 1)], levels), (9, 0));
    }
}
