//! A direct-mapped table of keys and counts: a hit raises a count, a miss displaces the older entry.

use crate::key::Key;

/// Up to one miss in so many events a predicted branch is cheaper than always storing both outcomes.
const RARE: usize = 24;

/// A table whose entries' counts are exact but not final.
#[derive(Debug)]
pub(crate) struct Table<K> {
    entries: Vec<(K, u64)>,
    /// How far a 64-bit hash is shifted to give an index.
    shift: u32,
    misses_are_rare: bool,
}

impl<K: Key> Table<K> {
    /// A table of at most `bytes` bytes (and at least one entry).
    pub fn new(bytes: usize) -> Self {
        let wanted = (bytes / size_of::<(K, u64)>()).clamp(2, 1 << 31);
        let bits = wanted.ilog2();
        Table { entries: vec![(K::default(), 0); 1 << bits], shift: 64 - bits, misses_are_rare: false }
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<(K, u64)>()
    }

    /// Counts `keys`; appends the entries they displace (some may be empty) to `out`.
    pub fn combine(&mut self, keys: &[K], out: &mut Vec<(K, u64)>) {
        if self.misses_are_rare {
            self.combine_predicted(keys, out);
        } else {
            self.combine_branch_free(keys, out);
        }
        self.misses_are_rare = out.len() * RARE <= keys.len();
    }

    fn combine_predicted(&mut self, keys: &[K], out: &mut Vec<(K, u64)>) {
        let (entries, shift) = (&mut self.entries[..], self.shift);
        for &key in keys {
            let entry = entry(entries, shift, key);
            if entry.0 == key {
                entry.1 += 1;
            } else {
                let older = std::mem::replace(entry, (key, 1));
                displace(out, older);
            }
        }
    }

    fn combine_branch_free(&mut self, keys: &[K], out: &mut Vec<(K, u64)>) {
        out.resize(keys.len(), (K::default(), 0));
        let (entries, shift) = (&mut self.entries[..], self.shift);
        let displaced = combine_always(keys, entries, shift, &mut out[..]);
        out.truncate(displaced);
    }

    /// Takes out all entries.
    pub fn drain(&mut self) -> Vec<(K, u64)> {
        let entries = self.entries.iter_mut().filter(|entry| entry.1 > 0);
        entries.map(std::mem::take).collect()
    }
}

#[inline(always)]
fn entry<K: Key>(entries: &mut [(K, u64)], shift: u32, key: K) -> &mut (K, u64) {
    debug_assert!(entries.len() as u64 > u64::MAX >> shift);
    // SAFETY: there are `1 << bits` entries and `shift` is `64 - bits`, so a shifted 64-bit hash is an index.
    unsafe { entries.get_unchecked_mut((key.mix() >> shift) as usize) }
}

/// Out of line, so that the loop around it stays small.
#[cold]
#[inline(never)]
fn displace<K: Key>(out: &mut Vec<(K, u64)>, older: (K, u64)) {
    out.push(older);
}

/// Writes every entry to `out` and only moves on after a miss; how many misses.
#[inline(never)]
fn combine_always<K: Key>(keys: &[K], entries: &mut [(K, u64)], shift: u32, out: &mut [(K, u64)]) -> usize {
    assert!(out.len() >= keys.len());
    let mut displaced = 0;
    for &key in keys {
        let entry = entry(entries, shift, key);
        let hit = entry.0 == key;
        // SAFETY: `displaced` grows by at most one per key, so here it is below `keys.len()`.
        *unsafe { out.get_unchecked_mut(displaced) } = *entry;
        displaced += usize::from(!hit);
        // A mask: written as a choice it is compiled to a branch.
        *entry = (key, (entry.1 & u64::from(hit).wrapping_neg()) + 1);
    }
    displaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn through(table: &mut Table<u64>, keys: &[u64], predicted: bool) -> BTreeMap<u64, u64> {
        let mut counts = BTreeMap::new();
        let mut out = Vec::new();
        for block in keys.chunks(100) {
            out.clear();
            match predicted {
                true => table.combine_predicted(block, &mut out),
                false => table.combine_branch_free(block, &mut out),
            }
            out.iter().for_each(|&(key, count)| *counts.entry(key).or_default() += count);
        }
        table.drain().into_iter().for_each(|(key, count)| *counts.entry(key).or_default() += count);
        counts.retain(|_, count| *count > 0);
        counts
    }

    #[test]
    fn nothing_is_lost_or_invented() {
        let keys: Vec<u64> = (0..10_000u64).map(|i| i * i % 97 + (i % 7) * 1_000_003).collect();
        let mut exact = BTreeMap::new();
        keys.iter().for_each(|&key| *exact.entry(key).or_default() += 1);
        for bytes in [64, 1024, 1 << 20] {
            for predicted in [false, true] {
                let mut table = Table::new(bytes);
                assert_eq!(through(&mut table, &keys, predicted), exact);
                assert!(table.drain().is_empty());
            }
        }
    }
}
