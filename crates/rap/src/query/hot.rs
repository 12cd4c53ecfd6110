//! Hot ranges, by the paper's definition (section 5.1): a range is hot if its own count and the counts of all its
//! sub-ranges that are *not* hot reach the threshold. A range is not hot merely because a hot one lies in it.

use super::outline::{Entry, held_above, outline};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::Snapshot;

/// A hot range and its weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotRange<K> {
    /// The range.
    pub range: Range<K>,
    /// Events of the range without its hot sub-ranges (16.7 % for `[0, fe]` in the paper's figure 7).
    pub own: u64,
    /// Events of the range with its hot sub-ranges (13.6 + 16.7 = 30.3 %).
    pub total: u64,
    /// The true number of events in the range is at least this (it is `total`),
    pub lower: u64,
    /// and at most this.
    pub upper: u64,
    /// Hot ranges around this one.
    pub depth: usize,
    /// Index of the closest of them in the list.
    pub parent: Option<usize>,
}

impl<K: Key> Snapshot<K> {
    /// The hot ranges at `threshold` (a share of all events, 0.1 in the paper), in preorder: outer ranges before inner.
    ///
    /// At most `1 / threshold` of them. Each certainly holds at least the threshold. A range of which at least
    /// `threshold + eps_effective` lies outside the reported ranges inside it is always reported.
    pub fn hot(&self, threshold: f64) -> Vec<HotRange<K>> {
        if threshold.is_nan() {
            return Vec::new();
        }
        let entries = outline(self);
        // At least one event: with a threshold of 0 an empty range would be hot.
        let open = weights_without_hot(&entries, (threshold * self.events as f64).max(1.0));
        let above = held_above(&entries);
        let mut hot: Vec<HotRange<K>> = Vec::new();
        // For each entry, the closest hot range at or around it, by its place in `hot`.
        let mut closest: Vec<Option<usize>> = Vec::with_capacity(entries.len());
        for (index, entry) in entries.iter().enumerate() {
            let parent = entry.parent.and_then(|parent| closest[parent]);
            closest.push(if open[index].is_some() { Some(hot.len()) } else { parent });
            if let Some(own) = open[index] {
                hot.push(HotRange {
                    range: Range::aligned(entry.start, entry.free),
                    own,
                    total: entry.total,
                    lower: entry.total,
                    upper: entry.total.saturating_add(above[index]),
                    depth: parent.map_or(0, |parent| hot[parent].depth + 1),
                    parent,
                });
            }
        }
        hot
    }
}

/// For each hot entry its weight without its hot sub-ranges; `None` for the others, whose weight goes to their parents.
fn weights_without_hot<C>(entries: &[Entry<C>], needed: f64) -> Vec<Option<u64>> {
    let mut open: Vec<u64> = entries.iter().map(|entry| entry.own).collect();
    let mut hot = vec![None; entries.len()];
    for index in (0..entries.len()).rev() {
        if open[index] as f64 >= needed {
            hot[index] = Some(open[index]);
        } else if let Some(parent) = entries[index].parent {
            open[parent] = open[parent].saturating_add(open[index]);
        }
    }
    hot
}

#[cfg(test)]
mod tests {
    use crate::exact::ExactCounts;
    use crate::{Branching, Range};

    #[test]
    fn figure_7_own_and_inclusive_weights() {
        let mut exact = ExactCounts::<u32>::new();
        exact.add_weighted(0x3, 136); // Hot by itself;
        exact.add_weighted(0x23, 60); // the rest of [0, ff] only together,
        exact.add_weighted(0xa1, 107);
        exact.add_weighted(0x8000_0000, 90); // and this not at all.
        exact.add_weighted(0x4000_0000, 607);
        let hot = exact.sorted().snapshot(Branching::Sixteen).hot(0.13);
        let rows: Vec<_> = hot.iter().map(|h| (h.range.lo, h.range.hi, h.own, h.total, h.depth)).collect();
        let expected =
            [(0x0, 0xff, 167, 303, 0), (0x3, 0x3, 136, 136, 1), (0x4000_0000, 0x4000_0000, 607, 607, 0)];
        assert_eq!(rows, expected);
        assert_eq!(hot[1].parent, Some(0));
    }

    #[test]
    fn cold_parts_can_make_a_hot_whole_that_no_node_stands_for() {
        let mut exact = ExactCounts::<u64>::new();
        for key in 0..64 {
            exact.add(0x1000 + key);
        }
        let hot = exact.sorted().snapshot(Branching::Four).hot(0.5);
        assert_eq!(hot.len(), 1);
        assert_eq!(hot[0].range, Range { lo: 0x1000, hi: 0x103f });
        assert_eq!((hot[0].own, hot[0].lower, hot[0].upper), (64, 64, 64));
    }

    #[test]
    fn nothing_is_hot_in_nothing_or_at_no_threshold() {
        let empty = ExactCounts::<u64>::new().sorted().snapshot(Branching::Four);
        assert!(empty.hot(0.1).is_empty() && empty.hot(0.0).is_empty());
        let mut one = ExactCounts::<u64>::new();
        one.add(1);
        assert!(one.sorted().snapshot(Branching::Four).hot(f64::NAN).is_empty());
        assert_eq!(one.sorted().snapshot(Branching::Four).hot(0.0).len(), 1);
    }
}
