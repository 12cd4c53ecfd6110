//! Whether a snapshot is one: its fields are public and it travels in files, so that it is checked before it is trusted.

use crate::key::Key;
use crate::range::Range;
use crate::snapshot::Snapshot;
use crate::tree::MergeError;
use std::cmp::Reverse;

impl<K: Key> Snapshot<K> {
    /// Checks that every node is a range of a tree with this branching factor and has a count, that they are in preorder
    /// without repetition, and that the counts add up to `events`.
    pub fn check(&self) -> Result<(), MergeError> {
        self.config.validate().map_err(MergeError::Config)?;
        let place = |range: &Range<K>| (range.start(), Reverse(range.free_bits()));
        let mut sum = 0u64;
        for (index, node) in self.nodes.iter().enumerate() {
            let in_order = index == 0 || place(&self.nodes[index - 1].range) < place(&node.range);
            let free_bits = node.range.free_bits();
            let is_level = free_bits == K::BITS || free_bits.is_multiple_of(self.config.branching.bits());
            if node.own == 0 || !in_order || !is_level || !node.range.is_aligned() {
                return Err(MergeError::Range(index));
            }
            sum = sum.checked_add(node.own).ok_or(MergeError::Events)?;
        }
        if sum == self.events { Ok(()) } else { Err(MergeError::Events) }
    }
}
