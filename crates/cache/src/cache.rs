//! Two levels together, and what they counted.

use crate::config::Config;
use crate::recent::{Recent, Use};
use crate::second::{Second, Sent};
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

/// What is known of where a reference was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// The nearest level that it can have been in.
    pub nearest: Found,
    /// The farthest.
    pub farthest: Found,
}

impl Bounds {
    /// It was found here.
    pub fn known(found: Found) -> Bounds {
        Bounds { nearest: found, farthest: found }
    }

    /// Whether it missed the levels before this one; none if nobody knows.
    pub fn reached(self, level: Found) -> Option<bool> {
        let (least, most) = (self.nearest >= level, self.farthest >= level);
        (least == most).then_some(least)
    }

    /// A reference is as slow as its slowest line.
    fn slower(self, other: Bounds) -> Bounds {
        Bounds { nearest: self.nearest.max(other.nearest), farthest: self.farthest.max(other.farthest) }
    }
}

/// What was counted. A reference counts once, however many lines it touches.
///
/// What is neither a miss nor unknown was found. The true number of misses lies between the misses and the misses with the
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Loads.
    pub loads: u64,
    /// Loads that surely missed the first level.
    pub first_load_misses: u64,
    /// Loads that may have missed it.
    pub first_load_unknown: u64,
    /// Loads that surely missed both.
    pub second_load_misses: u64,
    /// Loads that may have missed both.
    pub second_load_unknown: u64,
    /// Stores.
    pub stores: u64,
    /// Stores that surely missed the first level.
    pub first_store_misses: u64,
    /// Stores that may have missed it.
    pub first_store_unknown: u64,
    /// Stores that surely missed both.
    pub second_store_misses: u64,
    /// Stores that may have missed both.
    pub second_store_unknown: u64,
    /// Lines of the second level that the model met for the first time ever, at least. In a recording of everything they are
    /// misses of any cache; in bursts, the program may have touched them before.
    pub first_touches: u64,
}

impl Statistics {
    /// Adds what another model counted.
    pub fn add(&mut self, other: &Statistics) {
        let pairs = [
            (&mut self.loads, other.loads),
            (&mut self.first_load_misses, other.first_load_misses),
            (&mut self.first_load_unknown, other.first_load_unknown),
            (&mut self.second_load_misses, other.second_load_misses),
            (&mut self.second_load_unknown, other.second_load_unknown),
            (&mut self.stores, other.stores),
            (&mut self.first_store_misses, other.first_store_misses),
            (&mut self.first_store_unknown, other.first_store_unknown),
            (&mut self.second_store_misses, other.second_store_misses),
            (&mut self.second_store_unknown, other.second_store_unknown),
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
    second: Second,
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
            second: Second::new(config.second()),
            seen: Seen::new(),
            statistics: Statistics::default(),
            now: 0,
        }
    }

    /// References that nobody told of may have happened: from here on only that is known which follows from what comes.
    pub fn forget(&mut self) {
        self.first.forget();
        self.second.forget();
    }

    /// Counts a reference whose place in the order is not known.
    pub fn cannot_judge(&mut self, is_load: bool) {
        let s = &mut self.statistics;
        *(if is_load { &mut s.loads } else { &mut s.stores }) += 1;
        self.count(is_load, Bounds { nearest: Found::First, farthest: Found::Memory });
    }

    /// Reads `size` bytes; 0 counts as 1.
    #[inline]
    pub fn load(&mut self, address: u64, size: u64) -> Bounds {
        self.refer(true, address, size)
    }

    /// Writes `size` bytes; 0 counts as 1.
    #[inline]
    pub fn store(&mut self, address: u64, size: u64) -> Bounds {
        self.refer(false, address, size)
    }

    fn refer(&mut self, is_load: bool, address: u64, size: u64) -> Bounds {
        let mut found = Bounds::known(Found::First);
        self.refer_all(std::iter::once((Reference { is_load, address, size }, ())), |(), at| found = at);
        found
    }

    /// References one after the other, each with what the caller knows it by: `missed` is told of those that are not, or
    /// may not be, in the first level. Whether a reference is a load cannot be predicted, so no branch depends on it unless it misses; counts
    /// stay in registers.
    #[inline]
    pub fn refer_all<T>(
        &mut self,
        references: impl Iterator<Item = (Reference, T)>,
        mut missed: impl FnMut(T, Bounds),
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
            } else if self.first.hit(line, now) {
                continue;
            } else {
                match self.first.search(line, now) {
                    Use::Hit => continue,
                    other => self.access_second(line, now, other),
                }
            };
            if found.farthest > Found::First {
                self.count(is_load, found);
                missed(known_by, found);
            }
        }
        self.now = now;
        self.statistics.loads += loads;
        self.statistics.stores += all - loads;
    }

    /// Counts a reference that did not surely hit the first level.
    #[inline]
    fn count(&mut self, is_load: bool, found: Bounds) {
        let s = &mut self.statistics;
        let levels = if is_load {
            [
                (Found::Second, &mut s.first_load_misses, &mut s.first_load_unknown),
                (Found::Memory, &mut s.second_load_misses, &mut s.second_load_unknown),
            ]
        } else {
            [
                (Found::Second, &mut s.first_store_misses, &mut s.first_store_unknown),
                (Found::Memory, &mut s.second_store_misses, &mut s.second_store_unknown),
            ]
        };
        for (level, misses, unknown) in levels {
            *misses += u64::from(found.nearest >= level);
            *unknown += u64::from(found.nearest < level && found.farthest >= level);
        }
    }

    /// A reference that touches several lines.
    #[inline(never)]
    fn access_lines(&mut self, line: u64, last: u64) -> Bounds {
        let last = last.min(line.saturating_add(MOST_LINES));
        let nearest = Bounds::known(Found::First);
        (line..=last).fold(nearest, |slowest, line| slowest.slower(self.access_line(line)))
    }

    fn access_line(&mut self, line: u64) -> Bounds {
        self.now += 1;
        match self.first.touch(line, self.now) {
            Use::Hit => Bounds::known(Found::First),
            other => self.access_second(line, self.now, other),
        }
    }

    /// A line that the first level did not have, or may not have had.
    fn access_second(&mut self, line: u64, now: u64, first: Use) -> Bounds {
        let line = self.second.line(self.first.address(line));
        let sent = if first == Use::Miss { Sent::Surely } else { Sent::Maybe };
        let (nearest, farthest) = match self.second.look_for(line, now, sent) {
            Use::Hit => (Found::Second, Found::Second),
            Use::Miss => (Found::Memory, Found::Memory),
            Use::Unknown => (Found::Second, Found::Memory),
        };
        if farthest == Found::Memory {
            self.statistics.first_touches += u64::from(self.seen.is_new(line));
        }
        Bounds { nearest: if sent == Sent::Surely { nearest } else { Found::First }, farthest }
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes that a model of this configuration uses.
    pub fn bytes(config: &Config) -> usize {
        Recent::bytes(config.first()) + Second::bytes(config.second()) + Seen::BYTES
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.first.memory_bytes() + self.second.memory_bytes() + self.seen.memory_bytes()
    }
}
