//! What one 32-bit slot says: a count, or which node counts its sub-ranges.
//!
//! Sixteen slots fill one cache line, so one memory access takes an event four bits further down. A slot of eight bytes
//! would be simpler (no spilling of large counts) but doubles the lines touched; see the design page.

/// Set in a slot that refers to a node.
const REF: u32 = 1 << 31;
const LEVEL_SHIFT: u32 = 24;
const INDEX_MASK: u32 = (1 << LEVEL_SHIFT) - 1;

/// The largest count that fits a slot.
pub(super) const COUNT_MAX: u32 = REF - 1;
/// The index that stands for the wide top instead of a line.
pub(super) const TOP: u32 = INDEX_MASK;
/// The "node" whose only slot is the root.
pub(super) const ROOT: u32 = u32::MAX;
/// Lines that can be told apart.
pub(super) const LINES_MAX: usize = INDEX_MASK as usize;

/// A reference to node `index`, whose slots are at `level` (7 bits).
#[inline(always)]
pub(super) fn reference(level: u32, index: u32) -> u32 {
    debug_assert!(level < 128 && index <= INDEX_MASK);
    REF | level << LEVEL_SHIFT | index
}

/// Whether a slot refers to a node.
#[inline(always)]
pub(super) fn is_reference(slot: u32) -> bool {
    slot & REF != 0
}

/// The node that a slot refers to.
#[inline(always)]
pub(super) fn index_of(slot: u32) -> u32 {
    slot & INDEX_MASK
}

/// The level of the slots of the node that a slot refers to.
#[inline(always)]
pub(super) fn level_of(slot: u32) -> u32 {
    slot >> LEVEL_SHIFT & 0x7f
}

/// Where a slot is: digit `digit` of node `node` (a line's index, [`TOP`] or [`ROOT`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub node: u32,
    pub digit: u32,
}

/// The slot for the whole key space.
pub(super) const ROOT_PLACE: Place = Place { node: ROOT, digit: 0 };
