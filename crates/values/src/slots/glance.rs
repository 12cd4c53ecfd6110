//! Glances: short looks at what is masked, too, so that loads which run all the time are seen at many times.
//!
//! A load is masked after a visit or a few, which can all be from one phase of the program. The paper re-samples from time to
//! time (5.1.4) and does not say how often. Unmasking everything often makes every load pay for it, seldom executed ones as
//! much as those that matter. A glance takes as many loads as there are slots, and loads compete for those by how often
//! they run (A.3): what it costs goes where the program spends its time.

use super::config::SlotConfig;
use super::control::SlotProfiler;
use crate::filter::Partition;
use crate::lfsr::Lfsr;

/// When, and of what.
#[derive(Clone, Debug)]
pub(super) struct Glance {
    /// When the next one begins or, if there is one, when it ends.
    pub(super) alarm: u64,
    /// As much of the program as the slots were enough for.
    part: Partition,
}

impl Glance {
    pub(super) fn new(config: &SlotConfig) -> Glance {
        let never = config.glance == 0 || config.ever_later;
        Glance { alarm: if never { u64::MAX } else { config.glance }, part: Partition::whole(0) }
    }
}

/// A part of the same size, whichever.
fn any_part(part: Partition, random: &mut Lfsr) -> Partition {
    Partition { matches: random.bits(16) & part.mask, ..part }
}

impl SlotProfiler {
    pub(super) fn begin_glance(&mut self) {
        if self.array.samples() > 0 {
            self.copy_out(self.config.least);
        }
        self.stats.glances += 1;
        self.glance.part = any_part(self.glance.part, &mut self.random);
        self.filters.glance = Some(self.glance.part);
        self.filters.version += 1;
        self.glance.alarm = self.clock.saturating_add(self.config.patience);
        self.turn_ends = u64::MAX;
    }

    /// Thrashing: the same with half of the part.
    pub(super) fn narrow_glance(&mut self) {
        self.throw_away();
        if let Some(half) = self.glance.part.split(false).first() {
            self.glance.part = any_part(*half, &mut self.random);
            self.filters.glance = Some(self.glance.part);
            self.filters.version += 1;
        }
    }

    pub(super) fn end_glance(&mut self) {
        let used = self.array.slots().iter().filter(|s| s.total > 0).count();
        if used > 0 {
            self.copy_out(self.config.least);
        }
        if 4 * used < self.config.slots {
            self.glance.part = self.glance.part.parent();
        }
        self.filters.glance = None;
        self.filters.version += 1;
        // At no fixed distance, so that glances do not keep step with the program.
        let wait = self.config.glance.div_ceil(2) + u64::from(self.random.bits(32)) % self.config.glance;
        self.glance.alarm = self.clock.saturating_add(wait);
        self.start_turn();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::SourceFilter;

    fn profiler(config: SlotConfig) -> SlotProfiler {
        SlotProfiler::new(config, Lfsr::new(99)).unwrap()
    }

    fn small() -> SlotConfig {
        SlotConfig { slots: 16, failed_limit: 64, patience: 1000, resample: 0, ..SlotConfig::default() }
    }

    fn feed(p: &mut SlotProfiler, samples: impl IntoIterator<Item = (u64, u64)>) {
        for (pc, value) in samples {
            if p.filters().wants(pc) {
                p.sample(pc, value);
            }
            p.elapsed(1);
        }
    }

    /// The share of a value of load 1, which has 7 in the first tenth of the run and 8 after.
    fn share_of_8(config: SlotConfig) -> f64 {
        let mut p = profiler(config);
        feed(&mut p, (0..2_000_000u64).map(|i| (i % 4, if i < 200_000 { 7 } else { 8 })));
        p.flush();
        let mut share = 0.0;
        p.table().estimates(&mut |pc, value, s| share += if (pc, value) == (1, 8) { s } else { 0.0 });
        share
    }

    #[test]
    fn values_that_come_after_masking_are_seen_and_weighed_by_time() {
        assert_eq!(share_of_8(SlotConfig { glance: 0, ..small() }), 0.0, "masked for good");
        let share = share_of_8(SlotConfig { glance: 10_000, ..small() });
        assert!((share - 0.9).abs() < 0.1, "{share}");
    }

    #[test]
    fn glances_go_to_what_runs_often() {
        let mut p = profiler(SlotConfig { glance: 5_000, ..small() });
        // Four loads make up half of the run, 2,000 others the rest.
        feed(&mut p, (0..4_000_000u64).map(|i| (if i % 2 == 0 { i / 2 % 4 } else { 100 + i / 2 % 2000 }, 1)));
        let visits = |pcs: std::ops::Range<u64>| -> f64 {
            let n = (pcs.end - pcs.start) as f64;
            pcs.map(|pc| p.table().get(pc).map_or(0.0, |l| f64::from(l.visits))).sum::<f64>() / n
        };
        let (often, seldom) = (visits(0..4), visits(100..2100));
        assert!(p.stats().glances > 300);
        assert!(often > 20.0 * seldom, "{often} and {seldom}");
    }

    #[test]
    fn after_a_glance_everything_is_as_before() {
        let mut p = profiler(SlotConfig { glance: 20_000, ..small() });
        feed(&mut p, (0..15_000u64).map(|i| (i % 4, 1)));
        assert!(p.is_complete() && !p.filters().wants(1));
        while p.stats().glances == 0 {
            feed(&mut p, [(1, 1)]);
        }
        assert!(p.filters().wants(1), "masked or not");
        feed(&mut p, (0..5_000u64).map(|i| (i % 4, 1)));
        assert!(!p.filters().wants(1) && p.filters().wants(50));
        assert_eq!((p.stats().glances, p.stats().resamples), (1, 0));
    }

    #[test]
    fn sources_that_mask_get_none() {
        let mut p = profiler(SlotConfig { glance: 1_000, ever_later: true, ..small() });
        feed(&mut p, (0..100_000u64).map(|i| (i % 4, 1)));
        assert_eq!(p.stats().glances, 0);
    }
}
