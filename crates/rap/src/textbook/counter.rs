//! One range of the plain tree, with the ranges inside it: update, split, adopt, merge.

use crate::code::Code;

/// What a range may hold and how ranges divide, at one moment.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The split threshold, rounded down.
    pub threshold: u64,
    /// Bits of the key that one level takes.
    pub level_bits: u32,
}

/// What adding a count did to the tree.
pub(super) struct Effect {
    /// A range was split.
    pub split: bool,
    /// A range holds a count now that held none before.
    pub new_node: bool,
}

/// A range of `2^free` codes from `start` on, its own count, and the disjoint ranges inside it, ascending.
pub(super) struct Counter<C> {
    start: C,
    free: u32,
    own: u64,
    children: Vec<Counter<C>>,
}

impl<C: Code> Counter<C> {
    /// The empty range around a code.
    pub fn new(code: C, free: u32) -> Self {
        Counter { start: code.shr(free).shl(free), free, own: 0, children: Vec::new() }
    }

    fn covers(&self, code: C) -> bool {
        self.start.xor(code).shr(self.free) == C::ZERO
    }

    /// Free bits of the ranges directly below. Levels are counted from single keys upwards.
    fn free_below(&self, level_bits: u32) -> u32 {
        self.free.saturating_sub(1) / level_bits * level_bits
    }

    /// The child that covers `code` and is no smaller than `2^free`.
    fn child_around(&self, code: C, free: u32) -> Option<usize> {
        let after = self.children.partition_point(|child| child.start <= code);
        let index = after.checked_sub(1)?;
        let child = &self.children[index];
        (child.covers(code) && child.free >= free).then_some(index)
    }

    /// Counts `weight` at the smallest range around `code` of at least `2^free` keys, splitting it when it is full.
    pub fn add(&mut self, code: C, free: u32, weight: u64, limits: Limits) -> Effect {
        let mut smallest = self;
        while let Some(index) = smallest.child_around(code, free) {
            smallest = &mut smallest.children[index];
        }
        let room = limits.threshold.saturating_sub(smallest.own);
        let split = smallest.free > free && weight > room;
        if split {
            let one_level = smallest.free_below(limits.level_bits);
            smallest = smallest.split(code, if weight > limits.threshold { free } else { one_level });
        }
        let new_node = smallest.own == 0;
        smallest.own += weight;
        Effect { split, new_node }
    }

    /// Makes the range around `code` of `2^free` keys, which adopts the children that lie inside it.
    fn split(&mut self, code: C, free: u32) -> &mut Self {
        let mut child = Counter::new(code, free);
        let first = self.children.partition_point(|other| other.start < child.start);
        let inside = self.children[first..].iter().take_while(|other| child.covers(other.start)).count();
        child.children = self.children.drain(first..first + inside).collect();
        self.children.insert(first, child);
        &mut self.children[first]
    }

    /// A batch of merges below this range, bottom-up; returns how many counts rose into a parent.
    ///
    /// Afterwards every range below either is a single key above the threshold or could not give its count to the range
    /// directly above it: together they exceed the threshold. The node bound rests on that.
    pub fn settle(&mut self, limits: Limits) -> u64 {
        let below = self.free_below(limits.level_bits);
        let mut merges = 0;
        let mut left = std::mem::take(&mut self.children).into_iter().peekable();
        while let Some(first) = left.next() {
            let mut slot = Counter::new(first.start, below);
            let mut inside = vec![first];
            while let Some(next) = left.next_if(|next| slot.covers(next.start)) {
                inside.push(next);
            }
            slot.children = inside;
            merges += slot.settle_slot(limits);
            self.keep(self.children.len(), slot);
        }
        merges + self.absorb_children(below, limits)
    }

    /// Settles a range one level down, given as an empty range around all that lies in it.
    fn settle_slot(&mut self, limits: Limits) -> u64 {
        let [only] = self.children.as_mut_slice() else { return self.settle(limits) };
        if only.own > limits.threshold && only.children.is_empty() {
            return 0;
        }
        // A lone light range widens to the slot: it gives its count to empty parents, one after the other.
        let risen = u64::from(only.free != self.free);
        self.own = only.own;
        self.children = std::mem::take(&mut only.children);
        risen + self.settle(limits)
    }

    /// Takes over the counts of children directly below while they fit, lightest first.
    fn absorb_children(&mut self, below: u32, limits: Limits) -> u64 {
        let mut merges = 0;
        loop {
            let direct = self.children.iter().enumerate().filter(|(_, child)| child.free == below);
            let Some((index, lightest)) = direct.min_by_key(|(_, child)| child.own) else { return merges };
            if lightest.own > limits.threshold.saturating_sub(self.own) {
                return merges;
            }
            let mut child = self.children.remove(index);
            self.own += std::mem::take(&mut child.own);
            merges += 1 + child.settle(limits);
            self.keep(index, child);
        }
    }

    /// Puts a child in place, or only what lies inside it when it holds no count itself.
    fn keep(&mut self, at: usize, child: Self) {
        if child.own > 0 {
            self.children.insert(at, child);
        } else {
            self.children.splice(at..at, child.children);
        }
    }

    /// Ranges with a count, this one included.
    pub fn nodes(&self) -> usize {
        usize::from(self.own > 0) + self.children.iter().map(Counter::nodes).sum::<usize>()
    }

    /// Shows start, free bits and count of every range with a count, in preorder.
    pub fn visit(&self, show: &mut impl FnMut(C, u32, u64)) {
        if self.own > 0 {
            show(self.start, self.free, self.own);
        }
        self.children.iter().for_each(|child| child.visit(show));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(threshold: u64) -> Limits {
        Limits { threshold, level_bits: 1 }
    }

    fn ranges(root: &Counter<u64>) -> Vec<(u64, u32, u64)> {
        let mut ranges = Vec::new();
        root.visit(&mut |start, free, own| ranges.push((start, free, own)));
        ranges
    }

    #[test]
    fn a_full_range_keeps_its_count_and_the_event_goes_one_level_down() {
        let mut root = Counter::<u64>::new(0, 8);
        for _ in 0..5 {
            root.add(12, 0, 1, limits(2));
        }
        assert_eq!(ranges(&root), [(0, 8, 2), (0, 7, 2), (0, 6, 1)]);
    }

    #[test]
    fn a_weight_that_no_range_may_hold_goes_to_its_key_as_a_whole() {
        let mut root = Counter::<u64>::new(0, 8);
        let effect = root.add(12, 0, 50, limits(2));
        assert!(effect.split && effect.new_node);
        assert_eq!(ranges(&root), [(12, 0, 50)]);
    }

    #[test]
    fn a_new_range_adopts_what_lies_inside_it() {
        let mut root = Counter::<u64>::new(0, 8);
        root.add(12, 0, 50, limits(2));
        root.add(200, 0, 60, limits(2));
        for _ in 0..4 {
            root.add(13, 0, 1, limits(2));
        }
        assert_eq!(ranges(&root), [(0, 8, 2), (0, 7, 2), (12, 0, 50), (200, 0, 60)]);
        assert_eq!(root.children.len(), 2, "12 lies in the new half now, 200 does not");
    }

    /// Figure 1, with its cutoff of 13: what weighs no more together with its parent goes into it, lightest first, and
    /// `[12, 13]` stays when the ranges between it and `[0, 63]` are gone.
    #[test]
    fn figure_1_light_ranges_go_into_their_parents_and_heavy_ones_stay() {
        let mut root = Counter::<u64>::new(0, 8);
        for (code, free, own) in [(0, 6, 9), (8, 3, 1), (8, 2, 2), (12, 1, 13), (64, 6, 4), (128, 7, 5)] {
            root.split_to(code, free).own = own;
        }
        let merges = root.settle(limits(13));
        assert!(merges > 0);
        let left = ranges(&root);
        assert_eq!(left.iter().map(|range| range.2).sum::<u64>(), 34, "nothing is lost: {left:?}");
        assert!(left.len() < 6, "{left:?}");
        assert!(left.iter().all(|range| range.2 <= 13), "{left:?}");
        let again = root.settle(limits(13));
        assert_eq!((again, ranges(&root)), (0, left), "a second batch finds nothing to merge");
    }

    impl Counter<u64> {
        /// The range around a code, made below the smallest one around it.
        fn split_to(&mut self, code: u64, free: u32) -> &mut Self {
            match self.child_around(code, free + 1) {
                Some(index) => self.children[index].split_to(code, free),
                None => self.split(code, free),
            }
        }
    }
}
