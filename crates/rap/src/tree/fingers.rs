//! Where keys were counted lately: most streams come back to the same neighbourhoods, and a descent that begins there
//! takes one step or two instead of one for every four bits.
//!
//! A finger points to a line that holds all keys of a neighbourhood (numbers), or to the very slot of a key (tuples, whose
//! bits then need not be interleaved). Splits and forks only put lines below or between others, so that a finger
//! stays true, if not the shortest way; when lines are merged all fingers are forgotten.

use std::hint::select_unpredictable;

use super::arena::{Head, Line};
use super::core::Core;
use super::slot::{ROOT, TOP, index_of, is_reference, level_of, reference};
use crate::code::Code;
use crate::key::Key;

/// Fingers, as a power of two: for neighbourhoods, and for single keys, of which there are more.
const NEAR: u32 = 12;
const EXACT: u32 = 14;
/// No finger: no line has this number.
const NONE: u32 = u32::MAX;
/// Bits that a line consumes: trees of another shape have no fingers.
const STEP: u32 = 4;

/// Costs in cycles, roughly; only their proportions matter. A look for a finger and the step from it, each further slot visited,
/// and what a miss costs besides its descent.
const LOOK: usize = 8;
const VISIT: usize = 5;
const MISS: usize = 20;

/// Blocks that are let pass then, at first, and at most: each time it is twice as many.
const PAUSE: u32 = 16;
const LONGEST: u32 = 1024;
/// Blocks in which fingers are made before they are judged.
const TRIAL: u32 = 16;

/// A table of fingers by neighbourhood.
#[derive(Debug)]
pub(super) struct Fingers<K> {
    /// Neighbourhoods and where they are counted: side by side, since both are looked at.
    table: Vec<(K, u32)>,
    /// Blocks that still pass by, and that are still on trial.
    pause: u32,
    trial: u32,
    /// Blocks of the next pause.
    next_pause: u32,
}

impl<K: Key> Fingers<K> {
    /// None yet; and never any, unless there are so many bytes for them.
    pub fn new(bytes: usize) -> Self {
        let most = 1 << bits::<K>();
        let len = if bytes >= most * size_of::<(K, u32)>() { most } else { 0 };
        Fingers { table: vec![(K::default(), NONE); len], pause: 0, trial: TRIAL, next_pause: PAUSE }
    }

    pub fn bytes(&self) -> usize {
        self.table.capacity() * size_of::<(K, u32)>()
    }

    /// Whether the next block is to be counted by fingers.
    pub fn are_used(&mut self) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            self.trial = TRIAL;
        }
        self.pause == 0 && !self.table.is_empty()
    }

    /// Of a block `missed` had to descend, for which they visited so many slots. Judges whether descents would have been
    /// cheaper for all, as the same streams always have it: by slots, not by the clock.
    pub fn learn(&mut self, all: usize, missed: usize, visits: usize) {
        if self.trial > 0 {
            self.trial -= 1;
            return;
        }
        let by_fingers = all * LOOK + missed * MISS + visits * VISIT;
        // Where nothing missed, there is nothing to tell what a descent takes, nor a reason to change.
        let by_descents = all * VISIT * visits / missed.max(1);
        if missed > 0 && by_fingers > by_descents {
            self.pause = self.next_pause;
            self.next_pause = (self.next_pause * 2).min(LONGEST);
        } else {
            self.next_pause = PAUSE;
        }
    }

    /// Lines are gone.
    pub fn forget(&mut self) {
        self.table.iter_mut().for_each(|finger| finger.1 = NONE);
        self.trial = TRIAL;
    }

    /// Remembers where a key is counted.
    pub fn put(&mut self, key: K, at: u32) {
        let key = key.neighbourhood();
        self.table[place(key)] = (key, at);
    }

    /// Counts what fingers point to, and leaves the rest in `missed`.
    pub fn count<C: Code>(&self, entries: &[(K, u64)], core: &mut Core<C>, missed: &mut Vec<(K, u64)>)
    where
        K: Key<Code = C>,
    {
        missed.clear();
        let (lines, heads) = (&mut core.arena.lines[..], &mut core.arena.heads[..]);
        // Arrays: so no index has to be checked.
        if K::NEAR_BITS > 0 {
            let Some(table) = self.table.first_chunk() else { return missed.extend_from_slice(entries) };
            count_near(entries, table, lines, heads, core.limit, missed);
        } else {
            let Some(table) = self.table.first_chunk() else { return missed.extend_from_slice(entries) };
            count_exact(entries, table, lines, core.limit, missed);
        }
    }
}

const fn bits<K: Key>() -> u32 {
    if K::NEAR_BITS > 0 { NEAR } else { EXACT }
}

#[inline(always)]
fn place<K: Key>(key: K) -> usize {
    (key.mix() >> (64 - bits::<K>())) as usize
}

/// Adds to a slot if that is a count and stays within `limit`. References are above every limit.
#[inline(always)]
fn raise(counter: &mut u32, weight: u64, limit: u32) -> bool {
    let light = weight >> 32 == 0;
    let fits = (u64::from(*counter) + (weight & u64::from(u32::MAX)) <= u64::from(limit)) & light;
    // A mask: written as a choice it is compiled to a branch.
    *counter += weight as u32 & u32::from(fits).wrapping_neg();
    fits
}

#[cold]
#[inline(never)]
fn miss<K: Key>(missed: &mut Vec<(K, u64)>, entry: (K, u64)) {
    missed.push(entry);
}

/// Entries that are looked at together: for all of them one table is read after the other, so that the processor waits for
/// many lines at once.
const TOGETHER: usize = 32;

/// By lines that hold a neighbourhood, and one line further down. Misses are rare, or nobody would be here.
#[inline(never)]
fn count_near<K: Key>(
    entries: &[(K, u64)],
    table: &[(K, u32); 1 << NEAR],
    lines: &mut [Line],
    heads: &mut [Head<K::Code>],
    limit: u32,
    missed: &mut Vec<(K, u64)>,
) {
    let mut at = [NONE; TOGETHER];
    for entries in entries.chunks(TOGETHER) {
        for (at, &(key, _)) in at.iter_mut().zip(entries) {
            let near = key.neighbourhood();
            let (of, finger) = table[place(near) & ((1 << NEAR) - 1)];
            *at = select_unpredictable(of == near, finger, NONE);
        }
        for (at, &(key, _)) in at.iter_mut().zip(entries) {
            if let Some(Line(line)) = lines.get(index_of(*at) as usize) {
                let slot = line[key.encode().shr_within(level_of(*at) * STEP).low() as usize & 15];
                *at = select_unpredictable(is_reference(slot), slot, *at);
            }
        }
        for (at, &(key, weight)) in at.iter().zip(entries) {
            let node = index_of(*at) as usize;
            let mut counted = false;
            if let (Some(Line(line)), Some(head)) = (lines.get_mut(node), heads.get_mut(node)) {
                let digit = key.encode().xor(head.start).shr_within(level_of(*at) * STEP);
                let inside = digit < K::Code::from_low(1 << STEP);
                let counter = &mut line[digit.low() as usize & 15];
                counted = raise(select_unpredictable(inside, counter, &mut head.parked), weight, limit);
            }
            if !counted {
                miss(missed, (key, weight));
            }
        }
    }
}

/// By slots of keys.
#[inline(never)]
fn count_exact<K: Key>(
    entries: &[(K, u64)],
    table: &[(K, u32); 1 << EXACT],
    lines: &mut [Line],
    limit: u32,
    missed: &mut Vec<(K, u64)>,
) {
    let mut at = [NONE; TOGETHER];
    for entries in entries.chunks(TOGETHER) {
        for (at, &(key, _)) in at.iter_mut().zip(entries) {
            let (of, finger) = table[place(key) & ((1 << EXACT) - 1)];
            *at = select_unpredictable(of == key, finger, NONE);
        }
        for (at, &(key, weight)) in at.iter().zip(entries) {
            let line = lines.get_mut((*at >> STEP) as usize);
            if !line.is_some_and(|Line(line)| raise(&mut line[*at as usize & 15], weight, limit)) {
                miss(missed, (key, weight));
            }
        }
    }
}

impl<C: Code> Core<C> {
    /// Counts an event as [`Core::insert`] does. The slots visited, and the finger for it: the last line on its way that
    /// holds all of its neighbourhood of `near` bits; for 0, its slot.
    pub fn insert_pointing(&mut self, code: C, weight: u64, near: u32) -> (usize, Option<u32>) {
        let (mut at, mut level) = self.start(code);
        let (mut visits, mut found) = (1, None);
        loop {
            let slot = self.slot(at);
            let next = if is_reference(slot) {
                self.follow(at, slot, code, weight)
            } else if self.fill(at, level, slot, weight) {
                let finger = if near == 0 { exact(at.node, at.digit) } else { found };
                return (visits, finger);
            } else {
                self.split(at, level, code, weight)
            };
            let Some((place, below)) = next else { return (visits, if near == 0 { None } else { found }) };
            (at, level) = (place, below);
            visits += 1;
            if at.node != TOP && at.node != ROOT && self.node_bits(level, at.node) >= near {
                found = Some(reference(level, at.node));
            }
        }
    }
}

/// A slot of a line: the number of the line must leave room for the digit.
fn exact(node: u32, digit: u32) -> Option<u32> {
    (node != TOP && node < NONE >> STEP).then_some(node << STEP | digit)
}

#[cfg(test)]
mod tests {
    use crate::config::{Buffer, Config};
    use crate::tree::Tree;

    /// A stream that comes back to the same places, moves on, and has some strays.
    fn stream(round: u64) -> Vec<(u64, u64)> {
        let key = |i: u64| match i % 7 {
            0 => 0x5000_0000_1000 + (i * i) % 4096,
            1 => 0x7000_0000_0010,
            2 => i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            3 => (3 << 48) + round * 4096 + i % 700,
            _ => 0x5000_0000_8000 + (i * 64) % 100_000,
        };
        (0..5000).map(|i| (key(i + round * 13), 1 + i % 3)).collect()
    }

    #[test]
    fn fingers_count_as_descents_do() {
        let make = || Tree::<u64>::new(Config::new().eps(0.01).buffer(Buffer::None)).unwrap();
        let (mut by_fingers, mut plain) = (make(), make());
        plain.fingers = super::Fingers::new(0);
        for round in 0..200 {
            let entries = stream(round);
            by_fingers.add_weighted_slice(&entries);
            plain.add_weighted_slice(&entries);
        }
        let (fast, slow) = (by_fingers.snapshot(), plain.snapshot());
        assert_eq!(fast.events, slow.events);
        assert_eq!(fast.eps_effective, slow.eps_effective);
        // The order of events within a block differs, and with it which of them find a range too full.
        let (few, many) = (slow.nodes.len() * 9 / 10, slow.nodes.len() * 11 / 10);
        assert!((few..=many).contains(&fast.nodes.len()), "{} and {}", fast.nodes.len(), slow.nodes.len());
    }

    #[test]
    fn pairs_too() {
        let mut tree = Tree::<[u64; 2]>::new(Config::new().eps(0.01)).unwrap();
        let mut exact = std::collections::BTreeMap::new();
        for round in 0..100 {
            let pairs: Vec<([u64; 2], u64)> =
                stream(round).into_iter().map(|(key, weight)| ([key % 61, key / 64 * 64], weight)).collect();
            pairs.iter().for_each(|(key, weight)| *exact.entry(*key).or_insert(0) += weight);
            tree.add_weighted_slice(&pairs);
        }
        let summary = tree.snapshot();
        assert_eq!(summary.events, exact.values().sum::<u64>());
        for (key, count) in exact {
            let bounds = summary.bounds(key, key);
            assert!(bounds.lower <= count && count <= bounds.upper);
            assert!((count - bounds.lower) as f64 <= summary.eps_effective * summary.events as f64 + 1.0);
        }
    }
}
