//! Two levels together, and what they counted.

use crate::config::Config;
use crate::recent::Recent;
use crate::seen::Seen;

/// Where a reference was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// In the first level.
    First,
    /// It missed the first level, and was in the second.
    Second,
    /// It missed both.
    Memory,
}

/// What was counted. A reference counts once, however many lines it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Loads.
    pub loads: u64,
    /// Loads that missed the first level.
    pub first_load_misses: u64,
    /// Loads that missed both.
    pub second_load_misses: u64,
    /// Stores.
    pub stores: u64,
    /// Stores that missed the first level.
    pub first_store_misses: u64,
    /// Stores that missed both.
    pub second_store_misses: u64,
    /// Lines of the second level that were brought in for the first time ever, at least. In a recording of everything
    /// they are misses of any cache; in bursts, the program may have touched them before.
    pub first_touches: u64,
}

impl Statistics {
    /// Adds what another model counted.
    pub fn add(&mut self, other: &Statistics) {
        let pairs = [
            (&mut self.loads, other.loads),
            (&mut self.first_load_misses, other.first_load_misses),
            (&mut self.second_load_misses, other.second_load_misses),
            (&mut self.stores, other.stores),
            (&mut self.first_store_misses, other.first_store_misses),
            (&mut self.second_store_misses, other.second_store_misses),
            (&mut self.first_touches, other.first_touches),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Most lines that one reference is followed through: a repeated string instruction can claim any length.
const MOST_LINES: u64 = 1 << 20;

/// The model.
pub struct Cache {
    first: Recent,
    second: Recent,
    seen: Seen,
    statistics: Statistics,
    /// Uses of lines so far.
    now: u64,
}

/// A reference to some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// A load, not a store.
    pub is_load: bool,
    /// The first byte.
    pub address: u64,
    /// How many there are; 0 counts as 1.
    pub size: u64,
}

impl Cache {
    /// Empty caches.
    pub fn new(config: &Config) -> Cache {
        Cache {
            first: Recent::new(config.first()),
            second: Recent::new(config.second()),
            seen: Seen::new(),
            statistics: Statistics::default(),
            now: 0,
        }
    }

    /// Reads `size` bytes; 0 counts as 1.
    #[inline]
    pub fn load(&mut self, address: u64, size: u64) -> Found {
        self.refer(true, address, size)
    }

    /// Writes `size` bytes; 0 counts as 1.
    #[inline]
    pub fn store(&mut self, address: u64, size: u64) -> Found {
        self.refer(false, address, size)
    }

    fn refer(&mut self, is_load: bool, address: u64, size: u64) -> Found {
        let mut found = Found::First;
        self.refer_all(std::iter::once((Reference { is_load, address, size }, ())), |(), at| found = at);
        found
    }

    /// References one after the other, each with what the caller knows it by: `missed` is told of those that are not in the
    /// first level. Whether a reference is a load cannot be predicted, so no branch depends on it unless it misses; counts
    /// stay in registers.
    #[inline]
    pub fn refer_all<T>(
        &mut self,
        references: impl Iterator<Item = (Reference, T)>,
        mut missed: impl FnMut(T, Found),
    ) {
        let (mut now, mut loads, mut all) = (self.now, 0, 0);
        for (Reference { is_load, address, size }, known_by) in references {
            all += 1;
            loads += u64::from(is_load);
            now += 1;
            let line = self.first.line(address);
            let last = self.first.line(address.saturating_add(size.max(1) - 1));
            let found = if line != last {
                self.now = now;
                let found = self.access_lines(line, last);
                now = self.now;
                found
            } else if self.first.hit(line, now) || self.first.search(line, now) {
                continue;
            } else {
                self.access_second(line, now)
            };
            if found > Found::First {
                self.count_miss(is_load, found);
                missed(known_by, found);
            }
        }
        self.now = now;
        self.statistics.loads += loads;
        self.statistics.stores += all - loads;
    }

    #[inline]
    fn count_miss(&mut self, is_load: bool, found: Found) {
        let s = &mut self.statistics;
        let (first, second) = if is_load {
            (&mut s.first_load_misses, &mut s.second_load_misses)
        } else {
            (&mut s.first_store_misses, &mut s.second_store_misses)
        };
        *first += 1;
        *second += u64::from(found == Found::Memory);
    }

    /// A reference that touches several lines.
    #[inline(never)]
    fn access_lines(&mut self, line: u64, last: u64) -> Found {
        let last = last.min(line.saturating_add(MOST_LINES));
        (line..=last).map(|line| self.access_line(line)).max().unwrap_or(Found::First)
    }

    fn access_line(&mut self, line: u64) -> Found {
        self.now += 1;
        if self.first.touch(line, self.now) { Found::First } else { self.access_second(line, self.now) }
    }

    /// A line of the first level that was not there.
    fn access_second(&mut self, line: u64, now: u64) -> Found {
        let line = self.second.line(self.first.address(line));
        if self.second.touch(line, now) {
            return Found::Second;
        }
        self.statistics.first_touches += u64::from(self.seen.is_new(line));
        Found::Memory
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes that a model of this configuration uses.
    pub fn bytes(config: &Config) -> usize {
        Recent::bytes(config.first()) + Recent::bytes(config.second()) + Seen::BYTES
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.first.memory_bytes() + self.second.memory_bytes() + self.seen.memory_bytes()
    }
}
