//! The table of digrams: where each pair of neighbouring symbols stands, once.
//!
//! A slot is four bytes: the node where the pair begins, and of the pair's hash what there is room for beside it. The pair
//! itself is read from the nodes, which a hit needs anyway; a foreign tag is passed over without looking. Programs that
//! hardly repeat themselves are bound by how much of the table fits in the cache, so its size matters more than anything.
//!
//! Nothing is removed. An entry counts only while its pair stands at its node, so one whose pair is gone answers nothing,
//! and is left behind when the table is next made anew. Removing would read a line of the table for each pair that goes,
//! and to close the hole the nodes of all entries behind it.

use super::arena::{Arena, Sym};

/// Tag in the high bits, node + 1 in the low; 0 is empty.
type Slot = u32;

#[derive(Debug)]
pub(super) struct Digrams {
    slots: Vec<Slot>,
    /// Entries, those that answer nothing included.
    taken: usize,
    shift: u32,
    /// How many bits of a slot are the node.
    node_bits: u32,
}

const SMALLEST: usize = 1 << 10;
const LEAST_NODE_BITS: u32 = 20;

/// Multiplies both halves into each other: runs of neighbouring numbers, which interning produces, spread well.
#[inline(always)]
fn hash(a: Sym, b: Sym) -> u32 {
    let x = (u64::from(a.0) << 32 | u64::from(b.0)) ^ 0x9e37_79b9_7f4a_7c15;
    let wide = u128::from(x) * 0xd6e8_feb8_6659_fd93_u128;
    ((wide >> 64) as u64 ^ wide as u64) as u32
}

/// The answer to a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The pair stands nowhere else, and is noted at the node given.
    Here,
    /// It begins at this other node.
    At(u32),
}

impl Digrams {
    pub(super) fn new() -> Digrams {
        let shift = 32 - SMALLEST.trailing_zeros();
        Digrams { slots: vec![0; SMALLEST], taken: 0, shift, node_bits: LEAST_NODE_BITS }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.taken = 0;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    #[inline(always)]
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline(always)]
    fn slot(&self, hash: u32, node: u32) -> Slot {
        hash << self.node_bits | (node + 1)
    }

    #[inline(always)]
    fn node(&self, slot: Slot) -> u32 {
        (slot & ((1 << self.node_bits) - 1)) - 1
    }

    /// Where the pair stands other than at `node`; notes `node` as its place if it stands nowhere else. The pair need not
    /// be linked at `node` yet.
    #[inline]
    pub(super) fn find_or_insert(&mut self, arena: &Arena, a: Sym, b: Sym, node: u32) -> Found {
        // Before the search: the pair at `node` may not be linked yet, and would be left behind.
        if self.taken * 4 >= self.slots.len() * 3 || (node + 1) >> self.node_bits != 0 {
            self.renew(arena);
        }
        let hash = hash(a, b);
        let wanted = self.slot(hash, node);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        // Where to note it: an entry with its tag that answers nothing, or the end of the search.
        let mut place = None;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                break;
            }
            if (slot ^ wanted) >> self.node_bits == 0 {
                let n = self.node(slot);
                if n != node && arena.sym(n) == a && arena.sym(arena.next(n)) == b {
                    return Found::At(n);
                }
                // Noted here from a time when the pair stood here before: it may be noted elsewhere too. Pairs that come
                // and go would fill the table with entries of the same tag, so these are used again.
                if place.is_none() && (n == node || !self.stands(arena, slot)) {
                    place = Some(at & mask);
                }
            }
            at += 1;
        }
        self.taken += usize::from(place.is_none());
        self.slots[place.unwrap_or(at & mask)] = wanted;
        Found::Here
    }

    /// Whether a pair that this entry may be for stands at its node.
    fn stands(&self, arena: &Arena, slot: Slot) -> bool {
        let n = self.node(slot);
        let (a, b) = (arena.sym(n), arena.sym(arena.next_or_self(n)));
        a.pairs() && b.pairs() && self.slot(hash(a, b), n) == slot
    }

    /// Brings the slots of the pairs of neighbours in `symbols` into the cache. Plain loads that do not depend on each
    /// other: the processor has many of them under way at once.
    pub(super) fn touch(&self, before: Option<u32>, symbols: &[u32]) {
        let mask = self.slots.len() - 1;
        let mut left = before.unwrap_or(0);
        let mut any = 0;
        for right in symbols {
            any |= self.slots[self.home(hash(Sym(left), Sym(*right))) & mask];
            left = *right;
        }
        std::hint::black_box(any);
    }

    /// Where the pair stands, without noting anything.
    pub(super) fn find(&self, arena: &Arena, a: Sym, b: Sym) -> Option<u32> {
        let hash = hash(a, b);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return None;
            }
            let n = self.node(slot);
            if (slot ^ self.slot(hash, n)) == 0 && arena.sym(n) == a && arena.sym(arena.next(n)) == b {
                return Some(n);
            }
            at += 1;
        }
    }

    /// Makes the table anew without what answers nothing any more: as large as before if that was much.
    #[cold]
    fn renew(&mut self, arena: &Arena) {
        // In the order of the old slots, which is nearly that of the new ones.
        let stands = |slot: &&Slot| **slot != 0 && self.stands(arena, **slot);
        let kept: Vec<u32> = self.slots.iter().filter(stands).map(|slot| self.node(*slot)).collect();
        let slots = if kept.len() * 2 > self.slots.len() { self.slots.len() * 2 } else { self.slots.len() };
        let bits = usize::BITS - (2 * arena.nodes.len() + 1).leading_zeros();
        self.node_bits = bits.clamp(LEAST_NODE_BITS, u32::BITS - 1);
        self.shift = 32 - slots.trailing_zeros();
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.taken = 0;
        for n in kept {
            self.insert(hash(arena.sym(n), arena.sym(arena.next(n))), n);
        }
    }

    fn insert(&mut self, hash: u32, node: u32) {
        let wanted = self.slot(hash, node);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        while ![0, wanted].contains(&self.slots[at & mask]) {
            at += 1;
        }
        self.taken += usize::from(self.slots[at & mask] == 0);
        self.slots[at & mask] = wanted;
    }
}
