//! When thresholds change and merge batches come (paper section 2.3), and what gives when memory runs out.

use super::Tree;
use super::items::Item;
use super::stats::Sample;
use crate::config::Config;
use crate::key::Key;

/// Each time memory runs out with nothing light enough to merge, the threshold grows by this factor.
const STRAIN_STEP: f64 = 1.5;
/// A merge for want of memory goes on until this share of all lines is free.
const ROOM_SHARE: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// The split threshold's share of all events: `eps / log_b(R)`.
    share: f64,
    /// The threshold is never below this; raised when memory runs out. Not a higher share: what memory forces while there
    /// are few events would then be paid for ever, though later events would need far less of it.
    floor: u64,
    merge_ratio: f64,
    next_merge: u64,
    /// The threshold of the last merge batch: it decides which ranges are nodes.
    pub merge_threshold: u64,
    /// Whether memory allows the wide top.
    has_top: bool,
}

impl Schedule {
    pub fn new(config: &Config, key_bits: u32, has_top: bool) -> Self {
        Schedule {
            share: config.eps / f64::from(config.branching.levels(key_bits)),
            floor: 0,
            merge_ratio: config.merge_ratio,
            next_merge: config.first_merge,
            merge_threshold: 0,
            has_top,
        }
    }

    fn threshold(&self, events: u64) -> u64 {
        ((self.share * events as f64) as u64).max(self.floor)
    }

    /// The next batch is due when the events have grown by the merge ratio. Not found by stepping from batch to batch: a
    /// single weight may pass very many of them when the ratio is close to 1.
    fn advance(&mut self, events: u64) {
        let next = (events as f64 * self.merge_ratio).ceil() as u64;
        self.next_merge = next.max(events.saturating_add(1));
    }
}

impl<K: Key> Tree<K> {
    /// To be called after every block: brings threshold and tree up to the events so far. Those still in the
    /// front are among them: the bound is a share of all events, and queries flush the front first.
    #[inline]
    pub(super) fn keep_schedule(&mut self) {
        self.core.set_threshold(self.schedule.threshold(self.events));
        if self.events >= self.schedule.next_merge {
            self.merge_batch();
            self.schedule.advance(self.events);
        }
        if self.core.starved {
            self.make_room();
        }
    }

    /// Merges everything that is light by now, and moves the top where the events are.
    pub(super) fn merge_batch(&mut self) {
        self.fingers.forget();
        self.sample(&self.core.items());
        self.schedule.merge_threshold = self.core.threshold;
        self.stats.merges += self.core.merge_light_nodes();
        self.stats.merge_batches += 1;
        self.stats.splits = self.core.splits;
        let items = self.core.items();
        if self.schedule.has_top {
            self.core.settle_top(&items);
        }
        self.sample(&items);
    }

    fn sample(&mut self, items: &[Item<K::Code>]) {
        let nodes = self.fold(items).len() as u64;
        self.nodes_max = self.nodes_max.max(nodes);
        self.stats.push(Sample { events: self.events, nodes });
    }

    /// Merges harder and harder until an eighth of the lines is free: precision is what gives, and `eps_effective` tells.
    fn make_room(&mut self) {
        self.fingers.forget();
        loop {
            self.stats.merges += self.core.merge_light_nodes();
            let (used, lines) = (self.core.arena.used(), self.core.arena.lines.len());
            if used == 0 || lines - used > lines / ROOM_SHARE {
                break;
            }
            let raised = (self.core.threshold as f64 * STRAIN_STEP) as u64;
            self.schedule.floor = raised.max(self.core.threshold.saturating_add(1));
            self.core.set_threshold(self.schedule.floor);
        }
        self.schedule.merge_threshold = self.schedule.merge_threshold.max(self.core.threshold);
        self.core.starved = false;
    }
}
