//! The trees that grow from batches, each apart from the others, so that threads can share them out.

use crate::accesses::Accesses;
use crate::batch::{BATCH, Batch, Entries};
use crate::config::{Config, Shares};
use crate::keys::GIFTS;
use crate::kind::Kind;
use crate::rows::Rows;
use sonde_cache::{Bounds, Cache, Found, Statistics};
use sonde_rap::{ConfigError, Key, Tree};

/// A tree that grows.
pub(crate) struct Growing<K: Key> {
    pub kind: Kind,
    pub tree: Tree<K>,
    /// Events added, whatever they weigh.
    pub events: u64,
}

impl<K: Key> Growing<K> {
    fn new(kind: Kind, config: &Config, bytes: usize) -> Result<Growing<K>, ConfigError> {
        let mut parameters = sonde_rap::Config::new().eps(config.eps).max_memory(bytes);
        if let Some(time) = &config.burst_time {
            // As with single events, a tree has some thousand of them before it is looked through for the first time.
            parameters = parameters.first_merge(time.picoseconds().max(1));
        }
        Ok(Growing { kind, tree: Tree::new(parameters)?, events: 0 })
    }

    fn grow(&mut self, entries: &Entries<K>) {
        self.events = self.events.saturating_add(entries.events);
        self.tree.add_weighted_slice(&entries.list);
    }
}

/// The cache model with the trees over what misses it.
struct Misses {
    cache: Cache,
    first: Option<Growing<u64>>,
    second: Option<Growing<u64>>,
    /// Of a batch, the values that missed the first level.
    missed: Vec<u64>,
    /// Keys for the trees, over what missed the first level and over what missed both.
    values: [Entries<u64>; 2],
    /// Values that miss the first level again and again; what misses both is rare.
    rows: Rows,
    /// Whether parts of the run are not recorded.
    has_gaps: bool,
}

impl Misses {
    fn take(&mut self, batch: &Batch) {
        if batch.after_gap {
            self.cache.forget();
        }
        if batch.out_of_order {
            return batch.accesses.give_up(&mut self.cache);
        }
        self.play(&batch.accesses, batch.weight);
    }

    fn play(&mut self, accesses: &Accesses, weight: u64) {
        let (rows, missed, [first, second]) = (&mut self.rows, &mut self.missed, &mut self.values);
        missed.clear();
        // Only what surely missed: of the rest nobody knows.
        let note = |value: u64, found: Bounds| {
            if found.nearest > Found::First {
                missed.push(value);
            }
            if found.nearest == Found::Memory {
                second.push(value, 1, weight);
            }
        };
        if self.has_gaps {
            accesses.play_burst(&mut self.cache, note);
        } else {
            accesses.play(&mut self.cache, note);
        }
        if rows.is_empty() {
            first.extend(missed.iter().copied(), weight);
        } else {
            first.come(missed.len());
            rows.may_give(GIFTS);
            rows.add_all(0, missed, |value| value, |_, value, times| first.tell(value, times));
        }
        self.grow();
    }

    fn grow(&mut self) {
        let growing = [&mut self.first, &mut self.second];
        for (growing, values) in growing.into_iter().zip(&mut self.values) {
            if let Some(growing) = growing {
                growing.grow(values);
            }
            values.clear();
        }
    }

    /// Hands on what was kept back.
    fn drain(&mut self) {
        for at in 0..self.rows.len() {
            let first = &mut self.values[0];
            self.rows.empty(at, &mut |_, value, times| first.tell(value, times));
            if first.list.len() >= BATCH {
                self.grow();
            }
        }
        self.grow();
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
            let rows = if first.is_some() { shares.miss_rows } else { 0 };
            let (cache, rows) = (Cache::new(&config.cache), Rows::new(rows / Rows::BYTES));
            let (missed, values, has_gaps) = (Vec::new(), Default::default(), config.has_gaps());
            bank.misses = Some(Misses { cache, first, second, missed, values, rows, has_gaps });
        }
        Ok(bank)
    }

    /// Counts a batch.
    pub fn take(&mut self, batch: &Batch) {
        for growing in &mut self.one {
            growing.grow(batch.of(growing.kind));
        }
        for growing in &mut self.two {
            growing.grow(if growing.kind == Kind::Edges { &batch.edges } else { &batch.code_data });
        }
        if let Some(misses) = &mut self.misses {
            misses.take(batch);
        }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let one: usize = self.one.iter().map(|growing| growing.tree.memory_bytes()).sum();
        let two: usize = self.two.iter().map(|growing| growing.tree.memory_bytes()).sum();
        let misses = self.misses.as_ref().map_or(0, |misses| {
            let trees = misses.first.iter().chain(&misses.second).map(|growing| growing.tree.memory_bytes());
            let values: usize = misses.values.iter().map(|values| values.list.capacity() * 16).sum();
            let values = values + misses.missed.capacity() * 8;
            misses.cache.memory_bytes() + misses.rows.memory_bytes() + values + trees.sum::<usize>()
        });
        one + two + misses
    }

    /// The trees as they are.
    pub fn finish(mut self) -> Grown {
        self.misses.iter_mut().for_each(Misses::drain);
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
