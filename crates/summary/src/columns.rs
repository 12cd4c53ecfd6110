//! The references of a batch sorted out by what each tree wants of them, in one pass.

use crate::batch::Event;
use crate::kind::Kind;

/// Code by data is kept by lines of this size: pairs are many, and hot ones reach over whole lines.
const LINE: u64 = 64;

/// Keys of a batch.
#[derive(Default)]
pub(crate) struct Columns {
    /// Loads, stores, load values, zero loads, narrow operands.
    one: [Vec<u64>; 5],
    lengths: [usize; 5],
    pairs: Vec<[u64; 2]>,
    pairs_length: usize,
    /// Events that count more than once.
    pub repeated: Vec<Event>,
}

const KINDS: [Kind; 5] =
    [Kind::LoadAddresses, Kind::StoreAddresses, Kind::LoadValues, Kind::ZeroLoads, Kind::NarrowPcs];

/// The flags that must hold for a kind, those that must not, and what its key is.
const fn rule(kind: Kind) -> (u16, u16) {
    match kind {
        Kind::LoadAddresses => (Event::LOAD | Event::ADDRESS, 0),
        Kind::StoreAddresses => (Event::ADDRESS, Event::LOAD),
        Kind::LoadValues => (Event::LOAD | Event::VALUE, 0),
        Kind::ZeroLoads => (Event::ZERO | Event::ADDRESS, 0),
        _ => (Event::NARROW, 0),
    }
}

/// The key that a tree of one dimension wants of an event, if it wants it.
pub(crate) fn key(kind: Kind, event: &Event) -> Option<u64> {
    let (must, must_not) = rule(kind);
    (KINDS.contains(&kind) && event.flags & (must | must_not) == must).then_some(match kind {
        Kind::LoadValues => event.value,
        Kind::NarrowPcs => event.pc,
        _ => event.data,
    })
}

/// The pair of code and data.
#[inline(always)]
pub(crate) fn pair(event: &Event) -> [u64; 2] {
    [event.pc, event.data / LINE * LINE]
}

impl Columns {
    /// Takes the references of a batch.
    pub fn sort_out(&mut self, events: &[Event]) {
        self.repeated.clear();
        let room = events.len();
        if self.pairs.len() < room {
            self.pairs.resize(room, [0; 2]);
            self.one.iter_mut().for_each(|column| column.resize(room, 0));
        }
        let mut lengths = [0; 5];
        let mut pairs_length = 0;
        let [loads, stores, values, zeros, narrow] = &mut self.one;
        let pairs = &mut self.pairs;
        for event in events {
            if event.times != 1 {
                self.repeated.push(*event);
                continue;
            }
            // Whether an event belongs to a column cannot be predicted: each key is written, and kept or not.
            let belongs = |kind| {
                let (must, must_not) = rule(kind);
                usize::from(event.flags & (must | must_not) == must)
            };
            loads[lengths[0]] = event.data;
            lengths[0] += belongs(Kind::LoadAddresses);
            stores[lengths[1]] = event.data;
            lengths[1] += belongs(Kind::StoreAddresses);
            values[lengths[2]] = event.value;
            lengths[2] += belongs(Kind::LoadValues);
            zeros[lengths[3]] = event.data;
            lengths[3] += belongs(Kind::ZeroLoads);
            narrow[lengths[4]] = event.pc;
            lengths[4] += belongs(Kind::NarrowPcs);
            pairs[pairs_length] = pair(event);
            pairs_length += usize::from(event.is(Event::ADDRESS));
        }
        (self.lengths, self.pairs_length) = (lengths, pairs_length);
    }

    /// The keys of a kind of one dimension.
    pub fn one(&mut self, kind: Kind) -> &mut [u64] {
        match KINDS.iter().position(|k| *k == kind) {
            Some(i) => &mut self.one[i][..self.lengths[i]],
            None => &mut [],
        }
    }

    /// The pairs of code and data.
    pub fn pairs(&mut self) -> &mut [[u64; 2]] {
        &mut self.pairs[..self.pairs_length]
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let one: usize = self.one.iter().map(|column| column.capacity() * 8).sum();
        one + self.pairs.capacity() * 16 + self.repeated.capacity() * size_of::<Event>()
    }
}
