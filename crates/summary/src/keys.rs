//! The keys of one reference in many passes, for every kind that wants them.

use crate::batch::{Batch, Event};
use crate::columns::Wants;
use crate::kind::Kind;
use crate::reference::is_narrow;
use sonde_event::PlainKind;

/// Code by data is kept by lines of this size: pairs are many, and hot ones reach over whole lines.
const LINE: u64 = 64;
/// Values below this are counted by themselves: most are.
const SMALL: usize = 1 << 10;

/// The line that an address lies in.
#[inline(always)]
pub(crate) fn line(data: u64) -> u64 {
    data / LINE * LINE
}

/// Makes keys for a batch.
pub(crate) struct Keys {
    wants: Wants,
    weight: u64,
    /// How often each small value was loaded in this batch.
    small: Box<[u64; SMALL]>,
    some: Vec<u64>,
}

impl Keys {
    /// For these kinds.
    pub fn new(wants: Wants) -> Keys {
        Keys { wants, weight: 1, small: Box::new([0; SMALL]), some: Vec::new() }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.small) + self.some.capacity() * 8
    }

    /// A batch begins whose references weigh so much.
    pub fn begin(&mut self, weight: u64) {
        self.weight = weight;
    }

    /// Whether values of references of this kind are needed.
    pub fn wants_values(&self, kind: PlainKind) -> bool {
        let of_loads = self.wants.values || self.wants.zeros || self.wants.misses;
        of_loads && kind.flags & Event::LOAD != 0 || self.wants.narrow && matches!(kind.size, 4 | 8)
    }

    /// Adds a reference that was made `count` times, to these places, with these values if they are known; one place or
    /// value alone stands for all.
    pub fn add(
        &mut self,
        batch: &mut Batch,
        pc: u64,
        kind: PlainKind,
        count: usize,
        data: &[u64],
        values: &[u64],
    ) {
        let load = kind.flags & Event::LOAD != 0;
        let (wants, weight) = (self.wants, self.weight);
        if load && wants.loads {
            add_all(batch, Kind::LoadAddresses, count, data, weight);
        } else if !load && wants.stores {
            add_all(batch, Kind::StoreAddresses, count, data, weight);
        }
        if wants.code_data {
            match data {
                [only] => batch.code_data.push([pc, line(*only)], count as u64, weight),
                _ => batch.code_data.extend(data.iter().map(|data| [pc, line(*data)]), weight),
            }
        }
        if values.is_empty() {
            return;
        }
        if wants.narrow {
            let size = u32::from(kind.size);
            let narrow = values.iter().map(|value| u64::from(is_narrow(*value, size))).sum::<u64>();
            let times = if values.len() < count { narrow * count as u64 } else { narrow };
            if times > 0 {
                batch.of_mut(Kind::NarrowPcs).push(pc, times, weight);
            }
        }
        if load && wants.values {
            self.add_values(batch, count, values);
        }
        if load && wants.zeros {
            self.add_zeros(batch, count, data, values);
        }
    }

    fn add_values(&mut self, batch: &mut Batch, count: usize, values: &[u64]) {
        if let [only] = values {
            return batch.of_mut(Kind::LoadValues).push(*only, count as u64, self.weight);
        }
        // Whether a value is small cannot be predicted: each one is written, and kept or not.
        let some = room(&mut self.some, values.len());
        let mut large = 0;
        for &value in values {
            let is_large = value >= SMALL as u64;
            some[large] = value;
            large += usize::from(is_large);
            self.small[value as usize % SMALL] += u64::from(!is_large);
        }
        batch.of_mut(Kind::LoadValues).extend(some[..large].iter().copied(), self.weight);
    }

    fn add_zeros(&mut self, batch: &mut Batch, count: usize, data: &[u64], values: &[u64]) {
        let zeros = batch.of_mut(Kind::ZeroLoads);
        match (data, values) {
            (_, [value]) if *value != 0 => {}
            (_, [_]) => add_all(batch, Kind::ZeroLoads, count, data, self.weight),
            ([only], _) => {
                let times = values.iter().filter(|value| **value == 0).count();
                if times > 0 {
                    zeros.push(*only, times as u64, self.weight);
                }
            }
            _ => {
                let some = room(&mut self.some, values.len());
                let mut length = 0;
                for (data, value) in data.iter().zip(values) {
                    some[length] = *data;
                    length += usize::from(*value == 0);
                }
                zeros.extend(some[..length].iter().copied(), self.weight);
            }
        }
    }

    /// The batch is complete.
    pub fn end(&mut self, batch: &mut Batch) {
        if !self.wants.values {
            return;
        }
        let entries = batch.of_mut(Kind::LoadValues);
        for (value, times) in self.small.iter_mut().enumerate().filter(|(_, times)| **times > 0) {
            entries.push(value as u64, std::mem::take(times), self.weight);
        }
    }
}

fn room(some: &mut Vec<u64>, length: usize) -> &mut [u64] {
    if some.len() < length {
        some.resize(length, 0);
    }
    &mut some[..length]
}

fn add_all(batch: &mut Batch, kind: Kind, count: usize, data: &[u64], weight: u64) {
    let entries = batch.of_mut(kind);
    match data {
        [only] => entries.push(*only, count as u64, weight),
        _ => entries.extend(data.iter().copied(), weight),
    }
}
