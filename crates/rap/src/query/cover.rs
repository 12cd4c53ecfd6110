//! Which ranges cover most of the stream, and how narrow they are (paper section 5.1 and figure 11).

use super::outline::{Entry, outline};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::Snapshot;
use std::cmp::Reverse;

/// A range that was chosen to cover part of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covering<K> {
    /// The range; the ranges of one answer do not overlap.
    pub range: Range<K>,
    /// Events certainly in it.
    pub total: u64,
}

/// A point of figure 11.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WidthPoint {
    /// Ranges of up to `2^log2_width` keys ...
    pub log2_width: u32,
    /// ... cover this share of all events.
    pub share: f64,
}

impl<K: Key> Snapshot<K> {
    /// Disjoint ranges that together certainly hold `share` of all events (0.5, 0.8, 0.95 in the paper), heaviest first.
    ///
    /// The narrowest width is taken for which ranges of at most that width are enough, and of those the heaviest until
    /// the share is reached. So no range is wider than the share needs, and there are few.
    pub fn covering(&self, share: f64) -> Vec<Covering<K>> {
        let needed = share.clamp(0.0, 1.0) * self.events as f64;
        let entries = outline(self);
        let mut widths: Vec<u32> = entries.iter().map(|entry| entry.free).collect();
        widths.sort_unstable();
        widths.dedup();
        let enough =
            |width: &u32| outermost(&entries, *width).map(|entry| entry.total).sum::<u64>() as f64 >= needed;
        // Wider ranges only ever cover more, so the first width that is enough can be searched by halves.
        let Some(&width) = widths.get(widths.partition_point(|width| !enough(width))) else {
            return Vec::new();
        };
        let covering = |entry: &Entry<K::Code>| Covering {
            range: Range::aligned(entry.start, entry.free),
            total: entry.total,
        };
        let mut chosen: Vec<Covering<K>> = outermost(&entries, width).map(covering).collect();
        chosen.sort_by_key(|covering| Reverse(covering.total));
        let mut covered = 0u64;
        chosen.retain(|covering| {
            let wanted = (covered as f64) < needed;
            covered += if wanted { covering.total } else { 0 };
            wanted
        });
        chosen
    }

    /// Figure 11: for each width from one key to all keys, the share of events in hot ranges (at `threshold`) no wider.
    pub fn width_coverage(&self, threshold: f64) -> Vec<WidthPoint> {
        let mut by_width = vec![0u64; K::BITS as usize + 1];
        for hot in self.hot(threshold) {
            by_width[hot.range.free_bits() as usize] += hot.own;
        }
        let all = self.events.max(1) as f64;
        let mut covered = 0;
        let mut point = |(width, own): (usize, &u64)| {
            covered += own;
            WidthPoint { log2_width: width as u32, share: covered as f64 / all }
        };
        by_width.iter().enumerate().map(&mut point).collect()
    }
}

/// The ranges of at most `2^width` keys that lie in no other such range.
fn outermost<C>(entries: &[Entry<C>], width: u32) -> impl Iterator<Item = &Entry<C>> {
    let narrow = move |entry: &Entry<C>| entry.free <= width;
    entries
        .iter()
        .filter(move |entry| narrow(entry) && !entry.parent.is_some_and(|parent| narrow(&entries[parent])))
}

#[cfg(test)]
mod tests {
    use crate::exact::ExactCounts;
    use crate::{Branching, Range, Snapshot};

    /// 40 % at one key, 30 % spread over 256 keys, 30 % over 2^20.
    fn sample() -> Snapshot<u64> {
        let mut exact = ExactCounts::<u64>::new();
        exact.add_weighted(7, 40_000);
        (0..30_000u64).for_each(|i| exact.add(0x1000 + i % 256));
        (0..30_000u64).for_each(|i| exact.add(0x1000_0000 + i * 35));
        exact.sorted().snapshot(Branching::Four)
    }

    #[test]
    fn covering_takes_the_narrowest_ranges_that_are_enough() {
        let snapshot = sample();
        assert_eq!(snapshot.covering(0.4).len(), 1);
        assert_eq!(snapshot.covering(0.4)[0].range, Range { lo: 7, hi: 7 });
        let most = snapshot.covering(0.7);
        assert!(most.iter().all(|c| c.range.free_bits() <= 8), "{most:?}");
        assert!(most.iter().map(|c| c.total).sum::<u64>() >= 70_000);
        let all = snapshot.covering(1.0);
        assert_eq!(all.iter().map(|c| c.total).sum::<u64>(), 100_000);
        assert!(ExactCounts::<u64>::new().sorted().snapshot(Branching::Four).covering(0.5).is_empty());
    }

    #[test]
    fn figure_11_rises_with_the_width() {
        let curve = sample().width_coverage(0.1);
        assert_eq!(curve.len(), 65);
        assert!(curve.windows(2).all(|w| w[0].share <= w[1].share));
        assert_eq!(curve[0].share, 0.4);
        assert!(curve[8].share >= 0.7 && curve[64].share <= 1.0);
    }
}
