//! From what the tree holds to the paper's nodes: light ranges are merged into their parent (section 2.2).
//!
//! Lines are finer than the paper's levels. A batch of merges only frees whole lines; the rest of the merge, which decides
//! what counts as a node, is done here on the list of ranges, when a snapshot or a node count is asked for. A leaf goes
//! into its parent when the parent then still holds no more than the threshold; lightest first, and only where that
//! saves a node.

use super::items::Item;
use crate::code::Code;

/// What ranges can be: multiples of the branching factor's bits free, or everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub key_bits: u32,
    /// Bits per level of the paper's tree.
    pub branch_bits: u32,
}

impl Levels {
    /// The smallest range of the tree with at least `bits` free bits.
    fn round_up(self, bits: u32) -> u32 {
        bits.next_multiple_of(self.branch_bits).min(self.key_bits)
    }

    /// Free bits of the children of a range with `bits` free bits.
    fn below(self, bits: u32) -> u32 {
        (bits - 1) / self.branch_bits * self.branch_bits
    }
}

/// Free bits of the smallest range of the tree around all `items` (in preorder, at least one).
pub(super) fn common_bits<C: Code>(items: &[Item<C>], levels: Levels) -> u32 {
    let (first, last) = (&items[0], &items[items.len() - 1]);
    let apart = first.start.xor(last.start).bit_length();
    levels.round_up(apart.max(first.free_bits).max(last.free_bits))
}

/// The parts of `items` in each child of the range with `bits` free bits.
pub(super) fn children<C: Code>(
    items: &[Item<C>],
    bits: u32,
    levels: Levels,
) -> impl Iterator<Item = &[Item<C>]> {
    let below = levels.below(bits);
    items.chunk_by(move |a, b| a.start.xor(b.start).shr_within(below) == C::ZERO)
}

/// Merges what fits under `cap`, and returns what is left, in preorder.
pub(super) fn fold<C: Code>(items: &[Item<C>], levels: Levels, cap: u64) -> Vec<Item<C>> {
    let mut folded = Vec::with_capacity(items.len());
    if !items.is_empty() {
        fold_into(items, levels, cap, &mut folded);
        folded.retain(|item| item.count > 0);
    }
    folded
}

/// Appends the merged `items` to `out`, absorbed ones with count 0. Returns the one that is left, if it is one only.
fn fold_into<C: Code>(items: &[Item<C>], levels: Levels, cap: u64, out: &mut Vec<Item<C>>) -> Option<usize> {
    let parent = out.len();
    if let [single] = items {
        out.push(*single);
        return Some(parent);
    }
    let free_bits = common_bits(items, levels);
    let has_parent = items[0].free_bits == free_bits;
    let below = if has_parent {
        out.push(items[0]);
        &items[1..]
    } else {
        out.push(Item { start: items[0].start.shr(free_bits).shl(free_bits), free_bits, count: 0 });
        items
    };
    let mut leaves = [0; 16];
    let (mut leaf_count, mut all_leaves) = (0, true);
    for part in children(below, free_bits, levels) {
        match fold_into(part, levels, cap, out) {
            Some(leaf) => {
                leaves[leaf_count] = leaf;
                leaf_count += 1;
            }
            None => all_leaves = false,
        }
    }
    let absorbed = absorb(&mut leaves[..leaf_count], parent, has_parent, cap, out);
    (all_leaves && absorbed == leaf_count).then_some(parent)
}

/// Merges the lightest leaves into `parent` as far as `cap` allows; how many.
fn absorb<C: Code>(
    leaves: &mut [usize],
    parent: usize,
    has_parent: bool,
    cap: u64,
    out: &mut [Item<C>],
) -> usize {
    let room = cap.saturating_sub(out[parent].count);
    if leaves.iter().all(|&leaf| out[leaf].count > room) {
        return 0;
    }
    leaves.sort_unstable_by_key(|&leaf| out[leaf].count);
    let mut total = out[parent].count;
    let fits = leaves.iter().take_while(|&&leaf| {
        total = total.saturating_add(out[leaf].count);
        total <= cap
    });
    let fits = fits.count();
    if fits < 2 && !has_parent {
        return 0;
    }
    for &leaf in &leaves[..fits] {
        let count = std::mem::take(&mut out[leaf].count);
        out[parent].count += count;
    }
    fits
}

/// The most that ranges of more than one value hold along one path: the largest error of any range's count.
pub(super) fn heaviest_path<C: Code>(items: &[Item<C>]) -> u64 {
    let mut path: Vec<(Item<C>, u64)> = Vec::new();
    let mut heaviest = 0;
    for item in items.iter().filter(|item| item.free_bits > 0) {
        while path.last().is_some_and(|(above, _)| above.start.xor(item.start).bit_length() > above.free_bits)
        {
            path.pop();
        }
        let above = path.last().map_or(0, |&(_, sum)| sum);
        let sum = item.count.saturating_add(above);
        heaviest = heaviest.max(sum);
        path.push((*item, sum));
    }
    heaviest
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: Levels = Levels { key_bits: 64, branch_bits: 2 };

    fn item(start: u64, free_bits: u32, count: u64) -> Item<u64> {
        Item { start, free_bits, count }
    }

    #[test]
    fn light_siblings_become_their_parent() {
        let items = [item(0, 0, 1), item(1, 0, 2), item(2, 0, 50), item(1 << 40, 0, 9)];
        assert_eq!(fold(&items, FOUR, 10), [item(0, 2, 3), item(2, 0, 50), item(1 << 40, 0, 9)]);
        assert_eq!(fold(&items, FOUR, 0), items);
        assert_eq!(fold(&items, FOUR, 100), [item(0, 42, 62)]);
    }

    #[test]
    fn a_lone_leaf_keeps_its_precision() {
        let items = [item(7, 0, 1)];
        assert_eq!(fold(&items, FOUR, 10), items);
        let items = [item(0, 4, 1), item(7, 0, 1)];
        assert_eq!(fold(&items, FOUR, 10), [item(0, 4, 2)]);
    }

    #[test]
    fn thin_roots_are_respected() {
        let eight = Levels { key_bits: 64, branch_bits: 3 };
        let items = [item(1, 0, 1), item(1 << 63, 0, 1)];
        assert_eq!(fold(&items, eight, 10), [item(0, 64, 2)]);
        assert_eq!(eight.below(64), 63);
        assert_eq!(FOUR.below(64), 62);
    }

    #[test]
    fn heaviest_path_leaves_single_values_out() {
        let items = [item(0, 64, 5), item(0, 8, 7), item(3, 0, 100), item(0x100, 8, 9)];
        assert_eq!(heaviest_path(&items), 14);
    }
}
