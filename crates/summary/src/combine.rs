//! Equal keys of a burst put together before they go down a tree: a burst is mostly loops.
//!
//! A direct-mapped table, emptied after each part of a burst. To sort the keys instead, which leaves each of them once,
//! measured five to eight times slower than this table, which lets some through twice.

use sonde_rap::Key;

/// Places of the table, as a power of two: as many as a batch has references.
const BITS: u32 = 12;

/// Keys and how often they came.
#[derive(Default)]
pub(crate) struct Combined<K> {
    table: Vec<(K, u32)>,
    /// Places in use.
    used: Vec<u16>,
    /// What was put together.
    entries: Vec<(K, u64)>,
}

impl<K: Key> Combined<K> {
    /// Each key with its weight. Some may be there several times.
    pub fn weigh(&mut self, keys: &[K], weight: u64) -> &[(K, u64)] {
        self.entries.clear();
        self.table.resize(1 << BITS, (K::default(), 0));
        for &key in keys {
            let place = (key.mix() >> (64 - BITS)) as usize;
            let entry = &mut self.table[place];
            if entry.0 == key {
                self.take_place(place);
                continue;
            }
            let older = std::mem::replace(entry, (key, 1));
            match older.1 {
                0 => self.used.push(place as u16),
                times => self.entries.push((older.0, weight.saturating_mul(times.into()))),
            }
        }
        for place in self.used.drain(..) {
            let entry = &mut self.table[usize::from(place)];
            self.entries.push((entry.0, weight.saturating_mul(entry.1.into())));
            entry.1 = 0;
        }
        &self.entries
    }

    /// The key is the one of its place, which may be empty.
    #[inline(always)]
    fn take_place(&mut self, place: usize) {
        let times = &mut self.table[place].1;
        if *times == 0 {
            self.used.push(place as u16);
        }
        *times += 1;
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.table.capacity() * size_of::<(K, u32)>()
            + self.used.capacity() * 2
            + self.entries.capacity() * size_of::<(K, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn nothing_is_lost() {
        let mut combined = Combined::<u64>::default();
        let mut state = 1u64;
        for round in 0..50u64 {
            let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
            let keys: Vec<u64> = (0..round * 97)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
                    // Key 0, which an empty place equals, is among them.
                    if i % 3 == 0 { i % 9 } else { state >> 50 }
                })
                .collect();
            keys.iter().for_each(|key| *exact.entry(*key).or_default() += 7);
            let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
            for (key, weight) in combined.weigh(&keys, 7) {
                *sums.entry(*key).or_default() += weight;
            }
            assert_eq!(sums, exact);
        }
    }
}
