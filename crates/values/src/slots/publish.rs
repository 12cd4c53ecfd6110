//! When a live source is told which loads need not be recorded any more.
//!
//! Each time costs the program the new copies of all code that holds a load of which the answer changed, so that it has
//! to be worth it. What parts of the program have their turn ([`super::control`]) is not told: turns change every few
//! thousand loads, a millisecond, which copies do not pay back.

use crate::filter::BitTable;
use sonde_event::Unwatched;
use sonde_wire::unwatched::WORDS;

/// One recorded load in so many has to be masked for another publication. With each the loads recorded fall to a half at
/// most; with ten in place of two, superblocks were translated again for one load after the other.
const SPARE: u64 = 2;

/// Each publication waits for this many times as many recorded loads as the one before, so that their number grows with the
/// logarithm of the run. A compiler, in which new code comes up all the time, got 155 of them in 300 million loads, and
/// was 83 times slower for making copies.
const PATIENCE: f64 = 1.5;

/// What the source was told last, and what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publication {
    /// Loads recorded before the first publication, at least, and between the last one and the next.
    first: u64,
    least: u64,
    /// Hash function and bits of the table that was published.
    function: u8,
    masked: u64,
    /// Loads recorded since then, and how many of them are masked by now.
    logged: u64,
    spare: u64,
    times: u64,
}

impl Publication {
    /// Nothing was published yet: everything is recorded.
    pub fn new(least: u64) -> Publication {
        Publication { first: least, least, ..Publication::default() }
    }

    /// A pass with so many recorded loads, so many of which are masked.
    #[inline]
    pub fn pass(&mut self, logged: u64, spare: u64) {
        self.logged += logged;
        self.spare += spare;
    }

    /// How often the source was told something.
    pub fn times(&self) -> u64 {
        self.times
    }

    /// The table, if it is time to publish it.
    pub fn next<'a>(&mut self, table: &'a BitTable) -> Option<Unwatched<'a>> {
        // A table of another size is for sources that do not listen.
        if table.bits().len() != WORDS || !self.is_due(table) {
            return None;
        }
        let (function, masked) = (table.function(), table.count());
        // After unmasking, which is ever more seldom, it begins anew: everything is recorded then.
        let unmasked = self.masked > 0 && self.function != function;
        let least = if unmasked { self.first } else { (self.least as f64 * PATIENCE) as u64 };
        *self =
            Publication { function, masked, times: self.times + 1, least, ..Publication::new(self.first) };
        Some(Unwatched { function, bits: table.bits() })
    }

    fn is_due(&self, table: &BitTable) -> bool {
        // Unmasking is seldom, and what it asks for is waited for.
        let unmasked = self.masked > 0 && self.function != table.function();
        let grown = self.function != table.function() || table.count() > self.masked;
        unmasked
            || table.count() > 0 && grown && self.logged >= self.least && self.spare * SPARE >= self.logged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_wire::unwatched::LOG2_BITS;

    const LEAST: u64 = 1000;

    #[test]
    fn masks_are_published_when_they_spare_enough_and_unmasking_at_once() {
        let mut table = BitTable::new(LOG2_BITS).unwrap();
        let mut published = Publication::new(LEAST);
        published.pass(10 * LEAST, 10 * LEAST);
        assert_eq!(published.next(&table), None, "nothing is masked");
        table.set(0x40_1000);
        let told = published.next(&table).unwrap();
        assert_eq!((told.function, told.bits), (table.function(), table.bits()));
        published.pass(10 * LEAST, 10 * LEAST);
        assert_eq!(published.next(&table), None, "nothing is new");
        table.set(0x40_1004);
        assert!(published.next(&table).is_some());
        table.set(0x40_1008);
        published.pass(2 * LEAST, 2 * LEAST);
        assert_eq!(published.next(&table), None, "too early: 2.25 times as many by now");
        published.pass(1000 * LEAST, 0);
        assert_eq!(published.next(&table), None, "nearly all that is recorded is wanted");
        table.clear();
        assert!(published.next(&table).unwrap().bits.iter().all(|word| *word == 0));
        assert_eq!(published.least, LEAST, "as at first");
        assert_eq!(published.next(&table), None);
        assert_eq!(published.times(), 3);
    }

    #[test]
    fn publications_grow_with_the_logarithm_of_the_run() {
        let mut table = BitTable::new(LOG2_BITS).unwrap();
        let mut published = Publication::new(LEAST);
        for i in 0..1_000_000u64 {
            table.set(0x40_1000 + 4 * i);
            published.pass(100, 100);
            published.next(&table);
        }
        // 1.5^28 is 100,000 times the first wait.
        assert!((20..=28).contains(&published.times()), "{}", published.times());
    }

    #[test]
    fn tables_of_another_size_stay_here() {
        let mut table = BitTable::new(10).unwrap();
        table.set(1);
        let mut published = Publication::new(LEAST);
        published.pass(10 * LEAST, 10 * LEAST);
        assert_eq!(published.next(&table), None);
    }
}
