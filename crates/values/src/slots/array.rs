//! The slots and what a sample does to them: what the co-processor itself does.

use crate::error::{ValuesError, within};
use crate::hash::PcMap;
use crate::lfsr::Lfsr;

/// Samples that are too many to be thrown away (A.2).
pub const WORTH_KEEPING: u32 = 16;

/// One slot (figure 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The load.
    pub pc: u64,
    /// The value that is watched.
    pub value: u64,
    /// Samples with that value.
    pub hit: u8,
    /// Samples with others, while it was watched.
    pub miss: u8,
    /// All samples, whichever value was watched.
    pub total: u16,
    /// Whether it takes samples.
    pub on: bool,
}

/// What a sample asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing.
    Quiet,
    /// Many samples find no slot: copy out and start clean (A.4).
    CopyOut,
    /// Slots are replaced all the time: take a smaller part of the program (A.5).
    Thrash,
}

/// All slots.
#[derive(Clone, Debug)]
pub struct SlotArray {
    slots: Vec<Slot>,
    /// The associative array: slots that are on, by pc.
    by_pc: PcMap<u32>,
    /// The slot that is looked at for replacement next.
    candidate: usize,
    failed: u32,
    failed_limit: u32,
    replacements: u32,
    samples: u64,
}

/// Replacements per slot that mean thrashing (A.5).
const REPLACED_LIMIT: u32 = 4;

impl SlotArray {
    /// Empty slots; `failed_limit` is the threshold of the failed counter.
    pub fn new(slots: usize, failed_limit: u32) -> Result<SlotArray, ValuesError> {
        within("number of slots", slots as f64, 1.0, f64::from(1 << 20))?;
        within("threshold of failed replacements", f64::from(failed_limit), 1.0, f64::from(1 << 30))?;
        Ok(SlotArray {
            slots: vec![Slot::default(); slots],
            by_pc: PcMap::default(),
            candidate: 0,
            failed: 0,
            failed_limit,
            replacements: 0,
            samples: 0,
        })
    }

    /// The slots. Those without samples (`total` 0) are empty.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Samples since the start.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The counter of failed replacements.
    pub fn failed(&self) -> u32 {
        self.failed
    }

    /// The counter of replacements.
    pub fn replacements(&self) -> u32 {
        self.replacements
    }

    /// Starts clean.
    pub fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.by_pc.clear();
        (self.candidate, self.failed, self.replacements, self.samples) = (0, 0, 0, 0);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.by_pc.capacity() * 17
    }

    /// Takes a sample.
    #[inline]
    pub fn sample(&mut self, pc: u64, value: u64, random: &mut Lfsr) -> Event {
        self.samples += 1;
        match self.by_pc.get(&pc) {
            Some(slot) => {
                let slot = &mut self.slots[*slot as usize];
                slot.take(value);
                if !slot.on {
                    self.by_pc.remove(&pc);
                }
                Event::Quiet
            }
            None => self.compete(pc, value, random),
        }
    }

    /// A load without a slot tries to get the candidate (A.3).
    fn compete(&mut self, pc: u64, value: u64, random: &mut Lfsr) -> Event {
        let at = self.candidate;
        self.candidate = (at + 1) % self.slots.len();
        if random.bits(4) <= u32::from(self.slots[at].total) {
            self.failed += 1;
            return if self.failed >= self.failed_limit { Event::CopyOut } else { Event::Quiet };
        }
        if self.slots[at].on {
            self.by_pc.remove(&self.slots[at].pc);
        }
        self.slots[at] = Slot { pc, value, hit: 1, miss: 0, total: 1, on: true };
        self.by_pc.insert(pc, at as u32);
        self.failed = self.failed.saturating_sub(1);
        self.replacements += 1;
        let limit = REPLACED_LIMIT.saturating_mul(self.slots.len() as u32);
        if self.replacements > limit { Event::Thrash } else { Event::Quiet }
    }
}

impl Slot {
    /// A sample of this slot's load (A.1, A.2).
    fn take(&mut self, value: u64) {
        self.total += 1;
        if value == self.value {
            self.hit += 1;
        } else {
            self.miss += 1;
        }
        let (hit, seen) = (u32::from(self.hit), u32::from(self.hit) + u32::from(self.miss));
        if self.total == u16::MAX || self.hit == u8::MAX || self.miss == u8::MAX {
            self.on = false;
        } else if value != self.value && 5 * hit < seen {
            if seen >= WORTH_KEEPING {
                self.on = false;
            } else {
                (self.value, self.hit, self.miss) = (value, 1, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(slots: usize, failed_limit: u32) -> SlotArray {
        SlotArray::new(slots, failed_limit).unwrap()
    }

    /// A slot for the load 7 that watches `value`.
    fn watching(value: u64) -> Slot {
        Slot { pc: 7, value, hit: 1, miss: 0, total: 1, on: true }
    }

    fn fed(mut slot: Slot, values: impl IntoIterator<Item = u64>) -> Slot {
        values.into_iter().for_each(|v| slot.take(v));
        slot
    }

    #[test]
    fn hits_and_misses_are_counted_apart() {
        let slot = fed(watching(1), [1, 2, 1, 3]);
        assert_eq!(slot, Slot { hit: 3, miss: 2, total: 5, ..watching(1) });
    }

    #[test]
    fn below_a_fifth_the_new_value_is_taken() {
        // 1 of 5 is a fifth; 1 of 6 is below.
        let slot = fed(watching(1), [2, 2, 2, 2]);
        assert_eq!(slot, Slot { hit: 1, miss: 4, total: 5, ..watching(1) });
        let slot = fed(slot, [3]);
        assert_eq!(slot, Slot { total: 6, ..watching(3) });
    }

    #[test]
    fn below_a_fifth_of_16_samples_it_is_switched_off() {
        // 2 of 11 are below a fifth, and 11 are not 16; so the second hit comes in and is lost.
        let slot = fed(watching(1), [1].into_iter().chain(10..19));
        assert_eq!(slot, Slot { total: 11, ..watching(18) });
        // 3 of 15 are a fifth; 3 of 16 are below, and 16 are worth keeping.
        let slot = fed(watching(1), [1, 1].into_iter().chain(10..22));
        assert_eq!(slot, Slot { hit: 3, miss: 12, total: 15, ..watching(1) });
        assert_eq!(fed(slot, [99]), Slot { hit: 3, miss: 13, total: 16, on: false, ..watching(1) });
    }

    #[test]
    fn full_counters_switch_it_off() {
        let slot = fed(watching(1), [1; 253]);
        assert!(slot.on && slot.hit == 254);
        let slot = fed(slot, [1]);
        assert_eq!(slot, Slot { hit: 255, total: 255, on: false, ..watching(1) });
        // 100 hits, so that the share stays above a fifth until the misses are full.
        let slot = fed(watching(1), [1; 99]);
        let slot = fed(slot, 1000..1255);
        assert_eq!(slot, Slot { hit: 100, miss: 255, total: 355, on: false, ..watching(1) });
        let slot = fed(Slot { total: u16::MAX - 2, ..watching(1) }, [1]);
        assert!(slot.on);
        let slot = fed(slot, [1]);
        assert_eq!(slot, Slot { hit: 3, total: u16::MAX, on: false, ..watching(1) });
    }

    fn repeat(a: &mut SlotArray, times: std::ops::Range<u32>, sample: (u64, u64), random: &mut Lfsr) {
        for _ in times {
            a.sample(sample.0, sample.1, random);
        }
    }

    /// A register whose next four bits are below, equal to or above a number.
    fn random_where(wanted: impl Fn(u32) -> bool) -> Lfsr {
        (1..).map(Lfsr::new).find(|l| wanted(l.clone().bits(4))).unwrap()
    }

    #[test]
    fn a_slot_is_replaced_if_the_random_number_is_above_its_total() {
        let mut a = array(1, 100);
        assert_eq!(a.sample(7, 70, &mut random_where(|r| r == 0)), Event::Quiet);
        assert_eq!((a.slots()[0].total, a.failed()), (0, 1), "0 is not above 0");
        a.sample(7, 70, &mut random_where(|r| r == 1));
        assert_eq!(a.slots()[0], Slot { pc: 7, value: 70, hit: 1, miss: 0, total: 1, on: true });
        assert_eq!((a.failed(), a.replacements()), (0, 1), "failed goes down again");
        repeat(&mut a, 0..3, (7, 70), &mut Lfsr::new(1));
        assert_eq!(a.slots()[0].total, 4);
        a.sample(8, 80, &mut random_where(|r| r == 4));
        assert_eq!((a.slots()[0].pc, a.failed()), (7, 1));
        a.sample(8, 80, &mut random_where(|r| r == 5));
        assert_eq!((a.slots()[0].pc, a.failed(), a.replacements()), (8, 0, 2));
        a.sample(7, 70, &mut random_where(|r| r == 0));
        assert_eq!((a.slots()[0].pc, a.failed()), (8, 1), "7 is not found any more");
        assert_eq!(a.samples(), 8);
    }

    #[test]
    fn with_more_than_15_samples_a_slot_is_safe() {
        let mut a = array(1, u32::from(u16::MAX));
        let mut random = random_where(|r| r > 0);
        repeat(&mut a, 0..16, (7, 70), &mut random);
        assert_eq!(a.slots()[0].total, 16);
        repeat(&mut a, 0..1000, (8, 80), &mut random);
        assert_eq!((a.slots()[0].pc, a.failed()), (7, 1000));
    }

    #[test]
    fn the_candidate_moves_on_either_way() {
        let mut a = array(3, 100);
        a.sample(1, 0, &mut random_where(|r| r == 0));
        a.sample(2, 0, &mut random_where(|r| r == 15));
        a.sample(3, 0, &mut random_where(|r| r == 15));
        a.sample(4, 0, &mut random_where(|r| r == 15));
        assert_eq!(a.slots().iter().map(|s| s.pc).collect::<Vec<_>>(), [4, 2, 3]);
    }

    #[test]
    fn a_load_whose_slot_is_off_competes_again_and_the_old_slot_stays() {
        let mut a = array(2, 100);
        let mut random = random_where(|r| r == 15);
        a.sample(7, 70, &mut random);
        repeat(&mut a, 0..254, (7, 70), &mut random);
        assert!(!a.slots()[0].on);
        a.sample(7, 71, &mut random_where(|r| r == 15));
        assert_eq!((a.slots()[0].value, a.slots()[1].value), (70, 71));
        a.sample(7, 71, &mut random);
        assert_eq!((a.slots()[0].total, a.slots()[1].total), (255, 2));
    }

    #[test]
    fn the_failed_threshold_asks_to_copy_out() {
        let mut a = array(1, 3);
        let never = random_where(|r| r == 0);
        let events: Vec<Event> = (0..3).map(|_| a.sample(7, 0, &mut never.clone())).collect();
        assert_eq!(events, [Event::Quiet, Event::Quiet, Event::CopyOut]);
        a.clear();
        assert_eq!((a.failed(), a.samples()), (0, 0));
    }

    #[test]
    fn more_than_four_replacements_per_slot_are_thrashing() {
        let mut a = array(2, 1000);
        let always = random_where(|r| r == 15);
        let events: Vec<Event> = (0..9).map(|pc| a.sample(pc, 0, &mut always.clone())).collect();
        assert_eq!(events[..8], [Event::Quiet; 8]);
        assert_eq!(events[8], Event::Thrash);
    }
}
