//! What goes from the reader of the stream to the trees: keys with their weights, put together as far as that is cheap,
//! for many references at a time.

use crate::accesses::Accesses;
use crate::kind::Kind;
use sonde_event::PlainKind;

/// References in a full batch: what is under way stays in the second-level cache.
pub(crate) const BATCH: usize = 1 << 13;

/// One reference, or a part of a repeated one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Place of the instruction.
    pub pc: u64,
    /// Address of the data; its place once it is found.
    pub data: u64,
    /// Low 8 bytes of the value, if [`Event::VALUE`].
    pub value: u64,
    /// Bytes touched.
    pub size: u32,
    /// How often it counts.
    pub times: u16,
    /// What holds of it.
    pub flags: u16,
}

impl Event {
    /// A load, not a store.
    pub const LOAD: u16 = PlainKind::LOAD;
    /// The value is known.
    pub const VALUE: u16 = PlainKind::VALUE;
    /// The value has more than 8 bytes, and some that are not in `value` are not zero.
    pub const MORE: u16 = 4;
    /// It counts more than once.
    pub const REPEATED: u16 = 8;
    /// It has an address.
    pub const ADDRESS: u16 = 16;
    /// Only the cache model is to see it.
    pub const SILENT: u16 = 32;

    /// Whether all these flags hold.
    #[inline(always)]
    pub fn is(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Keys for one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entries<K> {
    /// With their weights; a key may come several times.
    pub list: Vec<(K, u64)>,
    /// Events that they stand for.
    pub events: u64,
}

impl<K> Default for Entries<K> {
    fn default() -> Entries<K> {
        Entries { list: Vec::new(), events: 0 }
    }
}

impl<K: Copy + PartialEq> Entries<K> {
    /// A key that came so often, at this weight each time.
    #[inline]
    pub fn push(&mut self, key: K, times: u64, weight: u64) {
        self.events = self.events.saturating_add(times);
        self.list.push((key, times.saturating_mul(weight)));
    }

    /// So many events came, keys for which are told of now or later. How many they are.
    #[inline]
    pub fn come(&mut self, events: usize) -> u64 {
        self.events = self.events.saturating_add(events as u64);
        events as u64
    }

    /// A key of events that have [come](Entries::come), each of weight 1.
    #[inline]
    pub fn tell(&mut self, key: K, times: u64) {
        self.list.push((key, times));
    }

    /// Keys of this weight; what comes several times in a row is put together.
    #[inline]
    pub fn extend(&mut self, keys: impl ExactSizeIterator<Item = K>, weight: u64) {
        self.events = self.events.saturating_add(keys.len() as u64);
        self.list.reserve(keys.len());
        let mut last: Option<(K, u64)> = None;
        for key in keys {
            match &mut last {
                Some((same, times)) if *same == key => *times += 1,
                _ => {
                    if let Some((key, times)) = last.replace((key, 1)) {
                        self.list.push((key, times.saturating_mul(weight)));
                    }
                }
            }
        }
        self.list.extend(last.map(|(key, times)| (key, times.saturating_mul(weight))));
    }

    /// Whether there is nothing to add to a tree or its events.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.events == 0
    }

    /// Empties it; its memory stays.
    pub fn clear(&mut self) {
        self.list.clear();
        self.events = 0;
    }
}

/// Keys of one dimension, by kind, of two dimensions, and references in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    one: [Entries<u64>; Kind::ALL.len()],
    pub edges: Entries<[u64; 2]>,
    pub code_data: Entries<[u64; 2]>,
    /// References in the order in which they were made, as far as that is known, if the cache model wants them; and
    /// what each of them weighs.
    pub accesses: Accesses,
    pub weight: u64,
    /// References that nobody recorded may have come before: the cache model forgets.
    pub after_gap: bool,
    /// The accesses are not all that were made, or not where they belong in the order: the cache model cannot judge them.
    pub out_of_order: bool,
}

impl Batch {
    /// Most bytes that references take: their addresses, values, pairs, zero loads, an eighth more that rows give, and their
    /// accesses.
    pub const BYTES: usize = BATCH * ((3 * 16 + 24) * 9 / 8 + Accesses::BYTES);

    /// The keys of a kind of one dimension.
    #[inline]
    pub fn of(&self, kind: Kind) -> &Entries<u64> {
        &self.one[kind as usize]
    }

    /// The same, to be added to.
    #[inline]
    pub fn of_mut(&mut self, kind: Kind) -> &mut Entries<u64> {
        &mut self.one[kind as usize]
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.one.iter().all(Entries::is_empty)
            && self.edges.is_empty()
            && self.code_data.is_empty()
            && self.accesses.len() == 0
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let one: usize = self.one.iter().map(|entries| entries.list.capacity()).sum();
        let two = self.edges.list.capacity() + self.code_data.list.capacity();
        one * 16 + two * 24 + self.accesses.memory_bytes()
    }

    /// Empties it; its memory stays.
    pub fn clear(&mut self) {
        self.one.iter_mut().for_each(Entries::clear);
        self.edges.clear();
        self.code_data.clear();
        self.accesses.clear();
        (self.after_gap, self.out_of_order) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_a_row_is_put_together() {
        let mut entries = Entries::default();
        entries.extend([7u64, 7, 7, 8, 7].into_iter(), 10);
        entries.extend(std::iter::empty::<u64>().collect::<Vec<_>>().into_iter(), 10);
        entries.push(9, 2, 1);
        assert_eq!(entries.list, [(7, 30), (8, 10), (7, 10), (9, 2)]);
        assert_eq!(entries.events, 7);
    }
}
