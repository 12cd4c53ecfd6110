//! What the main processor does for the slots: copying out, masking, choosing the part of the program to look at, and
//! looking again (5.1.3, 5.1.4, A.4, A.5).
//!
//! Where the paper is silent: parts take turns after each copy and after `patience` loads; when no part has had an
//! unmasked load for that long, the profile is complete and nothing is wanted until it is time to look again.

use super::array::{Event, Slot, SlotArray, WORTH_KEEPING};
use super::config::{SlotConfig, SlotStats};
use super::glance::Glance;
use super::table::SlotTable;
use crate::error::ValuesError;
use crate::filter::{Partition, PcFilters, SourceMask};
use crate::lfsr::Lfsr;
use std::collections::VecDeque;

/// The slots with all that steers them.
#[derive(Clone, Debug)]
pub struct SlotProfiler {
    pub(super) config: SlotConfig,
    pub(super) random: Lfsr,
    pub(super) array: SlotArray,
    table: SlotTable,
    pub(super) filters: PcFilters,
    /// Parts that wait for their turn.
    waiting: VecDeque<Partition>,
    /// Parts in a row that had no sample in their turn.
    quiet: usize,
    complete: bool,
    /// Loads executed.
    pub(super) clock: u64,
    /// When the turn ends, and the samples at its beginning.
    pub(super) turn_ends: u64,
    turn_samples: u64,
    resample_at: u64,
    pub(super) glance: Glance,
    pub(super) stats: SlotStats,
}

impl SlotProfiler {
    /// Nothing seen yet.
    pub fn new(config: SlotConfig, random: Lfsr) -> Result<SlotProfiler, ValuesError> {
        config.check()?;
        Ok(SlotProfiler {
            config,
            random,
            array: SlotArray::new(config.slots, config.failed_limit)?,
            table: SlotTable::new(config.loads, config.values),
            filters: PcFilters::new(config.mask_log2)?,
            waiting: VecDeque::new(),
            quiet: 0,
            complete: false,
            clock: 0,
            turn_ends: config.patience,
            turn_samples: 0,
            resample_at: if config.resample == 0 { u64::MAX } else { config.resample },
            glance: Glance::new(&config),
            stats: SlotStats::default(),
        })
    }

    /// What is wanted now.
    #[inline]
    pub fn filters(&self) -> &PcFilters {
        &self.filters
    }

    /// The same for a recorder: the known loads that are masked are named.
    pub fn source_mask(&self) -> SourceMask {
        let bits = &self.filters.masked;
        let mut masked: Vec<u64> =
            self.table.loads().map(|(pc, _)| pc).filter(|pc| bits.is_set(*pc)).collect();
        masked.sort_unstable();
        let PcFilters { partition, closed, version, .. } = self.filters;
        SourceMask { partition, masked, closed, version }
    }

    /// What has happened so far.
    pub fn stats(&self) -> SlotStats {
        self.stats
    }

    /// What is known so far, without what is still in the slots.
    pub fn table(&self) -> &SlotTable {
        &self.table
    }

    /// Whether everything that runs is masked.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.array.memory_bytes() + self.table.memory_bytes() + self.filters.masked.memory_bytes()
    }

    /// Takes a sample. The caller has asked the filters.
    #[inline]
    pub fn sample(&mut self, pc: u64, value: u64) {
        self.stats.samples += 1;
        let value = if self.config.narrow { value & 0xffff_ffff } else { value };
        match self.array.sample(pc, value, &mut self.random) {
            Event::Quiet => {}
            Event::CopyOut if self.filters.glance.is_some() => self.end_glance(),
            Event::Thrash if self.filters.glance.is_some() => self.narrow_glance(),
            Event::CopyOut => {
                self.copy_out(self.config.least);
                self.next_turn_after(false);
                self.quiet = 0;
            }
            Event::Thrash => self.split(),
        }
    }

    /// Tells that so many loads were executed, wanted or not.
    #[inline]
    pub fn elapsed(&mut self, loads: u64) {
        self.clock += loads;
        if self.clock >= self.turn_ends.min(self.resample_at).min(self.glance.alarm) {
            self.alarm();
        }
    }

    #[cold]
    fn alarm(&mut self) {
        if self.clock >= self.glance.alarm {
            if self.filters.glance.is_some() { self.end_glance() } else { self.begin_glance() }
        } else if self.filters.glance.is_some() {
            // Everything else waits for the glance to end.
        } else if self.clock >= self.resample_at {
            self.look_again();
        } else if self.complete && self.stats.samples == self.turn_samples {
            self.start_turn();
        } else {
            self.end_of_turn();
        }
    }

    fn end_of_turn(&mut self) {
        self.complete = false;
        self.quiet = if self.stats.samples == self.turn_samples { self.quiet + 1 } else { 0 };
        if self.quiet > self.waiting.len() {
            self.complete();
        } else if self.waiting.is_empty() {
            self.start_turn();
        } else {
            let used = self.array.slots().iter().filter(|s| s.total > 0).count();
            if used > 0 {
                self.copy_out(self.config.least);
            }
            self.next_turn_after(4 * used < self.config.slots);
        }
    }

    /// Nothing unmasked is left.
    fn complete(&mut self) {
        if self.array.samples() > 0 {
            self.copy_out(1);
        }
        self.complete = true;
        self.stats.completed += 1;
        self.stats.first_complete.get_or_insert(self.clock);
        self.waiting.clear();
        self.filters.closed = self.config.stop;
        self.take_part(Partition::whole(0));
        self.start_turn();
    }

    pub(super) fn start_turn(&mut self) {
        self.turn_ends = self.clock.saturating_add(self.config.patience);
        self.turn_samples = self.stats.samples;
    }

    /// The next part has its turn. A part that could not use its slots is united with its neighbours: most of its
    /// loads are masked by now.
    fn next_turn_after(&mut self, widen: bool) {
        let mut this = self.filters.partition;
        if widen {
            this = this.parent();
            self.waiting.retain(|p| !this.contains(p));
        }
        self.waiting.push_back(this);
        let next = self.waiting.pop_front().unwrap_or(this);
        if next != self.filters.partition {
            self.take_part(next);
        }
        self.start_turn();
    }

    fn take_part(&mut self, part: Partition) {
        self.filters.partition = part;
        self.filters.version += 1;
    }

    /// Thrashing: the fewer samples it took, the smaller the part that is taken instead (A.5). What the slots hold says
    /// little and is not copied.
    fn split(&mut self) {
        // More than every second sample took a slot: the part is far too large.
        let by_four = self.array.samples() < 2 * u64::from(self.array.replacements());
        self.throw_away();
        let mut parts = self.filters.partition.split(by_four).into_iter();
        if let Some(first) = parts.next() {
            parts.rev().for_each(|p| self.waiting.push_front(p));
            self.take_part(first);
        }
        self.quiet = 0;
        self.start_turn();
    }

    /// What the slots hold says little.
    pub(super) fn throw_away(&mut self) {
        self.stats.interrupts += 1;
        self.stats.thrashes += 1;
        self.stats.discarded += self.array.slots().iter().map(|s| u64::from(s.total)).sum::<u64>();
        self.array.clear();
    }

    /// Merges the slots into the table, masks what is known well enough, and starts clean (A.4, 5.1.4).
    pub(super) fn copy_out(&mut self, least: u16) {
        self.stats.interrupts += 1;
        let mut touched = Vec::new();
        for slot in self.array.slots().iter().filter(|s| s.total > 0) {
            if slot.total < least {
                self.stats.discarded += u64::from(slot.total);
                continue;
            }
            self.stats.copied += 1;
            // A load that has no room in the table would come again and again.
            if self.table.add(slot) {
                touched.push(slot.pc)
            } else {
                self.stats.masked += mask(&mut self.filters, slot)
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for pc in touched {
            self.judge(pc);
        }
        self.array.clear();
    }

    fn judge(&mut self, pc: u64) {
        let Some(learned) = self.table.visit(pc) else { return };
        if learned.total < u64::from(WORTH_KEEPING) {
            return;
        }
        let enough = learned.visits >= self.config.visits || {
            let invariance = learned.invariance();
            invariance >= self.config.high || invariance <= self.config.low
        };
        if enough && self.filters.masked.set(pc) {
            self.filters.version += 1;
            self.stats.masked += 1;
        }
    }

    /// Unmasks everything: behaviour may have changed (5.1.4). Visits stay, so one more is enough for most.
    fn look_again(&mut self) {
        self.copy_out(self.config.least);
        self.filters.masked.clear();
        self.filters.closed = false;
        self.complete = false;
        self.waiting.clear();
        self.take_part(Partition::whole(0));
        self.quiet = 0;
        self.stats.resamples += 1;
        let times = if self.config.ever_later { self.stats.resamples.min(63) } else { 0 };
        let wait = self.config.resample.saturating_mul(1 << times);
        self.resample_at = self.clock.saturating_add(wait);
        self.start_turn();
    }

    /// Copies out what is left in the slots, at the end of the stream.
    pub fn flush(&mut self) {
        if self.array.samples() > 0 {
            self.copy_out(1);
        }
    }
}

fn mask(filters: &mut PcFilters, slot: &Slot) -> u64 {
    let new = filters.masked.set(slot.pc);
    filters.version += u64::from(new);
    u64::from(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::SourceFilter;

    fn profiler(config: SlotConfig) -> SlotProfiler {
        SlotProfiler::new(config, Lfsr::new(99)).unwrap()
    }

    fn small() -> SlotConfig {
        SlotConfig { slots: 4, failed_limit: 32, patience: 1000, resample: 0, ..SlotConfig::default() }
    }

    /// Feeds loads as a reader does: unwanted ones only pass the time.
    fn feed(p: &mut SlotProfiler, samples: impl IntoIterator<Item = (u64, u64)>) {
        for (pc, value) in samples {
            if p.filters().wants(pc) {
                p.sample(pc, value);
            }
            p.elapsed(1);
        }
    }

    #[test]
    fn an_invariant_load_is_masked_at_the_first_visit() {
        let mut p = profiler(small());
        feed(&mut p, (0..3000).map(|_| (7, 42)));
        assert!(!p.filters().wants(7));
        let known = p.table().get(7).unwrap();
        assert_eq!((known.visits, known.watched.len(), known.watched[0].misses), (1, 1, 0));
        assert!((known.invariance() - 1.0).abs() < 1e-9);
        assert_eq!(p.source_mask().masked, [7]);
        assert!(!p.source_mask().wants(7) && p.source_mask().wants(8));
    }

    #[test]
    fn a_random_load_is_masked_at_the_first_visit() {
        let mut p = profiler(SlotConfig { slots: 16, failed_limit: 64, ..small() });
        let mut lfsr = Lfsr::new(5);
        // Its slot stays on until the total is full; others have to fail to get it for a visit to come.
        feed(&mut p, (0..20_000).map(|i| (if i % 4 == 0 { 7 } else { i % 17 }, u64::from(lfsr.bits(32)))));
        assert!(!p.filters().wants(7));
        let known = p.table().get(7).unwrap();
        assert!(known.invariance() <= 0.21 && known.visits == 1, "{} {}", known.invariance(), known.visits);
    }

    #[test]
    fn others_are_masked_at_the_fourth_visit() {
        let mut p = profiler(small());
        let mut lfsr = Lfsr::new(5);
        for visit in 1..=4 {
            assert!(p.filters().wants(7), "before visit {visit}");
            while p.table().get(7).map_or(0, |k| k.visits) < visit {
                let value = u64::from(lfsr.bits(3) < 4);
                feed(&mut p, [(7, value)]);
            }
        }
        assert!(!p.filters().wants(7));
        assert_eq!(p.table().get(7).unwrap().visits, 4);
    }

    #[test]
    fn complete_when_everything_is_masked_and_open_again_later() {
        let mut p = profiler(SlotConfig { resample: 50_000, stop: true, ..small() });
        feed(&mut p, (0..40_000).map(|i| (i % 3, 42)));
        assert!(p.is_complete());
        let first = p.stats();
        assert_eq!((first.completed, first.resamples), (1, 0));
        assert!(first.first_complete.unwrap() < 40_000);
        assert!(!p.filters().wants(1000), "also what was never seen");
        feed(&mut p, (0..15_000).map(|i| (i % 3, 42)));
        assert_eq!(p.stats().resamples, 1);
        assert!(p.stats().samples > first.samples);
    }

    #[test]
    fn a_complete_profile_still_takes_in_new_loads() {
        let mut p = profiler(small());
        feed(&mut p, (0..40_000).map(|i| (i % 3, 42)));
        assert!(p.is_complete());
        let samples = p.stats().samples;
        feed(&mut p, (0..10_000).map(|i| (i % 3, 42)));
        assert_eq!(p.stats().samples, samples, "nothing is recorded meanwhile");
        feed(&mut p, (0..3_000).map(|i| (i % 4, 42)));
        assert!(p.stats().samples > samples && !p.is_complete());
        feed(&mut p, (0..40_000).map(|i| (i % 4, 42)));
        assert!(p.is_complete() && p.table().get(3).is_some());
        assert_eq!(p.stats().completed, 2);
    }

    #[test]
    fn thrashing_takes_a_part_of_the_program_and_all_parts_get_their_turn() {
        let mut p = profiler(SlotConfig { slots: 16, failed_limit: 64, patience: 40_000, ..small() });
        let pcs = 2000u64;
        feed(&mut p, (0..200u64).map(|i| (i % pcs, 1)));
        assert_eq!(p.stats().thrashes, 1, "200 different loads for 16 slots");
        assert_eq!(p.filters().partition().mask, 3, "found at once, so in four");
        assert_eq!(p.stats().copied, 0, "not copied");
        feed(&mut p, (0..30_000_000u64).map(|i| (i * 7 % pcs, 1)));
        assert!(p.is_complete(), "{:?} {:?}", p.stats(), p.filters().partition());
        let known = p.table().loads().count();
        assert!(known > 1900, "{known} of {pcs}");
    }

    #[test]
    fn slow_thrashing_splits_in_two() {
        // Two frequent loads and many rare ones: replacements are a small part of the samples.
        let mut p = profiler(SlotConfig { slots: 4, failed_limit: 1 << 20, ..small() });
        let mut rare = 100;
        let mut i = 0u64;
        while p.stats().thrashes == 0 && i < 100_000 {
            i += 1;
            rare += u64::from(i.is_multiple_of(4));
            feed(&mut p, [(if i.is_multiple_of(4) { rare } else { i % 2 }, i)]);
        }
        assert_eq!(p.stats().thrashes, 1);
        assert_eq!(p.filters().partition().mask, 1);
    }

    #[test]
    fn narrow_values_lose_their_upper_half() {
        let mut p = profiler(SlotConfig { narrow: true, ..small() });
        feed(&mut p, (0..2000u64).map(|i| (7, i << 32 | 5)));
        assert_eq!(p.table().get(7).unwrap().watched[0].value, 5);
        assert_eq!(p.table().get(7).unwrap().watched.len(), 1);
    }

    #[test]
    fn a_full_table_masks_what_it_cannot_take() {
        let mut p = profiler(SlotConfig { loads: 1, ..small() });
        feed(&mut p, (0..20_000).map(|i| (i % 2, 42)));
        assert!(p.table().refused().0 > 0);
        assert!(!p.filters().wants(0) && !p.filters().wants(1));
    }

    #[test]
    fn senseless_settings_are_refused() {
        let bad = [
            SlotConfig { slots: 0, ..SlotConfig::default() },
            SlotConfig { low: 0.9, high: 0.5, ..SlotConfig::default() },
            SlotConfig { low: 0.1, ..SlotConfig::default() },
            SlotConfig { high: 1.5, ..SlotConfig::default() },
            SlotConfig { mask_log2: 40, ..SlotConfig::default() },
            SlotConfig { visits: 0, ..SlotConfig::default() },
            SlotConfig { values: 0, ..SlotConfig::default() },
            SlotConfig { patience: 0, ..SlotConfig::default() },
        ];
        for config in bad {
            assert!(SlotProfiler::new(config, Lfsr::new(1)).is_err(), "{config:?}");
        }
    }
}
