//! The range-adaptive tree (paper section 2): what the crate is for.
//!
//! `Tree` joins the front (tables that combine equal events, `front`) with the core (the tree that counts and splits), and
//! keeps the schedule: thresholds, merge batches, the memory limit.

use crate::config::{Config, ConfigError};
use crate::front::{Front, Way};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::{Node, Snapshot};

mod absorb;
mod arena;
mod core;
mod descend;
mod fingers;
mod fold;
mod items;
mod merge;
mod place;
mod schedule;
mod slot;
mod stats;
#[cfg(test)]
mod tests;
mod top;

pub use absorb::MergeError;
pub use stats::{Sample, Stats};

use fold::Levels;
use items::Item;
use schedule::Schedule;

/// A tree with less memory than this for each 8 bytes of a key has neither top nor automatic front, and works in small
/// blocks: these take two thirds of it, and lines need the rest.
const ROOMY: usize = 320 << 10;
/// Fingers take at most so large a part of a limit.
const FINGERS_SHARE: usize = 6;
/// Events handled at once; small enough for what is under way to stay in the first-level cache.
const BLOCK: usize = 1024;
const SMALL_BLOCK: usize = 16;
/// A run of one key is taken as one weighted event from this length on.
const RUN: usize = 256;

/// A range-adaptive tree over keys of type `K` (paper section 2).
///
/// Guarantee: at every moment, for every aligned range, the sum of the counts inside it is a lower bound of its events
/// and misses at most `eps * n`. Memory is bounded by `eps` alone, whatever the stream.
///
/// Counts beyond `u64::MAX` saturate.
///
/// ```
/// use sonde_rap::{Config, Tree};
///
/// let mut tree = Tree::<u64>::new(Config::new().eps(0.01))?;
/// tree.add_slice(&[0x40_1000, 0x40_1004, 0x40_1000]);
/// tree.add_weighted(0x7f00_0000, 5);
/// let summary = tree.snapshot();
/// assert_eq!(summary.events, 8);
/// assert_eq!(summary.nodes.iter().map(|node| node.own).sum::<u64>(), 8);
/// # Ok::<(), sonde_rap::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Tree<K: Key> {
    config: Config,
    core: core::Core<K::Code>,
    front: Front<K>,
    queue: descend::Queue<K::Code>,
    fingers: fingers::Fingers<K>,
    schedule: Schedule,
    /// Events that `add` has gathered for a block.
    pending: Vec<K>,
    /// What the front has let pass, and what it has displaced.
    missed: Vec<K>,
    displaced: Vec<(K, u64)>,
    /// All events but the pending ones.
    events: u64,
    nodes_max: u64,
    stats: Stats,
}

impl<K: Key> Tree<K> {
    /// An empty tree.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let roomy = config.max_memory.is_none_or(|max| max >= ROOMY * size_of::<K>().div_ceil(8));
        let block = if roomy { BLOCK } else { SMALL_BLOCK };
        let step = if config.branching.bits() == 3 { 3 } else { 4 };
        // The table is the same for every limit that allows it: a part of it that depended on the limit would let that
        // decide how events are counted.
        let fingers_bytes = config.max_memory.map_or(usize::MAX, |max| max / FINGERS_SHARE);
        let mut tree = Tree {
            core: core::Core::new(K::BITS, step, usize::MAX),
            front: Front::new(config.buffer, roomy),
            queue: descend::Queue::new(block),
            fingers: fingers::Fingers::new(if step == 4 { fingers_bytes } else { 0 }),
            schedule: Schedule::new(&config, K::BITS, roomy),
            pending: Vec::with_capacity(block),
            missed: Vec::new(),
            displaced: Vec::new(),
            config,
            events: 0,
            nodes_max: 0,
            stats: Stats::with_capacity(if roomy { 512 } else { 32 }),
        };
        if roomy || tree.front.way() != Way::Direct {
            tree.missed = vec![K::default(); block];
            tree.displaced.reserve_exact(block);
        }
        if let Some(max) = tree.config.max_memory {
            tree.core.limit_memory(max.saturating_sub(tree.memory_bytes()), roomy);
        }
        Ok(tree)
    }

    /// Counts one event.
    #[inline]
    pub fn add(&mut self, key: K) {
        self.pending.push(key);
        if self.pending.len() == self.queue.len() {
            self.flush_pending();
        }
    }

    fn flush_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        self.add_slice(&pending);
        pending.clear();
        self.pending = pending;
    }

    /// Counts `weight` events with the same key. The whole weight ends at one range.
    pub fn add_weighted(&mut self, key: K, weight: u64) {
        self.events = self.events.saturating_add(weight);
        self.core.insert(key.encode(), weight);
        self.keep_schedule();
    }

    /// Counts one event for each key; by far the fastest way in.
    pub fn add_slice(&mut self, keys: &[K]) {
        let mut rest = keys;
        while !rest.is_empty() {
            let run = if self.front.finds_runs() { run_length(rest) } else { 0 };
            if run > 0 {
                self.add_weighted(rest[0], run as u64);
                rest = &rest[run..];
                continue;
            }
            let (block, later) = rest.split_at(rest.len().min(self.queue.len()));
            self.add_block(block);
            rest = later;
        }
    }

    /// Counts keys with their weights: what bursts and samples need, whose events stand for several.
    ///
    /// Past the front: its tables count single events. Put equal keys together first.
    pub fn add_weighted_slice(&mut self, entries: &[(K, u64)]) {
        for block in entries.chunks(self.queue.len()) {
            let weight = block.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.1));
            self.events = self.events.saturating_add(weight);
            if self.fingers.are_used() {
                self.count_by_fingers(block);
            } else {
                self.count_entries(block);
            }
            self.keep_schedule();
        }
    }

    /// Sends combined events (at most a block) where such went before, and into the core if there is no such place yet.
    fn count_by_fingers(&mut self, block: &[(K, u64)]) {
        let mut missed = std::mem::take(&mut self.displaced);
        self.fingers.count(block, &mut self.core, &mut missed);
        let mut visits = 0;
        for &(key, weight) in missed.iter().filter(|entry| entry.1 > 0) {
            let (slots, finger) = self.core.insert_pointing(key.encode(), weight, K::NEAR_BITS);
            visits += slots;
            if let Some(at) = finger {
                self.fingers.put(key, at);
            }
        }
        self.fingers.learn(block.len(), missed.len(), visits);
        self.displaced = missed;
    }

    fn add_block(&mut self, block: &[K]) {
        self.events = self.events.saturating_add(block.len() as u64);
        let (descended, visits) = if self.front.way() == Way::Direct {
            (block.len(), self.count_keys(block))
        } else {
            self.take_through_front(block)
        };
        self.front.learn(block.len(), descended, visits);
        self.keep_schedule();
    }

    /// What descended into the tree, and the slots visited.
    fn take_through_front(&mut self, block: &[K]) -> (usize, usize) {
        let mut missed = std::mem::take(&mut self.missed);
        let mut displaced = std::mem::take(&mut self.displaced);
        let missed_len = self.front.take(block, &mut missed, &mut displaced);
        let mut visits = self.count_keys(&missed[..missed_len]);
        for part in displaced.chunks(self.queue.len()) {
            visits += self.count_entries(part);
        }
        let descended = missed_len + displaced.len();
        self.stats.combined += block.len().saturating_sub(descended) as u64;
        (self.missed, self.displaced) = (missed, displaced);
        (descended, visits)
    }

    /// Sends single events (at most a block) into the core; the slots visited.
    fn count_keys(&mut self, keys: &[K]) -> usize {
        self.core.count_single(keys, |key| key.encode(), &mut self.queue)
    }

    /// Sends combined events (at most a block) into the core; the slots visited.
    fn count_entries(&mut self, entries: &[(K, u64)]) -> usize {
        self.core.count_weighted(entries, |&(key, weight)| (key.encode(), weight), &mut self.queue)
    }

    /// Sends everything that is still buffered into the tree. [`Tree::snapshot`] and [`Tree::merge`] do it themselves.
    pub fn finish(&mut self) {
        self.flush_pending();
        for part in self.front.drain().chunks(self.queue.len()) {
            self.count_entries(part);
            self.keep_schedule();
        }
    }

    /// All events so far, weights added up.
    pub fn events(&self) -> u64 {
        self.events.saturating_add(self.pending.len() as u64)
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The error bound that holds now, as a share of all events: `eps`, or more when the memory limit forced it. Computed
    /// from what the tree holds: call [`Tree::finish`] first where buffered events matter.
    pub fn eps_effective(&self) -> f64 {
        self.eps_of(&self.folded())
    }

    fn eps_of(&self, nodes: &[Item<K::Code>]) -> f64 {
        let lost = fold::heaviest_path(nodes) as f64 / self.events().max(1) as f64;
        self.config.eps.max(lost)
    }

    /// Ranges that hold a count now, buffered events aside.
    pub fn nodes(&self) -> usize {
        self.folded().len()
    }

    /// The most ranges that have held a count so far. Between merge batches the number only grows, so it is taken just
    /// before each of them.
    pub fn nodes_max(&self) -> usize {
        self.nodes().max(self.nodes_max as usize)
    }

    fn folded(&self) -> Vec<Item<K::Code>> {
        self.fold(&self.core.items())
    }

    fn fold(&self, items: &[Item<K::Code>]) -> Vec<Item<K::Code>> {
        let levels = Levels { key_bits: K::BITS, branch_bits: self.config.branching.bits() };
        fold::fold(items, levels, self.schedule.merge_threshold)
    }

    /// Bytes held by tree and buffer.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.core.bytes()
            + self.front.bytes()
            + self.queue.bytes()
            + self.fingers.bytes()
            + (self.pending.capacity() + self.missed.capacity()) * size_of::<K>()
            + self.displaced.capacity() * size_of::<(K, u64)>()
            + self.stats.samples.capacity() * size_of::<Sample>()
    }

    /// Node counts over time, splits and merges.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The summary so far, buffered events included.
    pub fn snapshot(&mut self) -> Snapshot<K> {
        self.finish();
        let folded = self.folded();
        self.nodes_max = self.nodes_max.max(folded.len() as u64);
        Snapshot {
            config: self.config.clone(),
            events: self.events,
            eps_effective: self.eps_of(&folded),
            nodes_max: self.nodes_max,
            nodes: folded.iter().map(node).collect(),
        }
    }
}

fn node<K: Key>(item: &Item<K::Code>) -> Node<K> {
    Node { range: Range::aligned(item.start, item.free_bits), own: item.count }
}

/// Length of the run of one key at the start, if it is worth being taken as one event.
fn run_length<K: Key>(keys: &[K]) -> usize {
    const LOOK: usize = 16;
    let Some(key) = keys.first().filter(|_| keys.len() >= RUN) else { return 0 };
    if !key.is_all_of(&keys[..LOOK]) {
        return 0;
    }
    let run = keys.chunks_exact(RUN).take_while(|chunk| key.is_all_of(chunk)).count();
    run * RUN
}
