//! The table in memory into which the interrupt handler merges what slots have learned.

use super::array::Slot;
use super::estimate::{Watched, samples_of};
use crate::hash::PcMap;
use crate::merge;
use crate::profile::{LoadValues, ValueCount};

/// A slot that saw its value for long: so many hits,
const LASTING_HITS: u64 = 64;
/// and at most one miss per so many hits. Told by slot, not by the sums: the slot that is on when the value changes
/// gathers misses until it is full.
const LASTING_HITS_PER_MISS: u64 = 32;

/// What is known about a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Its values.
    pub watched: Vec<Watched>,
    /// All samples.
    pub total: u64,
    /// Times that something about it was copied out.
    pub visits: u32,
}

impl Learned {
    /// Samples with the most frequent value, as a share of all.
    pub fn invariance(&self) -> f64 {
        let top = samples_of(&self.watched, self.total).into_iter().fold(0.0, f64::max);
        if self.total == 0 { 0.0 } else { (top / self.total as f64).min(1.0) }
    }

    /// Several values, many hits, hardly any miss (5.1.4).
    pub fn is_glacial(&self) -> bool {
        let lasts = |w: &&Watched| w.lasting > 0 && 2 * w.lasting >= w.hits;
        self.watched.iter().filter(lasts).count() >= 2
    }

    fn add(&mut self, slot: &Slot, most_values: usize) {
        self.total += u64::from(slot.total);
        let (value, hits, misses) = (slot.value, u64::from(slot.hit), u64::from(slot.miss));
        let lasts = hits >= LASTING_HITS && misses * LASTING_HITS_PER_MISS <= hits;
        let lasting = if lasts { hits } else { 0 };
        match self.watched.iter_mut().find(|w| w.value == value) {
            Some(w) => {
                w.hits += hits;
                w.misses += misses;
                w.lasting += lasting;
            }
            None => self.watched.push(Watched { value, hits, misses, lasting }),
        }
        // What is dropped stays in the total, as samples of which nothing is known.
        if self.watched.len() > most_values {
            let rarest = (0..self.watched.len()).min_by_key(|i| self.watched[*i].hits);
            rarest.map(|i| self.watched.swap_remove(i));
        }
    }

    /// The same as data. Bounds hold for the samples: a hit is certain, and what was a hit of another value or a miss
    /// of this one is certainly not this value.
    fn values(&self) -> (Vec<ValueCount>, u64) {
        let estimates = samples_of(&self.watched, self.total);
        let hits: u64 = self.watched.iter().map(|w| w.hits).sum();
        let of = |(w, estimate): (&Watched, f64)| {
            let upper = self.total - (hits - w.hits) - w.misses;
            ValueCount { value: w.value, lower: w.hits, estimate: estimate.min(upper as f64), upper }
        };
        let mut values: Vec<ValueCount> = self.watched.iter().zip(estimates).map(of).collect();
        merge::sort(&mut values);
        (values, self.total - hits)
    }
}

/// All loads.
#[derive(Clone, Debug)]
pub struct SlotTable {
    loads: PcMap<Learned>,
    most_loads: usize,
    most_values: usize,
    refused_loads: u64,
    refused_samples: u64,
}

impl SlotTable {
    /// A table for so many loads with so many values each.
    pub fn new(most_loads: usize, most_values: usize) -> SlotTable {
        SlotTable { loads: PcMap::default(), most_loads, most_values, refused_loads: 0, refused_samples: 0 }
    }

    /// Adds what a slot has learned; whether there was room.
    pub fn add(&mut self, slot: &Slot) -> bool {
        if self.loads.len() >= self.most_loads && !self.loads.contains_key(&slot.pc) {
            self.refused_loads += 1;
            self.refused_samples += u64::from(slot.total);
            return false;
        }
        self.loads.entry(slot.pc).or_default().add(slot, self.most_values);
        true
    }

    /// Counts a visit and gives what is known.
    pub fn visit(&mut self, pc: u64) -> Option<&Learned> {
        let learned = self.loads.get_mut(&pc)?;
        learned.visits += 1;
        Some(learned)
    }

    /// What is known about a load.
    pub fn get(&self, pc: u64) -> Option<&Learned> {
        self.loads.get(&pc)
    }

    /// All loads known, in no order.
    pub fn loads(&self) -> impl Iterator<Item = (u64, &Learned)> {
        self.loads.iter().map(|(pc, learned)| (*pc, learned))
    }

    /// Calls `each` with pc, value and estimated share.
    pub fn estimates(&self, each: &mut dyn FnMut(u64, u64, f64)) {
        for (pc, learned) in self.loads() {
            let samples = samples_of(&learned.watched, learned.total);
            let shares = samples.iter().map(|s| s / learned.total.max(1) as f64);
            learned.watched.iter().zip(shares).for_each(|(w, share)| each(pc, w.value, share));
        }
    }

    /// Slots and their samples that found no room.
    pub fn refused(&self) -> (u64, u64) {
        (self.refused_loads, self.refused_samples)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let values: usize = self.loads.values().map(|l| l.watched.capacity()).sum();
        self.loads.capacity() * (size_of::<Learned>() + 9) + values * size_of::<Watched>()
    }

    pub(crate) fn to_loads(&self) -> Vec<LoadValues> {
        let of = |(pc, learned): (u64, &Learned)| {
            let (values, unlisted) = learned.values();
            LoadValues {
                pc,
                seen: learned.total,
                values,
                unlisted,
                glacial: Some(learned.is_glacial()),
                ..LoadValues::default()
            }
        };
        let mut loads: Vec<LoadValues> = self.loads().map(of).collect();
        loads.sort_unstable_by_key(|l| l.pc);
        loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(pc: u64, value: u64, hit: u8, miss: u8, total: u16) -> Slot {
        Slot { pc, value, hit, miss, total, on: true }
    }

    #[test]
    fn slots_of_a_load_add_up_by_value() {
        let mut table = SlotTable::new(10, 8);
        for s in [slot(1, 5, 10, 2, 20), slot(1, 6, 4, 0, 4), slot(1, 5, 1, 1, 2), slot(2, 5, 1, 0, 1)] {
            assert!(table.add(&s));
        }
        let one = table.get(1).unwrap();
        assert_eq!(one.total, 26);
        let five = Watched { value: 5, hits: 11, misses: 3, lasting: 0 };
        assert_eq!(one.watched, [five, Watched { value: 6, hits: 4, misses: 0, lasting: 0 }]);
        // 11 + 8/5 of the 8 unknown (a fifth at most) for 5.
        assert!((one.invariance() - (11.0 + 0.2 * 8.0) / 26.0).abs() < 1e-9);
    }

    #[test]
    fn bounds_leave_out_what_cannot_be_the_value() {
        let mut table = SlotTable::new(10, 8);
        table.add(&slot(1, 5, 10, 2, 20));
        table.add(&slot(1, 6, 4, 1, 5));
        let load = &table.to_loads()[0];
        assert_eq!((load.values[0].value, load.values[0].lower, load.values[0].upper), (5, 10, 25 - 4 - 2));
        assert_eq!((load.values[1].value, load.values[1].lower, load.values[1].upper), (6, 4, 25 - 10 - 1));
        assert_eq!(load.unlisted, 11);
    }

    #[test]
    fn two_lasting_values_with_hardly_a_miss_are_glacial() {
        let glacial = |slots: &[Slot]| {
            let mut table = SlotTable::new(10, 8);
            assert!(slots.iter().all(|s| table.add(s)));
            table.get(1).unwrap().is_glacial()
        };
        assert!(glacial(&[slot(1, 5, 255, 1, 256), slot(1, 6, 64, 2, 66)]));
        assert!(!glacial(&[slot(1, 5, 255, 1, 256), slot(1, 6, 64, 3, 67)]), "too many misses");
        assert!(!glacial(&[slot(1, 5, 255, 1, 256), slot(1, 6, 63, 0, 63)]), "too few hits");
        assert!(!glacial(&[slot(1, 5, 255, 0, 255), slot(1, 5, 255, 0, 255)]), "one value");
        let changed = [slot(1, 5, 255, 0, 255), slot(1, 5, 100, 255, 355), slot(1, 6, 255, 0, 255)];
        assert!(glacial(&changed), "one slot was on when the value changed");
        let mixed = [slot(1, 5, 64, 2, 66), slot(1, 5, 200, 55, 255), slot(1, 6, 255, 0, 255)];
        assert!(!glacial(&mixed), "5 mostly came together with others");
    }

    #[test]
    fn limits_hold_and_are_counted() {
        let mut table = SlotTable::new(1, 2);
        assert!(table.add(&slot(1, 5, 3, 0, 3)));
        assert!(!table.add(&slot(2, 5, 9, 0, 9)));
        assert_eq!(table.refused(), (1, 9));
        table.add(&slot(1, 6, 2, 0, 2));
        table.add(&slot(1, 7, 4, 0, 4));
        let kept = table.get(1).unwrap();
        let mut values: Vec<u64> = kept.watched.iter().map(|w| w.value).collect();
        values.sort_unstable();
        assert_eq!((values, kept.total), (vec![5, 7], 9), "6 had the fewest hits; its samples still count");
    }
}
