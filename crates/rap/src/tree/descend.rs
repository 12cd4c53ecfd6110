//! Many events at once: the tree is descended level by level for a whole block, without a branch that depends on the data.
//!
//! One event at a time mispredicts where its path ends, about once per event on a skewed stream. Here each pass takes one
//! step for every event of a queue: the slot is stored back, raised or not, and the event stays queued or not. What needs
//! more than raising a slot (a split, an edge that leads elsewhere) goes to the careful path of `core`.

use super::arena::Line;
use super::core::Core;
use super::slot::{index_of, is_reference, level_of};
use super::top::Top;
use crate::code::Code;

/// Events under way: their codes, the slot that each has come to, and their weights.
#[derive(Debug, Default)]
pub(super) struct Queue<C> {
    codes: Vec<C>,
    slots: Vec<u32>,
    weights: Vec<u64>,
    /// Events for the careful path.
    careful: Vec<(C, u64)>,
}

impl<C: Code> Queue<C> {
    pub fn new(block: usize) -> Self {
        Queue {
            codes: vec![C::ZERO; block],
            slots: vec![0; block],
            weights: vec![1; block],
            careful: Vec::with_capacity(block),
        }
    }

    /// Most events that can be under way.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    pub fn bytes(&self) -> usize {
        self.len() * (size_of::<C>() + size_of::<u32>() + size_of::<u64>())
            + self.careful.capacity() * size_of::<(C, u64)>()
    }
}

impl<C: Code> Core<C> {
    /// Counts a block of single events, at most as many as the queue holds. Returns the slots visited.
    pub fn count_single(&mut self, codes: impl ExactSizeIterator<Item = C>, queue: &mut Queue<C>) -> usize {
        self.count::<false>(codes.map(|code| (code, 1)), queue)
    }

    /// Counts a block of weighted events, at most as many as the queue holds. Returns the slots visited.
    pub fn count_weighted(
        &mut self,
        events: impl ExactSizeIterator<Item = (C, u64)>,
        queue: &mut Queue<C>,
    ) -> usize {
        self.count::<true>(events, queue)
    }

    fn count<const WEIGHTED: bool>(
        &mut self,
        events: impl ExactSizeIterator<Item = (C, u64)>,
        queue: &mut Queue<C>,
    ) -> usize {
        let mut visits = events.len();
        let (limit, root) = (self.limit, self.root);
        let mut left = match &mut self.top {
            Some(top) => enter_top::<C, WEIGHTED>(events, top, self.step, limit, root, queue),
            None => enter_root::<C, WEIGHTED>(events, root, queue),
        };
        while left > 0 {
            visits += left;
            left = self.take_step::<WEIGHTED>(left, queue);
            self.finish_careful(queue);
        }
        visits
    }

    /// One step down for the first `len` events of the queue; how many are left.
    fn take_step<const WEIGHTED: bool>(&mut self, len: usize, queue: &mut Queue<C>) -> usize {
        let (step, limit) = (self.step, self.limit);
        let (lines, starts) = (&mut self.arena.lines[..], &self.arena.starts[..]);
        let digits = C::from_low(1 << step);
        let (codes, slots) = (&mut queue.codes[..], &mut queue.slots[..]);
        let weights = &mut queue.weights[..];
        let mut left = 0;
        for i in 0..len {
            let (code, slot) = (codes[i], slots[i]);
            let weight = if WEIGHTED { weights[i] } else { 1 };
            let node = index_of(slot) as usize;
            if !is_reference(slot) || node >= starts.len() {
                queue.careful.push((code, weight));
                continue;
            }
            let digit = code.xor(starts[node]).shr_within(level_of(slot) * step);
            if digit >= digits {
                queue.careful.push((code, weight));
                continue;
            }
            let Line(line) = &mut lines[node];
            let counter = &mut line[digit.low() as usize & 15];
            let fits = raise(counter, weight, limit);
            codes[left] = code;
            slots[left] = *counter;
            if WEIGHTED {
                weights[left] = weight;
            }
            left += usize::from(!fits);
        }
        left
    }

    fn finish_careful(&mut self, queue: &mut Queue<C>) {
        for &(code, weight) in &queue.careful {
            self.insert(code, weight);
        }
        queue.careful.clear();
    }
}

/// Adds to a slot if that is a count and stays within `limit`. References are above every limit.
#[inline(always)]
fn raise(counter: &mut u32, weight: u64, limit: u32) -> bool {
    let sum = u64::from(*counter).saturating_add(weight);
    let fits = sum <= u64::from(limit);
    *counter = if fits { sum as u32 } else { *counter };
    fits
}

fn enter_top<C: Code, const WEIGHTED: bool>(
    events: impl ExactSizeIterator<Item = (C, u64)>,
    top: &mut Top<C>,
    step: u32,
    limit: u32,
    root: u32,
    queue: &mut Queue<C>,
) -> usize {
    let len = events.len();
    let (codes, slots) = (&mut queue.codes[..len], &mut queue.slots[..len]);
    let weights = &mut queue.weights[..len];
    let (start, shift, size) = (top.start, top.level * step, C::from_low(1 << Top::<C>::BITS));
    let mut left = 0;
    for (code, weight) in events {
        let digit = code.xor(start).shr_within(shift);
        codes[left] = code;
        if WEIGHTED {
            weights[left] = weight;
        }
        if digit >= size {
            slots[left] = root;
            left += 1;
            continue;
        }
        let counter = &mut top.slots[digit.low() as usize & Top::<C>::MASK as usize];
        let fits = raise(counter, weight, limit);
        slots[left] = *counter;
        left += usize::from(!fits);
    }
    left
}

fn enter_root<C: Code, const WEIGHTED: bool>(
    events: impl ExactSizeIterator<Item = (C, u64)>,
    root: u32,
    queue: &mut Queue<C>,
) -> usize {
    let len = events.len();
    for (i, (code, weight)) in events.enumerate() {
        queue.codes[i] = code;
        queue.slots[i] = root;
        if WEIGHTED {
            queue.weights[i] = weight;
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_never_raised() {
        let mut slot = super::super::slot::reference(0, 0);
        let before = slot;
        assert!(!raise(&mut slot, 1, u32::MAX >> 1));
        assert_eq!(slot, before);
        let mut count = 4;
        assert!(raise(&mut count, 3, 7) && count == 7);
        assert!(!raise(&mut count, 1, 7) && count == 7);
        assert!(!raise(&mut count, u64::MAX, 7) && count == 7);
    }
}
