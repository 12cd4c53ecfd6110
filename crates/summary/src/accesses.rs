//! References in the order in which they were made, for the cache model, in as few bytes as it needs: most of them are
//! written one column after the other, far apart, and read once.

use crate::batch::Event;
use sonde_cache::{Bounds, Cache, Reference};

/// A load, not a store.
const LOAD: u64 = 1;
/// A load whose value is known.
const VALUE: u64 = 2;
/// What is there is not an address, but where among the odd ones the reference is.
const ODD: u64 = 4;
/// Room for flags: no line is shorter than eight bytes.
const FLAGS: u64 = 7;
/// No reference: it waits for its place, or has no address.
const NOTHING: u64 = ODD | u64::MAX << 3;

/// A reference that is not known to lie in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Odd {
    data: u64,
    size: u32,
}

/// A reference. Its parts side by side: so each is written, and read, in one line of the processor's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    /// Its address, with flags instead of its low bits.
    word: u64,
    /// Its value, where flags say that it is known.
    value: u64,
}

/// References of a batch; memory is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accesses {
    list: Vec<Access>,
    used: usize,
    odd: Vec<Odd>,
}

/// What is the same about one reference in many passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// [`Event::LOAD`] and the like.
    pub flags: u16,
    pub size: u32,
    /// Bytes of a line of the first level, less one.
    pub line_mask: u64,
}

impl Site {
    #[inline(always)]
    fn word(self, data: u64, flags: u64, odd: &mut Vec<Odd>) -> u64 {
        if (data & self.line_mask) + u64::from(self.size.max(1)) <= self.line_mask + 1 {
            data & !FLAGS | flags
        } else {
            odd.push(Odd { data, size: self.size });
            (odd.len() as u64 - 1) << 3 | ODD | flags
        }
    }
}

/// The numbers of a column; one alone stands for all.
#[inline(always)]
fn scatter(column: &[u64], numbers: &[u32], mut set: impl FnMut(usize, u64)) {
    match column {
        [only] => numbers.iter().for_each(|number| set(*number as usize, *only)),
        _ => numbers.iter().zip(column).for_each(|(number, of)| set(*number as usize, *of)),
    }
}

impl Accesses {
    /// Most bytes that a reference takes.
    pub const BYTES: usize = 16 + size_of::<Odd>();

    /// How many.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Access>() + self.odd.capacity() * size_of::<Odd>()
    }

    /// Empties it; its memory stays.
    pub fn clear(&mut self) {
        self.used = 0;
        self.odd.clear();
    }

    /// Room for so many more, each of which has to be set. Where the first is.
    pub fn more(&mut self, count: usize) -> usize {
        let from = self.used;
        self.used += count;
        if self.list.len() < self.used {
            self.list.resize(self.used, Access { word: NOTHING, value: 0 });
        }
        from
    }

    /// One reference, if it has an address.
    pub fn set(&mut self, index: usize, event: Option<&Event>) {
        let event = event.filter(|event| event.is(Event::ADDRESS));
        let word = event.map_or(NOTHING, |event| {
            self.odd.push(Odd { data: event.data, size: event.size });
            (self.odd.len() as u64 - 1) << 3 | ODD | flags(event.flags)
        });
        self.list[index] = Access { word, value: event.map_or(0, |event| event.value) };
    }

    /// The same reference of many passes: of pass `i` at `from + numbers[i]`. One address or value alone stands for all; no
    /// value is none that is known.
    pub fn set_all(&mut self, from: usize, numbers: &[u32], site: Site, data: &[u64], values: &[u64]) {
        let flags = flags(site.flags);
        let (list, odd) = (&mut self.list[from..], &mut self.odd);
        if flags & VALUE != 0 && data.len() == numbers.len() && values.len() == numbers.len() {
            for ((number, data), value) in numbers.iter().zip(data).zip(values) {
                list[*number as usize] = Access { word: site.word(*data, flags, odd), value: *value };
            }
            return;
        }
        match data {
            [only] => {
                let word = site.word(*only, flags, odd);
                numbers.iter().for_each(|number| list[*number as usize].word = word);
            }
            _ => scatter(data, numbers, |at, data| list[at].word = site.word(data, flags, odd)),
        }
        if flags & VALUE != 0 {
            scatter(values, numbers, |at, value| list[at].value = value);
        }
    }

    /// Asks the model for all of them, in their order; tells the known values of loads that missed the first level, or may
    /// have, and where they can have been found.
    pub fn play(&self, cache: &mut Cache, missed: impl FnMut(u64, Bounds)) {
        self.play_part(&self.list[..self.used], cache, missed);
    }

    /// The same for a part of a run: where a reference waits for its place, or has no address, the model forgets. (In a
    /// recording of everything such a reference is one line more or less among all that the model holds.)
    pub fn play_burst(&self, cache: &mut Cache, mut missed: impl FnMut(u64, Bounds)) {
        let mut parts = self.list[..self.used].split(|access| access.word == NOTHING);
        if let Some(part) = parts.next() {
            self.play_part(part, cache, &mut missed);
        }
        for part in parts {
            cache.forget();
            self.play_part(part, cache, &mut missed);
        }
    }

    /// Counts all of them as what cannot be judged.
    pub fn give_up(&self, cache: &mut Cache) {
        let made = self.list[..self.used].iter().filter(|access| access.word != NOTHING);
        made.for_each(|access| cache.cannot_judge(access.word & LOAD != 0));
    }

    #[inline(always)]
    fn play_part(&self, part: &[Access], cache: &mut Cache, mut missed: impl FnMut(u64, Bounds)) {
        let references = part.iter().filter_map(|&Access { word, value }| {
            let is_load = word & LOAD != 0;
            let Odd { data, size } = match word & ODD {
                0 => Odd { data: word, size: 1 },
                _ => *self.odd.get((word >> 3) as usize)?,
            };
            Some((Reference { is_load, address: data, size: size.into() }, (word, value)))
        });
        cache.refer_all(references, |(word, value), found| {
            if word & VALUE != 0 {
                missed(value, found);
            }
        });
    }
}

fn flags(of: u16) -> u64 {
    // The model tells nobody of values that it does not know.
    let of = if of & Event::SILENT != 0 { of & !Event::VALUE } else { of };
    let is = |flags: u16| of & flags == flags;
    (u64::from(is(Event::LOAD)) * LOAD) | (u64::from(is(Event::LOAD | Event::VALUE)) * VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_cache::{Config, Found};

    /// However references are put in, the model sees each as it is and in its order.
    #[test]
    fn columns_come_back_in_their_order() {
        let config = Config::parse("256:2:8,1K:2:8").unwrap();
        let (mut packed, mut plain) = (Cache::new(&config), Cache::new(&config));
        let mut accesses = Accesses::default();
        for round in 0..3 {
            accesses.clear();
            let at = |i: u64| (i * i * 37 + round * 8) % 700;
            let (numbers, data): (Vec<u32>, Vec<u64>) = (0..200).map(|i| (i as u32 * 3, at(i))).unzip();
            let values: Vec<u64> = data.iter().map(|data| data ^ 5).collect();
            let from = accesses.more(600);
            let site = |flags, size| Site { flags, size, line_mask: 7 };
            let load = Event::LOAD | Event::VALUE;
            accesses.set_all(from, &numbers, site(load, 4), &data, &values);
            accesses.set_all(from + 1, &numbers, site(0, 16), &[640], &[]);
            for (i, number) in numbers.iter().enumerate() {
                let flags = if i % 2 == 0 { load | Event::ADDRESS } else { Event::LOAD };
                let event = Event { data: at(3 * i as u64), value: 9, size: 1, flags, ..Event::default() };
                accesses.set(from + 2 + *number as usize, Some(&event));
            }
            let (mut got, mut expected) = (Vec::new(), Vec::new());
            accesses.play(&mut packed, |value, found| got.push((value, found)));
            for i in 0..200 {
                expected.push((at(i) ^ 5, plain.load(at(i), 4)));
                plain.store(640, 16);
                if i % 2 == 0 {
                    expected.push((9, plain.load(at(3 * i), 1)));
                }
            }
            expected.retain(|(_, found)| found.farthest > Found::First);
            assert!(!got.is_empty());
            assert_eq!(got, expected);
            assert_eq!(packed.statistics(), plain.statistics());
        }
    }

    #[test]
    fn a_reference_without_a_place_makes_a_burst_forget() {
        let config = Config::default();
        let mut accesses = Accesses::default();
        let at = accesses.more(4);
        let event = Event { data: 640, size: 4, flags: Event::LOAD | Event::ADDRESS, ..Event::default() };
        for index in [0, 1, 3] {
            accesses.set(at + index, Some(&event));
        }
        accesses.set(at + 2, None);
        let counts = |play: fn(&Accesses, &mut Cache)| {
            let mut cache = Cache::new(&config);
            cache.forget();
            play(&accesses, &mut cache);
            let counted = cache.statistics();
            (counted.loads, counted.first_load_unknown, counted.first_load_misses)
        };
        assert_eq!(counts(|accesses, cache| accesses.play_burst(cache, |_, _| {})), (3, 2, 0));
        assert_eq!(counts(|accesses, cache| accesses.play(cache, |_, _| {})), (3, 1, 0));
        assert_eq!(counts(Accesses::give_up), (3, 3, 0));
    }
}
