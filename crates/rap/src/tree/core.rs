//! The tree itself: counts where events belong, splits what grows too heavy (paper section 2.2).
//!
//! Physically a node has sixteen slots (eight for `b = 8`), so it stands for several of the paper's levels at once; every
//! slot is a range that the paper's tree could have. Edges may skip levels (path compression): a slot then refers to a
//! node further down, and what falls beside that node is parked on the edge. On a path no range but the last, single
//! value, ever holds more than the split threshold for itself: that is the error bound.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::arena::Arena;
use super::slot::{COUNT_MAX, Place, ROOT, ROOT_PLACE, TOP, index_of, is_reference, level_of, reference};
use super::top::Top;
use crate::code::Code;

/// Below this threshold a single value's count stays in its slot: spilling it would cost more than it saves.
const SPILL_FROM: u64 = 16;

#[derive(Debug)]
pub(super) struct Core<C> {
    /// Bits of a key.
    pub key_bits: u32,
    /// Bits that one line consumes: 4, or 3 when the branching factor is 8.
    pub step: u32,
    pub arena: Arena<C>,
    /// The slot for everything, and its large count.
    pub root: u32,
    pub root_wide: u64,
    pub top: Option<Box<Top<C>>>,
    /// Counts of ranges that no slot stands for: between the levels of a line, or inside the top. They come from
    /// absorbed snapshots and from moving the top.
    pub extras: BTreeMap<(C, Reverse<u32>), u64>,
    /// The split threshold now.
    pub threshold: u64,
    /// The same, as far as a slot can count.
    pub limit: u32,
    pub splits: u64,
    /// Whether hardly any event of the last block went below the top.
    pub top_is_flat: bool,
    /// Set when a split failed for want of memory.
    pub starved: bool,
}

impl<C: Code> Core<C> {
    /// What one entry of `extras` costs: a B-tree's nodes are at least half full.
    pub const EXTRA_BYTES: usize = 2 * size_of::<((C, Reverse<u32>), u64)>();

    pub fn new(key_bits: u32, step: u32, bytes_limit: usize) -> Self {
        Core {
            key_bits,
            step,
            arena: Arena::new(bytes_limit),
            root: 0,
            root_wide: 0,
            top: None,
            extras: BTreeMap::new(),
            threshold: 0,
            limit: 0,
            splits: 0,
            top_is_flat: false,
            starved: false,
        }
    }

    pub fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold;
        self.limit = threshold.min(COUNT_MAX.into()) as u32;
    }

    /// Keeps to `bytes` bytes, of which the top takes its part when there is to be one.
    pub fn limit_memory(&mut self, bytes: usize, has_top: bool) {
        let fixed = if has_top { Top::<C>::BYTES_MAX } else { 0 };
        self.arena.limit_bytes(bytes.saturating_sub(fixed));
    }

    pub fn bytes(&self) -> usize {
        self.arena.bytes()
            + self.top.as_ref().map_or(0, |top| top.bytes())
            + self.extras.len() * Self::EXTRA_BYTES
    }

    /// Level of the root slot.
    pub fn root_level(&self) -> u32 {
        self.key_bits.div_ceil(self.step)
    }

    /// Free bits of a range at `level`.
    pub fn free_bits(&self, level: u32) -> u32 {
        (level * self.step).min(self.key_bits)
    }

    /// Free bits of a node's whole range: its slots' and those of its digit.
    pub fn node_bits(&self, level: u32, node: u32) -> u32 {
        level * self.step + if node == TOP { Top::<C>::BITS } else { self.step }
    }

    /// The first code of a node's range.
    pub fn node_start(&self, node: u32) -> C {
        match (&self.top, node) {
            (Some(top), TOP) => top.start,
            _ => self.arena.heads[node as usize].start,
        }
    }

    /// Events parked on the edge to a node.
    pub fn parked(&self, node: u32) -> u64 {
        match (&self.top, node) {
            (Some(top), TOP) => top.parked,
            _ => self.arena.parked(node),
        }
    }

    pub fn set_parked(&mut self, node: u32, count: u64) {
        match (&mut self.top, node) {
            (Some(top), TOP) => top.parked = count,
            _ => self.arena.set_parked(node, count),
        }
    }

    pub fn park(&mut self, node: u32, count: u64) {
        self.set_parked(node, self.parked(node).saturating_add(count));
    }

    /// Where in `node` the slots at `level` count `code`.
    pub fn place(&self, node: u32, level: u32, code: C) -> Place {
        let bits = code.shr(level * self.step).low() as u32;
        let mask = if node == TOP { Top::<C>::MASK } else { (1 << self.step) - 1 };
        Place { node, digit: bits & mask }
    }

    pub fn slot(&self, at: Place) -> u32 {
        match (&self.top, at.node) {
            (_, ROOT) => self.root,
            (Some(top), TOP) => top.slots[at.digit as usize],
            _ => self.arena.lines[at.node as usize].0[at.digit as usize],
        }
    }

    pub fn set_slot(&mut self, at: Place, slot: u32) {
        match (&mut self.top, at.node) {
            (_, ROOT) => self.root = slot,
            (Some(top), TOP) => top.slots[at.digit as usize] = slot,
            _ => self.arena.lines[at.node as usize].0[at.digit as usize] = slot,
        }
    }

    pub fn wide(&self, at: Place) -> u64 {
        match (&self.top, at.node) {
            (_, ROOT) => self.root_wide,
            (Some(top), TOP) => top.wide(at.digit),
            _ => self.arena.wide(at.node, at.digit),
        }
    }

    /// Sets the part of a count that does not fit the slot. Without memory for it, the slot itself takes it after all, above
    /// the limit of the fast path; only what is more than a slot can hold is parked one range further up.
    fn set_wide(&mut self, at: Place, count: u64) {
        match (&mut self.top, at.node) {
            (_, ROOT) => self.root_wide = count,
            (Some(top), TOP) => top.set_wide(at.digit, count),
            _ if self.arena.set_wide(at.node, at.digit, count) => {}
            _ => self.hold_without_wide(at, count),
        }
    }

    fn hold_without_wide(&mut self, at: Place, count: u64) {
        if count <= COUNT_MAX.into() && self.slot(at) == 0 {
            self.set_slot(at, count as u32);
        } else {
            self.park(at.node, count);
            self.starved = true;
        }
    }

    /// Makes a slot hold a count of any size.
    pub fn set_count(&mut self, at: Place, count: u64) {
        let fits = count <= COUNT_MAX.into();
        self.set_slot(at, if fits { count as u32 } else { 0 });
        self.set_wide(at, if fits { 0 } else { count });
    }

    /// Makes a slot refer to `node`, whose parked count takes over the slot's own.
    pub fn replace_count_by_node(&mut self, at: Place, level: u32, node: u32) {
        let count = u64::from(self.slot(at)) + self.wide(at);
        self.park(node, count);
        self.set_wide(at, 0);
        self.set_slot(at, reference(level, node));
    }

    /// Where the descent for `code` can start: the top when it covers the code, else the root. With the slot's level.
    pub fn start(&self, code: C) -> (Place, u32) {
        match &self.top {
            Some(top) if top.covers(code) => (self.place(TOP, top.level, code), top.level),
            _ => (ROOT_PLACE, self.root_level()),
        }
    }

    /// Counts `weight` events: the whole weight at one range, after as many splits as that needs.
    pub fn insert(&mut self, code: C, weight: u64) {
        if weight == 0 {
            return;
        }
        let (mut at, mut level) = self.start(code);
        loop {
            let slot = self.slot(at);
            let next = if is_reference(slot) {
                self.follow(at, slot, code, weight)
            } else if self.fill(at, level, slot, weight) {
                None
            } else {
                self.split(at, level, code, weight)
            };
            match next {
                Some(place_and_level) => (at, level) = place_and_level,
                None => return,
            }
        }
    }

    /// Adds to a slot that is a count, if the range may hold that much. Single values may hold anything.
    pub fn fill(&mut self, at: Place, level: u32, slot: u32, weight: u64) -> bool {
        let wide = self.wide(at);
        let in_slot = u64::from(slot).saturating_add(weight);
        let total = wide.saturating_add(in_slot);
        let cap = if self.threshold < SPILL_FROM && level == 0 { COUNT_MAX } else { self.limit };
        if in_slot <= cap.into() && (level == 0 || wide == 0) {
            self.set_slot(at, in_slot as u32);
            return true;
        }
        // A coarse range may spill only while the slot, which the fast path fills unchecked, still fits the threshold.
        let spills = level == 0 || total <= self.threshold.saturating_sub(u64::from(COUNT_MAX));
        if spills {
            self.set_slot(at, 0);
            self.set_wide(at, total);
        }
        spills
    }

    /// Puts a new node below a slot that may not take `weight`. A weight above the threshold fits no range but its
    /// single value, so the node for that value comes at once, without the levels between.
    pub fn split(&mut self, at: Place, level: u32, code: C, weight: u64) -> Option<(Place, u32)> {
        let below = if weight > self.threshold { 0 } else { level - 1 };
        let Some(node) = self.take_node(below, code) else {
            let total = u64::from(self.slot(at)) + self.wide(at);
            self.set_count(at, total.saturating_add(weight));
            return None;
        };
        self.replace_count_by_node(at, below, node);
        Some((self.place(node, below, code), below))
    }

    /// Descends one edge, or stays on it when `code` falls beside the node and the edge may hold `weight`.
    pub fn follow(&mut self, at: Place, slot: u32, code: C, weight: u64) -> Option<(Place, u32)> {
        let (node, level) = (index_of(slot), level_of(slot));
        let bits = self.node_bits(level, node);
        let difference = code.xor(self.node_start(node)).shr(bits);
        if difference == C::ZERO {
            return Some((self.place(node, level, code), level));
        }
        if self.parked(node).saturating_add(weight) <= self.threshold {
            self.park(node, weight);
            return None;
        }
        let fork_level = (bits + difference.bit_length() - 1) / self.step;
        match self.fork(at, slot, fork_level, code) {
            Some(fork) => Some((self.place(fork, fork_level, code), fork_level)),
            None => {
                self.park(node, weight);
                None
            }
        }
    }

    /// Puts a node at `level` in the middle of the edge that `slot` at `at` is; it takes over what the edge had parked.
    pub fn fork(&mut self, at: Place, slot: u32, level: u32, code: C) -> Option<u32> {
        let old = index_of(slot);
        let fork = self.take_node(level, code)?;
        self.set_parked(fork, self.parked(old));
        self.set_parked(old, 0);
        let old_place = self.place(fork, level, self.node_start(old));
        self.set_slot(old_place, slot);
        self.set_slot(at, reference(level, fork));
        Some(fork)
    }

    pub fn take_node(&mut self, level: u32, code: C) -> Option<u32> {
        let bits = (level + 1) * self.step;
        let node = self.arena.take(code.shr(bits).shl(bits));
        self.splits += u64::from(node.is_some());
        self.starved |= node.is_none();
        node
    }
}
