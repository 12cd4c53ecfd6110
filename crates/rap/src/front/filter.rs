//! A small table of single hot values that are counted there and nowhere else; all other events pass by.
//!
//! On a skewed stream a few hundred values are more than half of all events, but the other half would displace them from a
//! merging table again and again, and every displaced entry costs a descent. Here nothing is displaced by an event: values
//! that turn out to be cold are put out from time to time, and free places taken by whoever comes next.

use crate::key::Key;

/// Blocks between two rounds of putting out cold values: few at first, more as the hot ones have been found.
const SHORTEST: u32 = 2;
const LONGEST: u32 = 512;
/// Places, as a power of two: the size that measured best; see the design page.
const BITS: u32 = 12;
const PLACES: usize = 1 << BITS;

/// The table of hot values.
#[derive(Debug)]
pub(crate) struct Filter<K> {
    /// Values, and their counts; a count of 0 is a free place. Apart: one array of pairs measured slower.
    values: Box<[K; PLACES]>,
    counts: Box<[u64; PLACES]>,
    /// Blocks until cold values are put out, and between two such rounds.
    wait: u32,
    interval: u32,
}

impl<K: Key> Filter<K> {
    /// An empty table.
    pub fn new() -> Self {
        Filter {
            values: Box::new([K::default(); PLACES]),
            counts: Box::new([0; PLACES]),
            wait: 0,
            interval: SHORTEST,
        }
    }

    pub fn bytes(&self) -> usize {
        PLACES * (size_of::<K>() + size_of::<u64>())
    }

    /// Looks for new hot values soon: to be called when blocks come this way again.
    pub fn wake(&mut self) {
        (self.wait, self.interval) = (0, SHORTEST);
    }

    /// Counts the hot ones of `keys`. The others are left at the start of `missed`, which must be as long as `keys`: their
    /// number is returned. Values put out are left in `displaced`.
    pub fn pass(&mut self, keys: &[K], missed: &mut [K], displaced: &mut Vec<(K, u64)>) -> usize {
        displaced.clear();
        if self.wait > 0 {
            self.wait -= 1;
            return count_hot(keys, &self.values, &mut self.counts, missed);
        }
        self.put_out_cold(displaced);
        self.wait = self.interval;
        self.interval = (self.interval * 2).min(LONGEST);
        self.admit(keys, missed)
    }

    /// Like `count_hot`, but a free place is taken by the first that comes.
    fn admit(&mut self, keys: &[K], missed: &mut [K]) -> usize {
        let mut left = 0;
        for &key in keys {
            let at = place(key);
            if self.counts[at] == 0 {
                self.values[at] = key;
            }
            if self.values[at] == key {
                self.counts[at] += 1;
            } else {
                missed[left] = key;
                left += 1;
            }
        }
        left
    }

    /// Frees the places of values that came less than half as often as the mean.
    fn put_out_cold(&mut self, displaced: &mut Vec<(K, u64)>) {
        let total: u64 = self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count));
        let few = total / (2 * PLACES as u64);
        displaced.extend(self.take_up_to(few));
    }

    /// Takes out everything.
    pub fn drain(&mut self) -> Vec<(K, u64)> {
        self.wake();
        self.take_up_to(u64::MAX).collect()
    }

    /// Takes out the values that were counted at most `most` times.
    fn take_up_to(&mut self, most: u64) -> impl Iterator<Item = (K, u64)> {
        let entries = self.values.iter().zip(self.counts.iter_mut());
        let taken = entries.filter(move |(_, count)| **count > 0 && **count <= most);
        taken.map(|(&value, count)| (value, std::mem::take(count)))
    }
}

/// Where a value is, if it is there.
#[inline(always)]
fn place<K: Key>(key: K) -> usize {
    (key.mix() >> (64 - BITS)) as usize
}

/// Raises the counts of the `keys` that are among the `values` and copies the others to `out`; how many these are. No
/// branch depends on the outcome.
#[inline(never)]
fn count_hot<K: Key>(keys: &[K], values: &[K; PLACES], counts: &mut [u64; PLACES], out: &mut [K]) -> usize {
    assert!(out.len() >= keys.len());
    let mut left = 0;
    for &key in keys {
        let at = place(key);
        let hit = values[at] == key;
        counts[at] += u64::from(hit);
        // SAFETY: `left` grows by at most one per key, so here it is below `keys.len()`.
        *unsafe { out.get_unchecked_mut(left) } = key;
        left += usize::from(!hit);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn nothing_is_lost_and_the_hot_ones_stay() {
        let mut filter = Filter::<u64>::new();
        let (mut missed, mut displaced, mut counts) = ([0; 64], Vec::new(), BTreeMap::new());
        let mut exact = BTreeMap::new();
        let mut missed_late = 0;
        for block in 0..2_000u64 {
            // Key 0 (which a fresh entry would equal) and three more are hot.
            let keys: Vec<u64> =
                (0..64).map(|i| if i % 2 == 0 { i % 8 } else { 1000 + block * 64 + i }).collect();
            keys.iter().for_each(|&key| *exact.entry(key).or_insert(0) += 1);
            let left = filter.pass(&keys, &mut missed, &mut displaced);
            missed[..left].iter().for_each(|&key| *counts.entry(key).or_insert(0) += 1);
            displaced.iter().for_each(|&(key, count)| *counts.entry(key).or_insert(0) += count);
            missed_late += if block >= 1_000 { left } else { 0 };
        }
        filter.drain().into_iter().for_each(|(key, count)| *counts.entry(key).or_insert(0) += count);
        assert_eq!(counts, exact);
        assert!(missed_late <= 1_000 * 48, "at least half of the hot events are caught: {missed_late}");
    }
}
