//! The table of digrams: where each pair of neighbouring symbols stands, once.
//!
//! Open addressing with linear probing; a slot is the pair's 32-bit hash and the node where the pair begins. The pair
//! itself is read from the nodes, which a hit needs anyway; a foreign hash is passed over without looking. Removal moves
//! later entries back, so there are no tombstones and the table need not be rebuilt.

use super::arena::{Arena, Sym};

/// Hash in the high half, node + 1 in the low; 0 is empty.
type Slot = u64;

#[derive(Debug)]
pub(super) struct Digrams {
    slots: Vec<Slot>,
    len: usize,
    shift: u32,
}

const SMALLEST: usize = 1 << 10;

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
    /// The pair was not there and now stands for the node given.
    Inserted,
    /// It begins at this node.
    At(u32),
}

impl Digrams {
    pub(super) fn new() -> Digrams {
        Digrams { slots: vec![0; SMALLEST], len: 0, shift: 32 - SMALLEST.trailing_zeros() }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
        self.len = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Where the pair stands; notes `node` as its place if it stands nowhere. The pair need not be linked at `node` yet.
    #[inline]
    pub(super) fn find_or_insert(&mut self, arena: &Arena, a: Sym, b: Sym, node: u32) -> Found {
        let hash = hash(a, b);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                break;
            }
            if (slot >> 32) as u32 == hash {
                let n = slot as u32 - 1;
                if arena.sym(n) == a && arena.sym(arena.next(n)) == b {
                    return Found::At(n);
                }
            }
            at += 1;
        }
        self.slots[at & mask] = u64::from(hash) << 32 | u64::from(node + 1);
        self.len += 1;
        if self.len * 8 > self.slots.len() * 5 {
            self.grow();
        }
        Found::Inserted
    }

    /// Where the pair stands, without noting anything.
    pub(super) fn find(&self, arena: &Arena, a: Sym, b: Sym) -> Option<u32> {
        let hash = hash(a, b);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> self.shift) as usize;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return None;
            }
            let n = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == hash && arena.sym(n) == a && arena.sym(arena.next(n)) == b {
                return Some(n);
            }
            at += 1;
        }
    }

    /// Forgets that the pair stands at `node`; false if it is noted elsewhere or not at all.
    #[inline]
    pub(super) fn remove(&mut self, a: Sym, b: Sym, node: u32) -> bool {
        let wanted = u64::from(hash(a, b)) << 32 | u64::from(node + 1);
        let mask = self.slots.len() - 1;
        let mut at = (wanted >> 32) as usize >> self.shift;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return false;
            }
            if slot == wanted {
                self.close(at & mask);
                return true;
            }
            at += 1;
        }
    }

    /// Empties a slot and moves back what was displaced past it.
    fn close(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let home = (slot >> 32) as usize >> self.shift;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
        self.len -= 1;
    }

    #[cold]
    fn grow(&mut self) {
        let double = vec![0; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, double);
        self.shift -= 1;
        let mask = self.slots.len() - 1;
        for slot in old.into_iter().filter(|s| *s != 0) {
            let mut at = (slot >> 32) as usize >> self.shift;
            while self.slots[at & mask] != 0 {
                at += 1;
            }
            self.slots[at & mask] = slot;
        }
    }
}
