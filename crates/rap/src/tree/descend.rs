//! Many events at once: the tree is descended level by level for a whole block, without a branch that depends on the data.
//!
//! One event at a time mispredicts where its path ends, about once per event on a skewed stream. Here each pass takes one
//! step for every event of a queue: the slot is stored back, raised or not, and the event stays queued or not. What needs
//! more than raising a slot (a split, an edge that leads elsewhere) goes to the careful path of `core`.

use std::hint::select_unpredictable;

use super::arena::{Head, Line};
use super::core::Core;
use super::slot::{index_of, is_reference, level_of};
use super::top::Top;
use crate::code::Code;

/// The top is flat while at most one event in so many goes on below it.
const FLAT: usize = 16;

/// Events under way: their codes, the slot that each has come to, and their weights.
#[derive(Debug, Default)]
pub(super) struct Queue<C> {
    codes: Vec<C>,
    slots: Vec<u32>,
    weights: Vec<u64>,
    /// Events for the careful path.
    careful: Vec<(C, u64)>,
}

/// A queue's parts as separate arguments: only so does the compiler know that they do not overlap and keeps their
/// addresses in registers instead of loading them again for every event.
struct Passing<'a, C> {
    codes: &'a mut [C],
    slots: &'a mut [u32],
    weights: &'a mut [u64],
    careful: &'a mut Vec<(C, u64)>,
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

    fn parts(&mut self, len: usize) -> Passing<'_, C> {
        Passing {
            codes: &mut self.codes[..len],
            slots: &mut self.slots[..len],
            weights: &mut self.weights[..len],
            careful: &mut self.careful,
        }
    }

    pub fn bytes(&self) -> usize {
        self.len() * (size_of::<C>() + size_of::<u32>() + size_of::<u64>())
            + self.careful.capacity() * size_of::<(C, u64)>()
    }
}

impl<C: Code> Core<C> {
    /// Counts a block of single events, at most as many as the queue holds. Returns the slots visited.
    pub fn count_single<E>(&mut self, events: &[E], code: impl Fn(&E) -> C, queue: &mut Queue<C>) -> usize {
        self.count::<false, E>(events, |event| (code(event), 1), queue)
    }

    /// Counts a block of weighted events, at most as many as the queue holds. Returns the slots visited.
    pub fn count_weighted<E>(
        &mut self,
        events: &[E],
        code_and_weight: impl Fn(&E) -> (C, u64),
        queue: &mut Queue<C>,
    ) -> usize {
        self.count::<true, E>(events, code_and_weight, queue)
    }

    fn count<const WEIGHTED: bool, E>(
        &mut self,
        events: &[E],
        read: impl Fn(&E) -> (C, u64),
        queue: &mut Queue<C>,
    ) -> usize {
        let mut visits = events.len();
        let mut left = self.enter::<WEIGHTED, E>(events, read, queue.parts(visits));
        self.top_is_flat = left * FLAT <= visits;
        while left > 0 {
            visits += left;
            let arena = &mut self.arena;
            let passing = queue.parts(left);
            let (lines, heads) = (&mut arena.lines[..], &mut arena.heads[..]);
            left = match self.step {
                4 => take_step::<C, WEIGHTED, 4>(passing, lines, heads, self.limit),
                _ => take_step::<C, WEIGHTED, 3>(passing, lines, heads, self.limit),
            };
            self.finish_careful(queue);
        }
        visits
    }

    fn enter<const WEIGHTED: bool, E>(
        &mut self,
        events: &[E],
        read: impl Fn(&E) -> (C, u64),
        passing: Passing<'_, C>,
    ) -> usize {
        let root = self.root;
        match &mut self.top {
            Some(top) => {
                let entry = Entry { start: top.start, shift: top.level * self.step, limit: self.limit, root };
                if self.top_is_flat {
                    enter_flat_top::<C, E, WEIGHTED>(events, read, &mut top.slots, entry, passing)
                } else {
                    enter_top::<C, E, WEIGHTED>(events, read, &mut top.slots, entry, passing)
                }
            }
            None => enter_root::<C, E, WEIGHTED>(events, read, root, passing),
        }
    }

    fn finish_careful(&mut self, queue: &mut Queue<C>) {
        for &(code, weight) in &queue.careful {
            self.insert(code, weight);
        }
        queue.careful.clear();
    }
}

/// One step down for every event of the queue; how many are left.
#[inline(never)]
fn take_step<C: Code, const WEIGHTED: bool, const STEP: u32>(
    passing: Passing<'_, C>,
    lines: &mut [Line],
    heads: &mut [Head<C>],
    limit: u32,
) -> usize {
    let Passing { codes, slots, weights, careful } = passing;
    let len = codes.len();
    assert!(lines.len() == heads.len() && slots.len() == len && weights.len() == len);
    let mut left = 0;
    for i in 0..len {
        // SAFETY: `i < len`, the length of all three.
        let (code, slot, weight) = unsafe {
            let weight = if WEIGHTED { *weights.get_unchecked(i) } else { 1 };
            (*codes.get_unchecked(i), *slots.get_unchecked(i), weight)
        };
        let node = index_of(slot) as usize;
        if !is_reference(slot) || node >= heads.len() {
            set_aside(careful, code, weight);
            continue;
        }
        // SAFETY: `node` was just checked, and there are as many lines as heads.
        let (head, Line(line)) = unsafe { (heads.get_unchecked_mut(node), lines.get_unchecked_mut(node)) };
        let digit = code.xor(head.start).shr_within(level_of(slot) * STEP);
        // Beside the line's range an event belongs to the edge. Which it is cannot be predicted: cold values next to a
        // hot one share its edge.
        let inside = digit < C::from_low(1 << STEP);
        let counter = select_unpredictable(inside, &mut line[digit.low() as usize & 15], &mut head.parked);
        let (slot, fits) = raise::<WEIGHTED>(counter, weight, limit);
        // SAFETY: `left` has grown by at most one per event before this one: it is at most `i`.
        unsafe {
            *codes.get_unchecked_mut(left) = code;
            *slots.get_unchecked_mut(left) = slot;
            if WEIGHTED {
                *weights.get_unchecked_mut(left) = weight;
            }
        }
        left += usize::from(!fits);
    }
    left
}

#[cold]
#[inline(never)]
fn set_aside<C: Code>(careful: &mut Vec<(C, u64)>, code: C, weight: u64) {
    careful.push((code, weight));
}

/// Adds to a slot if that is a count and stays within `limit`: the slot before, and whether it was raised. References are
/// above every limit.
#[inline(always)]
fn raise<const WEIGHTED: bool>(counter: &mut u32, weight: u64, limit: u32) -> (u32, bool) {
    let slot = *counter;
    if WEIGHTED {
        let fits = u64::from(slot).saturating_add(weight) <= u64::from(limit);
        // A mask: written as a choice it is compiled to a branch.
        *counter = slot + (weight as u32 & u32::from(fits).wrapping_neg());
        (slot, fits)
    } else {
        let fits = slot < limit;
        *counter = slot + u32::from(fits);
        (slot, fits)
    }
}

/// What the passes through the top need to know.
#[derive(Clone, Copy)]
struct Entry<C> {
    /// The top's first code, and how far a code is shifted to give a slot.
    start: C,
    shift: u32,
    limit: u32,
    /// Where codes beside the top go on.
    root: u32,
}

type TopSlots = [u32; 1 << 12];

#[inline(never)]
fn enter_top<C: Code, E, const WEIGHTED: bool>(
    events: &[E],
    read: impl Fn(&E) -> (C, u64),
    top: &mut TopSlots,
    entry: Entry<C>,
    passing: Passing<'_, C>,
) -> usize {
    let Passing { codes, slots, weights, .. } = passing;
    let len = events.len();
    assert!(codes.len() >= len && slots.len() >= len && weights.len() >= len);
    let mut left = 0;
    for (code, weight) in events.iter().map(read) {
        let digit = code.xor(entry.start).shr_within(entry.shift);
        let (slot, stays) = if digit < C::from_low(top.len() as u64) {
            raise::<WEIGHTED>(&mut top[digit.low() as usize & Top::<C>::MASK as usize], weight, entry.limit)
        } else {
            (entry.root, false)
        };
        // SAFETY: `left` has grown by at most one per event before this one: it is below `len`.
        unsafe {
            *codes.get_unchecked_mut(left) = code;
            *slots.get_unchecked_mut(left) = slot;
            if WEIGHTED {
                *weights.get_unchecked_mut(left) = weight;
            }
        }
        left += usize::from(!stays);
    }
    left
}

/// The same for streams that nearly all stay in the top: then a predicted branch saves storing what is not needed.
#[inline(never)]
fn enter_flat_top<C: Code, E, const WEIGHTED: bool>(
    events: &[E],
    read: impl Fn(&E) -> (C, u64),
    top: &mut TopSlots,
    entry: Entry<C>,
    passing: Passing<'_, C>,
) -> usize {
    let mut left = 0;
    for (code, weight) in events.iter().map(read) {
        let digit = code.xor(entry.start).shr_within(entry.shift);
        let mut slot = entry.root;
        if digit < C::from_low(top.len() as u64) {
            let counter = &mut top[digit.low() as usize & Top::<C>::MASK as usize];
            let (before, fits) = raise::<WEIGHTED>(counter, weight, entry.limit);
            if fits {
                continue;
            }
            slot = before;
        }
        passing.codes[left] = code;
        passing.slots[left] = slot;
        passing.weights[left] = weight;
        left += 1;
    }
    left
}

fn enter_root<C: Code, E, const WEIGHTED: bool>(
    events: &[E],
    read: impl Fn(&E) -> (C, u64),
    root: u32,
    passing: Passing<'_, C>,
) -> usize {
    for (i, (code, weight)) in events.iter().map(read).enumerate() {
        passing.codes[i] = code;
        passing.slots[i] = root;
        if WEIGHTED {
            passing.weights[i] = weight;
        }
    }
    events.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::slot::reference;

    #[test]
    fn a_reference_is_never_raised() {
        let mut slot = reference(0, 0);
        assert_eq!(raise::<false>(&mut slot, 1, u32::MAX >> 1), (reference(0, 0), false));
        assert_eq!(raise::<true>(&mut slot, 1, u32::MAX >> 1), (reference(0, 0), false));
        assert_eq!(slot, reference(0, 0));
    }

    #[test]
    fn a_count_is_raised_up_to_the_limit() {
        let mut count = 4;
        assert_eq!((raise::<true>(&mut count, 3, 7), count), ((4, true), 7));
        assert_eq!((raise::<false>(&mut count, 1, 7), count), ((7, false), 7));
        assert_eq!((raise::<true>(&mut count, u64::MAX, 7), count), ((7, false), 7));
    }
}
