//! The trees that grow from batches, each apart from the others, so that threads can share them out.

use crate::batch::{BATCH, Batch, Event};
use crate::columns::{Column, pair, repeated_key};
use crate::combine::Combined;
use crate::config::{Config, Shares};
use crate::kind::Kind;
use sonde_cache::{Cache, Found, Statistics};
use sonde_rap::{ConfigError, Key, Tree};

/// A tree that grows.
pub(crate) struct Growing<K: Key> {
    pub kind: Kind,
    pub tree: Tree<K>,
    /// Events added, whatever they weigh.
    pub events: u64,
    combined: Combined<K>,
}

impl<K: Key> Growing<K> {
    fn new(kind: Kind, config: &Config, bytes: usize) -> Result<Growing<K>, ConfigError> {
        let mut parameters = sonde_rap::Config::new().eps(config.eps).max_memory(bytes);
        if let Some(time) = &config.burst_time {
            // As with single events, a tree has some thousand of them before it is looked through for the first time.
            parameters = parameters.first_merge(time.picoseconds().max(1));
        }
        Ok(Growing { kind, tree: Tree::new(parameters)?, events: 0, combined: Combined::default() })
    }

    /// Adds keys of the same weight.
    fn grow(&mut self, keys: &[K], weight: u64) {
        self.events += keys.len() as u64;
        if weight == 1 {
            return self.tree.add_slice(keys);
        }
        self.tree.add_weighted_slice(self.combined.weigh(keys, weight));
    }

    /// Adds one key that counts `times`.
    pub fn add(&mut self, key: K, times: u64, weight: u64) {
        self.events = self.events.saturating_add(times);
        self.tree.add_weighted(key, times.saturating_mul(weight));
    }

    fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes() + self.combined.memory_bytes()
    }
}

/// The cache model with the trees over what misses it.
struct Misses {
    cache: Cache,
    first: Option<Growing<u64>>,
    second: Option<Growing<u64>>,
    /// Of a batch, what missed the first level and what missed both.
    values: [Vec<u64>; 2],
}

impl Misses {
    fn take(&mut self, events: &[Event], weight: u64) {
        self.values.iter_mut().for_each(Vec::clear);
        for event in events.iter().filter(|event| event.is(Event::ADDRESS)) {
            let found = self.cache.refer(event.is(Event::LOAD), event.data, event.size.into());
            if found > Found::First && event.is(Event::LOAD | Event::VALUE) {
                self.values[0].push(event.value);
                if found == Found::Memory {
                    self.values[1].push(event.value);
                }
            }
        }
        let growing = [&mut self.first, &mut self.second];
        for (growing, values) in growing.into_iter().zip(&mut self.values) {
            if let Some(growing) = growing {
                growing.grow(values, weight);
            }
        }
    }
}

/// Some trees.
#[derive(Default)]
pub(crate) struct Bank {
    one: Vec<Growing<u64>>,
    two: Vec<Growing<[u64; 2]>>,
    misses: Option<Misses>,
    column: Column<u64>,
    pairs: Column<[u64; 2]>,
    /// Events that count more than once.
    repeated: Vec<Event>,
}

/// What a bank grew.
#[derive(Default)]
pub(crate) struct Grown {
    pub one: Vec<Growing<u64>>,
    pub two: Vec<Growing<[u64; 2]>>,
    pub cache: Option<Statistics>,
    pub memory: usize,
}

impl Bank {
    /// Trees of these kinds.
    pub fn new(kinds: &[Kind], config: &Config, shares: &Shares) -> Result<Bank, ConfigError> {
        let mut bank = Bank::default();
        let one = |kind| Growing::new(kind, config, shares.tree);
        let (mut first, mut second) = (None, None);
        for &kind in kinds {
            match kind {
                Kind::Dl1MissValues => first = Some(one(kind)?),
                Kind::Dl2MissValues => second = Some(one(kind)?),
                Kind::Edges | Kind::CodeData => {
                    bank.two.push(Growing::new(kind, config, 2 * shares.tree)?);
                }
                _ => bank.one.push(one(kind)?),
            }
        }
        if first.is_some() || second.is_some() {
            bank.misses =
                Some(Misses { cache: Cache::new(&config.cache), first, second, values: Default::default() });
        }
        Ok(bank)
    }

    /// Counts a batch, a part at a time: that of a burst can be much longer than others.
    pub fn take(&mut self, batch: &Batch) {
        for events in batch.events.chunks(BATCH) {
            self.take_events(events, batch.weight);
        }
        if let Some(edges) = self.two.iter_mut().find(|growing| growing.kind == Kind::Edges) {
            for part in batch.edges.chunks(BATCH) {
                edges.grow(part, batch.weight);
            }
        }
        if let Some(code) = self.one.iter_mut().find(|growing| growing.kind == Kind::Code) {
            batch.blocks.iter().for_each(|(place, insns)| code.add(*place, *insns, batch.weight));
        }
    }

    fn take_events(&mut self, events: &[Event], weight: u64) {
        self.repeated.clear();
        self.repeated.extend(events.iter().filter(|event| event.is(Event::REPEATED)));
        for growing in &mut self.one {
            let kind = growing.kind;
            growing.grow(self.column.of(kind, events), weight);
            for event in &self.repeated {
                if let Some(key) = repeated_key(kind, event) {
                    growing.add(key, event.times.into(), weight);
                }
            }
        }
        if let Some(pairs) = self.two.iter_mut().find(|growing| growing.kind == Kind::CodeData) {
            pairs.grow(self.pairs.pairs(events), weight);
            self.repeated.iter().for_each(|e| pairs.add(pair(e), e.times.into(), weight));
        }
        if let Some(misses) = &mut self.misses {
            misses.take(events, weight);
        }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let one: usize = self.one.iter().map(Growing::memory_bytes).sum();
        let two: usize = self.two.iter().map(Growing::memory_bytes).sum();
        let misses = self.misses.as_ref().map_or(0, |misses| {
            let trees = misses.first.iter().chain(&misses.second);
            let values: usize = misses.values.iter().map(|values| values.capacity() * 8).sum();
            misses.cache.memory_bytes() + values + trees.map(Growing::memory_bytes).sum::<usize>()
        });
        let repeated = self.repeated.capacity() * size_of::<Event>();
        one + two + misses + self.column.memory_bytes() + self.pairs.memory_bytes() + repeated
    }

    /// The trees as they are.
    pub fn finish(self) -> Grown {
        let memory = self.memory_bytes();
        let mut grown = Grown { one: self.one, two: self.two, cache: None, memory };
        if let Some(misses) = self.misses {
            grown.cache = Some(misses.cache.statistics());
            grown.one.extend(misses.first.into_iter().chain(misses.second));
        }
        grown
    }
}

impl Grown {
    /// Adds what another bank grew.
    pub fn join(&mut self, other: Grown) {
        self.one.extend(other.one);
        self.two.extend(other.two);
        self.cache = self.cache.or(other.cache);
        self.memory += other.memory;
    }
}
