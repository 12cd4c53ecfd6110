//! The keys of one reference in many passes, for every kind that wants them.

use crate::batch::{BATCH, Batch, Entries, Event};
use crate::columns::Wants;
use crate::kind::Kind;
use crate::reference::is_narrow;
use crate::rows::{ROW, Rows};
use crate::small::Small;
use sonde_event::PlainKind;

/// Code by data is kept by lines of this size: pairs are many, and hot ones reach over whole lines.
const LINE: u64 = 64;

/// The line that an address lies in.
#[inline(always)]
pub(crate) fn line(data: u64) -> u64 {
    data / LINE * LINE
}

/// Most rows of each kind: together 2.5 MB. Fewer for addresses send more keys to the trees, which look at more memory for each.
const MOST_ROWS: [(Kind, usize); 7] = [
    (Kind::LoadAddresses, 1 << 14),
    (Kind::StoreAddresses, 1 << 13),
    (Kind::LoadValues, 1 << 12),
    (Kind::ZeroLoads, 1 << 11),
    (Kind::CodeData, 1 << 13),
    (Kind::NarrowPcs, 1 << 8),
    (Kind::Edges, 1 << 8),
];
/// Rows of each kind that may be given away in a batch: so they add an eighth to its keys at most.
pub(crate) const GIFTS: usize = BATCH / 8 / ROW;
/// Rows that are emptied together: no more keys than a batch has references.
const TOGETHER: usize = BATCH / ROW;

/// Makes keys for a batch.
pub(crate) struct Keys {
    wants: Wants,
    weight: u64,
    /// How often each small value was loaded in this batch, or ever, if there are rows.
    small: Small,
    /// By kind.
    rows: [Rows; Kind::ALL.len()],
    some: Vec<u64>,
}

impl Keys {
    /// For these kinds, with at most so many bytes of rows; 0 where weights differ.
    pub fn new(wants: Wants, bytes: usize) -> Keys {
        let wanted = |kind: Kind| match kind {
            Kind::LoadAddresses => wants.loads,
            Kind::StoreAddresses => wants.stores,
            Kind::LoadValues => wants.values,
            Kind::ZeroLoads => wants.zeros,
            Kind::NarrowPcs => wants.narrow,
            Kind::Edges => wants.edges,
            _ => wants.code_data,
        };
        let most: usize = MOST_ROWS.iter().filter(|(kind, _)| wanted(*kind)).map(|(_, most)| most).sum();
        let mut rows: [Rows; Kind::ALL.len()] = Default::default();
        for (kind, len) in MOST_ROWS.into_iter().filter(|(kind, _)| wanted(*kind)) {
            rows[kind as usize] = Rows::new(len.min(bytes / Rows::BYTES * len / most));
        }
        Keys { wants, weight: 1, small: Small::new(), rows, some: Vec::new() }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let rows = self.rows.iter().map(Rows::memory_bytes).sum::<usize>();
        self.small.memory_bytes() + rows + self.some.capacity() * 8
    }

    /// A batch begins whose references weigh so much.
    pub fn begin(&mut self, weight: u64) {
        self.weight = weight;
        self.rows.iter_mut().for_each(|rows| rows.may_give(GIFTS));
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
        let wants = self.wants;
        if load && wants.loads {
            self.add_numbers(batch, Kind::LoadAddresses, count, data);
        } else if !load && wants.stores {
            self.add_numbers(batch, Kind::StoreAddresses, count, data);
        }
        if wants.code_data {
            self.add_pairs(&mut batch.code_data, pc, count, data);
        }
        if values.is_empty() {
            return;
        }
        if wants.narrow {
            let size = u32::from(kind.size);
            let narrow = values.iter().map(|value| u64::from(is_narrow(*value, size))).sum::<u64>();
            let times = if values.len() < count { narrow * count as u64 } else { narrow };
            if times > 0 {
                self.add_numbers(batch, Kind::NarrowPcs, times as usize, &[pc]);
            }
        }
        let zeros = if load && wants.values { self.add_values(batch, count, values) } else { None };
        if load && wants.zeros {
            let zeros = zeros.unwrap_or_else(|| values.iter().filter(|value| **value == 0).count());
            self.add_zeros(batch, count, data, values, zeros);
        }
    }

    /// Numbers of one kind.
    fn add_numbers(&mut self, batch: &mut Batch, kind: Kind, count: usize, numbers: &[u64]) {
        let (entries, rows, weight) = (batch.of_mut(kind), &mut self.rows[kind as usize], self.weight);
        match numbers {
            [only] if rows.is_empty() => entries.push(*only, count as u64, weight),
            _ if rows.is_empty() => entries.extend(numbers.iter().copied(), weight),
            [only] => rows.add(0, *only, entries.come(count), |_, number, times| entries.tell(number, times)),
            _ => {
                entries.come(count);
                rows.add_all(0, numbers, |number| number, |_, number, times| entries.tell(number, times));
            }
        }
    }

    /// Lines that an instruction refers to: rows are of lines of one instruction.
    fn add_pairs(&mut self, entries: &mut Entries<[u64; 2]>, pc: u64, count: usize, data: &[u64]) {
        let (rows, weight) = (&mut self.rows[Kind::CodeData as usize], self.weight);
        let is_one_line = |data: &[u64]| data.iter().all(|at| line(*at) == line(data[0]));
        match if is_one_line(data) { &data[..data.len().min(1)] } else { data } {
            [only] if rows.is_empty() => entries.push([pc, line(*only)], count as u64, weight),
            _ if rows.is_empty() => entries.extend(data.iter().map(|data| [pc, line(*data)]), weight),
            [only] => rows.add(pc, *only / LINE, entries.come(count), |pc, line, times| {
                entries.tell([pc, line * LINE], times)
            }),
            _ => {
                entries.come(count);
                rows.add_all(
                    pc,
                    data,
                    |data| data / LINE,
                    |pc, line, times| entries.tell([pc, line * LINE], times),
                );
            }
        }
    }

    /// A branch, from and to.
    pub fn add_edge(&mut self, batch: &mut Batch, [from, to]: [u64; 2]) {
        let (entries, rows) = (&mut batch.edges, &mut self.rows[Kind::Edges as usize]);
        match rows.is_empty() {
            true => entries.push([from, to], 1, self.weight),
            false => rows.add(from, to, entries.come(1), |from, to, times| entries.tell([from, to], times)),
        }
    }

    /// Values of loads; how many are zero, if they were looked at one by one.
    fn add_values(&mut self, batch: &mut Batch, count: usize, values: &[u64]) -> Option<usize> {
        let entries = batch.of_mut(Kind::LoadValues);
        if let [only] = values {
            if !self.small.add(*only, count) {
                self.add_numbers(batch, Kind::LoadValues, count, values);
            } else if !self.rows[Kind::LoadValues as usize].is_empty() {
                entries.come(count);
            }
            return None;
        }
        let mut some = std::mem::take(&mut self.some);
        let list = room(&mut some, values.len());
        let (large, zeros) = self.small.take(values, list);
        if !self.rows[Kind::LoadValues as usize].is_empty() {
            entries.come(values.len() - large);
        }
        self.add_some(batch, Kind::LoadValues, &list[..large]);
        self.some = some;
        Some(zeros)
    }

    /// Addresses where so many zeros were loaded, for each value there is.
    fn add_zeros(&mut self, batch: &mut Batch, count: usize, data: &[u64], values: &[u64], zeros: usize) {
        match (data, values) {
            _ if zeros == 0 => {}
            (_, [_]) => self.add_numbers(batch, Kind::ZeroLoads, count, data),
            ([_], _) => self.add_numbers(batch, Kind::ZeroLoads, zeros, data),
            _ if zeros == values.len() => self.add_numbers(batch, Kind::ZeroLoads, count, data),
            _ => {
                let mut some = std::mem::take(&mut self.some);
                let list = room(&mut some, values.len());
                let mut length = 0;
                for (data, value) in data.iter().zip(values) {
                    list[length] = *data;
                    length += usize::from(*value == 0);
                }
                self.add_some(batch, Kind::ZeroLoads, &list[..length]);
                self.some = some;
            }
        }
    }

    /// Numbers each of which came once.
    fn add_some(&mut self, batch: &mut Batch, kind: Kind, numbers: &[u64]) {
        if !numbers.is_empty() {
            self.add_numbers(batch, kind, numbers.len(), numbers);
        }
    }

    /// The batch is complete.
    pub fn end(&mut self, batch: &mut Batch) {
        let (entries, weight) = (batch.of_mut(Kind::LoadValues), self.weight);
        if self.rows[Kind::LoadValues as usize].is_empty() {
            self.small.drain(|value, times| entries.push(value, times, weight));
        } else if self.small.is_full() {
            self.small.drain(|value, times| entries.tell(value, times));
        }
    }

    /// Empties all rows into batches, which `send` takes.
    pub fn drain(&mut self, batch: &mut Batch, mut send: impl FnMut(&mut Batch)) {
        // Where there are no rows for values, none are left: each batch ends with them.
        self.small.drain(|value, times| batch.of_mut(Kind::LoadValues).tell(value, times));
        for kind in MOST_ROWS.map(|(kind, _)| kind) {
            let rows = &mut self.rows[kind as usize];
            for at in 0..rows.len() {
                match kind {
                    Kind::CodeData => {
                        let entries = &mut batch.code_data;
                        rows.empty(at, &mut |pc, line, times| entries.tell([pc, line * LINE], times));
                    }
                    Kind::Edges => {
                        let entries = &mut batch.edges;
                        rows.empty(at, &mut |from, to, times| entries.tell([from, to], times));
                    }
                    _ => rows.empty(at, &mut |_, number, times| batch.of_mut(kind).tell(number, times)),
                }
                if at % TOGETHER == TOGETHER - 1 {
                    send(batch);
                }
            }
            send(batch);
        }
    }
}

fn room(some: &mut Vec<u64>, length: usize) -> &mut [u64] {
    if some.len() < length {
        some.resize(length, 0);
    }
    &mut some[..length]
}
