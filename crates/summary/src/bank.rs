//! The trees that grow from batches, each apart from the others, so that threads can share them out.

use crate::batch::{Batch, Event};
use crate::config::{Config, Shares};
use crate::kind::Kind;
use sonde_cache::{Cache, Found, Statistics};
use sonde_rap::{ConfigError, Key, Tree};

/// A tree and the keys of the batch under way.
pub(crate) struct Growing<K: Key> {
    pub kind: Kind,
    pub tree: Tree<K>,
    /// Events added, whatever they weigh.
    pub events: u64,
    keys: Vec<K>,
    /// Keys that count more than once.
    heavy: Vec<(K, u64)>,
}

impl<K: Key> Growing<K> {
    fn new(kind: Kind, eps: f64, bytes: usize) -> Result<Growing<K>, ConfigError> {
        let tree = Tree::new(sonde_rap::Config::new().eps(eps).max_memory(bytes))?;
        Ok(Growing { kind, tree, events: 0, keys: Vec::new(), heavy: Vec::new() })
    }

    /// Takes the key of every event for which `wanted` holds.
    #[inline(always)]
    fn gather(&mut self, events: &[Event], wanted: impl Fn(&Event) -> bool, key: impl Fn(&Event) -> K) {
        // Whether an event is wanted cannot be predicted: each key is written, and kept or not.
        self.keys.resize(events.len(), K::default());
        let mut kept = 0;
        for (event, _) in events.iter().zip(0..) {
            let wanted = wanted(event);
            let single = event.times == 1;
            self.keys[kept] = key(event);
            kept += usize::from(wanted & single);
            if wanted & !single {
                self.heavy.push((key(event), event.times.into()));
            }
        }
        self.keys.truncate(kept);
    }

    /// Adds what was gathered.
    fn grow(&mut self, weight: u64) {
        self.events += self.keys.len() as u64;
        self.tree.add_slice_weighted(&self.keys, weight);
        self.keys.clear();
        for (key, times) in std::mem::take(&mut self.heavy) {
            self.add(key, times, weight);
        }
    }

    /// Adds one key that counts `times`.
    pub fn add(&mut self, key: K, times: u64, weight: u64) {
        self.events = self.events.saturating_add(times);
        self.tree.add_weighted(key, times.saturating_mul(weight));
    }

    fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
            + self.keys.capacity() * size_of::<K>()
            + self.heavy.capacity() * size_of::<(K, u64)>()
    }
}

/// The cache model with the trees over what misses it.
struct Misses {
    cache: Cache,
    first: Option<Growing<u64>>,
    second: Option<Growing<u64>>,
}

impl Misses {
    fn take(&mut self, batch: &Batch) {
        for event in batch.events.iter().filter(|event| event.is(Event::ADDRESS)) {
            let size = u64::from(event.size);
            if !event.is(Event::LOAD) {
                self.cache.store(event.data, size);
                continue;
            }
            let found = self.cache.load(event.data, size);
            if found == Found::First || !event.is(Event::VALUE) {
                continue;
            }
            if let Some(first) = &mut self.first {
                first.keys.push(event.value);
            }
            if let Some(second) = self.second.as_mut().filter(|_| found == Found::Memory) {
                second.keys.push(event.value);
            }
        }
        self.growing().for_each(|growing| growing.grow(batch.weight));
    }

    fn growing(&mut self) -> impl Iterator<Item = &mut Growing<u64>> {
        self.first.iter_mut().chain(&mut self.second)
    }
}

/// Some trees.
#[derive(Default)]
pub(crate) struct Bank {
    one: Vec<Growing<u64>>,
    two: Vec<Growing<[u64; 2]>>,
    misses: Option<Misses>,
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
        let one = |kind| Growing::new(kind, config.eps, shares.tree);
        let (mut first, mut second) = (None, None);
        for &kind in kinds {
            match kind {
                Kind::Dl1MissValues => first = Some(one(kind)?),
                Kind::Dl2MissValues => second = Some(one(kind)?),
                Kind::Edges | Kind::CodeData => {
                    bank.two.push(Growing::new(kind, config.eps, 2 * shares.tree)?);
                }
                _ => bank.one.push(one(kind)?),
            }
        }
        if first.is_some() || second.is_some() {
            bank.misses = Some(Misses { cache: Cache::new(&config.cache), first, second });
        }
        Ok(bank)
    }

    /// Counts a batch.
    pub fn take(&mut self, batch: &Batch) {
        for growing in &mut self.one {
            gather_one(growing, batch);
            growing.grow(batch.weight);
        }
        for growing in &mut self.two {
            match growing.kind {
                Kind::Edges => growing.keys.extend_from_slice(&batch.edges),
                _ => growing.gather(&batch.events, |e| e.is(Event::ADDRESS), |e| [e.pc, e.data]),
            }
            growing.grow(batch.weight);
        }
        if let Some(misses) = &mut self.misses {
            misses.take(batch);
        }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let one: usize = self.one.iter().map(Growing::memory_bytes).sum();
        let two: usize = self.two.iter().map(Growing::memory_bytes).sum();
        let misses = self.misses.as_ref().map_or(0, |misses| {
            let trees = misses.first.iter().chain(&misses.second);
            misses.cache.memory_bytes() + trees.map(Growing::memory_bytes).sum::<usize>()
        });
        one + two + misses
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

fn gather_one(growing: &mut Growing<u64>, batch: &Batch) {
    const PLACE: u16 = Event::ADDRESS;
    let events = &batch.events;
    let load = |e: &Event| e.is(Event::LOAD | PLACE);
    match growing.kind {
        Kind::Code => growing.heavy.extend_from_slice(&batch.blocks),
        Kind::LoadAddresses => growing.gather(events, load, |e| e.data),
        Kind::StoreAddresses => {
            growing.gather(events, |e| e.flags & (Event::LOAD | PLACE) == PLACE, |e| e.data);
        }
        Kind::LoadValues => growing.gather(events, |e| e.is(Event::LOAD | Event::VALUE), |e| e.value),
        Kind::NarrowPcs => growing.gather(events, |e| e.is(Event::NARROW), |e| e.pc),
        Kind::ZeroLoads => growing.gather(events, |e| e.is(Event::ZERO | PLACE), |e| e.data),
        Kind::Dl1MissValues | Kind::Dl2MissValues | Kind::Edges | Kind::CodeData => {}
    }
}
