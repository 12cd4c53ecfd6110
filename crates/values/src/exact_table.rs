//! Counts every value of every load in bounded memory: a Space-Saving summary (Metwally et al. 2005) per load.
//!
//! A load with at most `counters` different values is counted exactly. With more, a new value takes over the counter of
//! the rarest and its count, remembered as the error: a count is too high by at most its error, no error is above
//! executions / counters, and a value that has no counter was there at most as often as the lowest count says. The sum
//! of a load's counts is always the number of its samples.
//!
//! Equal values in a row are gathered first: a load that keeps its value costs one comparison, and the number of
//! changes tells glacial loads.

use crate::error::{ValuesError, within};
use crate::hash::PcMap;
use crate::merge;
use crate::profile::{LoadValues, MAX_VALUES, ValueCount};

/// Bounds of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableConfig {
    /// Counters per load, 2 to 64.
    pub counters: usize,
    /// Most loads, 1024 and more. When they are reached the coldest quarter is forgotten.
    pub loads: usize,
}

impl Default for TableConfig {
    fn default() -> Self {
        TableConfig { counters: 16, loads: 1 << 16 }
    }
}

/// A load whose values stay for at least so many executions on average, with at least two values that were there this
/// often, is glacial.
const GLACIAL_RUN: u64 = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counter {
    value: u64,
    count: u64,
    error: u64,
}

/// The value of a load's last executions, and how many they are; not yet counted in its entry. Apart from it, because
/// this much is touched for every load and has to stay in the cache.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    value: u64,
    run: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    /// The most frequent value.
    top: Counter,
    pc: u64,
    changes: u64,
    /// What may have been forgotten of it before it came (back) in.
    missed: u64,
    /// Which bank holds the other counters, and how many it holds.
    bank: Option<u32>,
    used: u16,
}

/// The table.
#[derive(Clone, Debug)]
pub struct ExactTable {
    config: TableConfig,
    latest: Vec<Latest>,
    entries: Vec<Entry>,
    index: PcMap<u32>,
    /// Counters beyond the top one, in banks of `counters - 1`; most loads never need one.
    values: Vec<u64>,
    counts: Vec<u64>,
    errors: Vec<u64>,
    free_banks: Vec<u32>,
    version: u64,
    /// Most samples of any load that was forgotten.
    ceiling: u64,
    evicted_loads: u64,
    evicted_samples: u64,
}

impl ExactTable {
    /// An empty table.
    pub fn new(config: TableConfig) -> Result<ExactTable, ValuesError> {
        within("counters per load", config.counters as f64, 2.0, MAX_VALUES as f64)?;
        within("most loads", config.loads as f64, 1024.0, f64::from(1 << 24))?;
        Ok(ExactTable {
            config,
            latest: Vec::new(),
            entries: Vec::new(),
            index: PcMap::default(),
            values: Vec::new(),
            counts: Vec::new(),
            errors: Vec::new(),
            free_banks: Vec::new(),
            version: 1,
            ceiling: 0,
            evicted_loads: 0,
            evicted_samples: 0,
        })
    }

    /// Changes when entries have moved: then [`entry`](Self::entry) has to be asked again.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Makes room for those of these loads that have no entry, so that [`entry`](Self::entry) moves none for them.
    pub fn reserve(&mut self, pcs: impl Iterator<Item = u64>) {
        let more = pcs.filter(|pc| !self.index.contains_key(pc)).count();
        if self.entries.len() + more > self.config.loads {
            self.forget_coldest(more.max(self.config.loads / 4));
        }
    }

    /// The entry of a load, made if needed.
    pub fn entry(&mut self, pc: u64) -> u32 {
        if let Some(entry) = self.index.get(&pc) {
            return *entry;
        }
        let top = Counter::default();
        let (missed, entry) = (self.ceiling, self.entries.len() as u32);
        self.latest.push(Latest::default());
        self.entries.push(Entry { top, pc, changes: 0, missed, bank: None, used: 0 });
        self.index.insert(pc, entry);
        entry
    }

    /// Counts a value of the load at a pc.
    pub fn add_at(&mut self, pc: u64, value: u64) {
        self.reserve(std::iter::once(pc));
        let entry = self.entry(pc);
        self.add(entry, value);
    }

    /// Counts a value of the load of an entry. Entries that do not exist are not counted.
    #[inline]
    pub fn add(&mut self, entry: u32, value: u64) {
        let Some(latest) = self.latest.get_mut(entry as usize) else { return };
        // A new entry has a run of 0 zeros: if the value is 0 that is right, else there is nothing to count yet.
        if latest.value == value {
            latest.run += 1;
        } else {
            let Latest { value: last, run } = std::mem::replace(latest, Latest { value, run: 1 });
            if run > 0 {
                self.entries[entry as usize].changes += 1;
                self.count(entry as usize, last, run);
            }
        }
    }

    #[inline]
    fn count(&mut self, entry: usize, value: u64, times: u64) {
        let top = &mut self.entries[entry].top;
        if top.value == value || top.count == 0 {
            top.value = value;
            top.count += times;
        } else {
            self.count_in_bank(entry, value, times);
        }
    }

    fn count_in_bank(&mut self, entry: usize, value: u64, times: u64) {
        let width = self.config.counters - 1;
        let load = &self.entries[entry];
        let (used, bank) = (load.used as usize, load.bank);
        let bank = bank.unwrap_or_else(|| self.new_bank(entry));
        let first = bank as usize * width;
        let mine = first..first + used;
        let found = self.values[mine.clone()].iter().position(|v| *v == value);
        let at = match found {
            Some(at) => {
                self.counts[first + at] += times;
                self.move_up(first, at)
            }
            None if used < width => {
                self.put(first + used, Counter { value, count: times, error: 0 });
                self.entries[entry].used += 1;
                used
            }
            None => {
                let counts = &self.counts[mine];
                // The top counter is the largest, so the smallest of the bank is the smallest of all.
                let at = (1..counts.len()).fold(0, |m, i| if counts[i] < counts[m] { i } else { m });
                let error = counts[at];
                self.put(first + at, Counter { value, count: error + times, error });
                at
            }
        };
        self.keep_top(entry, first + at);
    }

    /// Lets a counter pass the one before it if it has become larger: frequent values are then found early.
    #[inline]
    fn move_up(&mut self, first: usize, at: usize) -> usize {
        if at == 0 || self.counts[first + at] <= self.counts[first + at - 1] {
            return at;
        }
        for column in [&mut self.values, &mut self.counts, &mut self.errors] {
            column.swap(first + at, first + at - 1);
        }
        at - 1
    }

    fn new_bank(&mut self, entry: usize) -> u32 {
        let bank = self.free_banks.pop().unwrap_or_else(|| {
            let width = self.config.counters - 1;
            let bank = self.values.len() / width;
            for column in [&mut self.values, &mut self.counts, &mut self.errors] {
                column.resize(column.len() + width, 0);
            }
            bank as u32
        });
        self.entries[entry].bank = Some(bank);
        bank
    }

    fn put(&mut self, at: usize, counter: Counter) {
        (self.values[at], self.counts[at], self.errors[at]) = (counter.value, counter.count, counter.error);
    }

    fn get(&self, at: usize) -> Counter {
        Counter { value: self.values[at], count: self.counts[at], error: self.errors[at] }
    }

    #[inline]
    fn keep_top(&mut self, entry: usize, at: usize) {
        if self.counts[at] > self.entries[entry].top.count {
            let risen = self.get(at);
            let sunk = std::mem::replace(&mut self.entries[entry].top, risen);
            self.put(at, sunk);
        }
    }

    /// Counts the runs that are still open, so that counters tell everything.
    fn settle(&mut self, entry: usize) {
        let Latest { value, run } = self.latest[entry];
        self.latest[entry].run = 0;
        if run > 0 {
            self.count(entry, value, run);
        }
    }

    fn counters(&self, load: &Entry) -> impl Iterator<Item = Counter> + '_ {
        let first = load.bank.map_or(0, |b| b as usize * (self.config.counters - 1));
        let others = (first..first + load.used as usize).map(|at| self.get(at));
        std::iter::once(load.top).filter(|t| t.count > 0).chain(others)
    }

    fn seen(&self, entry: usize) -> u64 {
        self.latest[entry].run + self.counters(&self.entries[entry]).map(|c| c.count).sum::<u64>()
    }

    /// Forgets the loads that ran least.
    #[cold]
    fn forget_coldest(&mut self, count: usize) {
        let mut by_heat: Vec<(u64, u64, u32)> =
            self.entries.iter().enumerate().map(|(i, e)| (self.seen(i), e.pc, i as u32)).collect();
        let count = count.min(by_heat.len());
        if count == 0 {
            return;
        }
        by_heat.select_nth_unstable(count - 1);
        let mut gone = vec![false; self.entries.len()];
        for (seen, _, entry) in &by_heat[..count] {
            let load = &self.entries[*entry as usize];
            gone[*entry as usize] = true;
            self.evicted_loads += u64::from(*seen > 0);
            self.evicted_samples += seen;
            self.ceiling = self.ceiling.max(seen + load.missed);
            self.free_banks.extend(load.bank);
        }
        let mut kept = gone.iter().map(|g| !g);
        self.entries.retain(|_| kept.next().unwrap_or(true));
        let mut kept = gone.iter().map(|g| !g);
        self.latest.retain(|_| kept.next().unwrap_or(true));
        self.index = self.entries.iter().enumerate().map(|(i, e)| (e.pc, i as u32)).collect();
        self.version += 1;
    }

    /// Loads forgotten and samples of them.
    pub fn evicted(&self) -> (u64, u64) {
        (self.evicted_loads, self.evicted_samples)
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.latest.capacity() * size_of::<Latest>()
            + self.index.capacity() * 17
            + (self.values.capacity() + self.counts.capacity() + self.errors.capacity()) * 8
            + self.free_banks.capacity() * 4
    }

    /// Calls `each` with pc, value and the share of the samples that it has at least.
    pub fn estimates(&self, each: &mut dyn FnMut(u64, u64, f64)) {
        for (entry, load) in self.entries.iter().enumerate() {
            let (seen, latest) = (self.seen(entry) as f64, self.latest[entry]);
            let open = |v: u64| if v == latest.value { latest.run } else { 0 };
            let mut open_told = latest.run == 0;
            for c in self.counters(load) {
                open_told |= c.value == latest.value;
                each(load.pc, c.value, (c.count - c.error + open(c.value)) as f64 / seen);
            }
            if !open_told {
                each(load.pc, latest.value, latest.run as f64 / seen);
            }
        }
    }

    /// All loads that were seen, without their executions and sizes.
    pub fn into_loads(mut self) -> Vec<LoadValues> {
        (0..self.entries.len()).for_each(|entry| self.settle(entry));
        let mut loads: Vec<LoadValues> = (0..self.entries.len()).filter_map(|e| self.load(e)).collect();
        loads.sort_unstable_by_key(|l| l.pc);
        loads
    }

    fn load(&self, entry: usize) -> Option<LoadValues> {
        let (load, seen) = (&self.entries[entry], self.seen(entry));
        if seen == 0 {
            return None;
        }
        let full = load.used as usize == self.config.counters - 1;
        let least = self.counters(load).map(|c| c.count).min().unwrap_or(0);
        let of = |c: Counter| ValueCount {
            value: c.value,
            lower: c.count - c.error,
            estimate: (c.count - c.error) as f64,
            upper: c.count + load.missed,
        };
        let mut values: Vec<ValueCount> = self.counters(load).map(of).collect();
        merge::sort(&mut values);
        let lasting = values.iter().filter(|v| v.lower >= GLACIAL_RUN).count();
        Some(LoadValues {
            pc: load.pc,
            seen,
            missed: load.missed,
            values,
            unlisted: load.missed + if full { least } else { 0 },
            glacial: Some(lasting >= 2 && (load.changes + 1).saturating_mul(GLACIAL_RUN) <= seen),
            ..LoadValues::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(counters: usize) -> ExactTable {
        ExactTable::new(TableConfig { counters, loads: 1024 }).unwrap()
    }

    fn fed(counters: usize, values: &[u64]) -> LoadValues {
        let mut t = table(counters);
        values.iter().for_each(|v| t.add_at(7, *v));
        t.into_loads().remove(0)
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let load = fed(4, &[0, 0, 5, 5, 5, 0, 9, 5]);
        let counts: Vec<(u64, u64, u64)> = load.values.iter().map(|v| (v.value, v.lower, v.upper)).collect();
        assert_eq!(counts, [(5, 4, 4), (0, 3, 3), (9, 1, 1)]);
        assert_eq!((load.seen, load.unlisted, load.missed), (8, 0, 0));
    }

    #[test]
    fn a_new_value_takes_over_the_rarest_counter() {
        // Counters: 1 x 3, 2 x 1; then 3 takes over the 1 of 2.
        let load = fed(2, &[1, 1, 1, 2, 3]);
        let counts: Vec<(u64, u64, u64)> = load.values.iter().map(|v| (v.value, v.lower, v.upper)).collect();
        assert_eq!(counts, [(1, 3, 3), (3, 1, 2)]);
        assert_eq!((load.seen, load.unlisted), (5, 2));
    }

    #[test]
    fn loads_that_change_seldom_between_lasting_values_are_glacial() {
        let phases: Vec<u64> = (0..4000).map(|i| i / 1000).collect();
        let alternating: Vec<u64> = (0..4000).map(|i| i % 2).collect();
        assert_eq!(fed(8, &phases).glacial, Some(true));
        assert_eq!(fed(8, &alternating).glacial, Some(false));
        assert_eq!(fed(8, &[3; 4000]).glacial, Some(false), "one value only");
    }

    #[test]
    fn the_coldest_loads_are_forgotten_and_counted() {
        let mut t = table(4);
        for pc in 0..1024 {
            (0..=pc % 8).for_each(|_| t.add_at(pc, 1));
        }
        assert_eq!(t.evicted(), (0, 0));
        t.add_at(5000, 1);
        // 128 loads each have 1 to 8 samples; the coldest 256 go.
        assert_eq!(t.evicted(), (256, 128 + 256));
        assert_eq!(t.version(), 2);
        t.add_at(0, 1);
        let loads = t.into_loads();
        assert_eq!(loads.len(), 1024 - 256 + 2);
        let back = &loads[0];
        assert_eq!(
            (back.pc, back.seen, back.missed),
            (0, 1, 2),
            "it had one sample; two is the most forgotten"
        );
    }

    #[test]
    fn senseless_bounds_are_refused() {
        for config in [TableConfig { counters: 1, loads: 1024 }, TableConfig { counters: 4, loads: 10 }] {
            assert!(matches!(ExactTable::new(config), Err(ValuesError::Range { .. })));
        }
    }
}
