//! What the governor decides by, and where its decisions go: the session's side of `govern.rs`.

use crate::govern::{Governed, Governor, Reading};
use crate::options::{Options, Policy};
use crate::session::Session;
use crate::stops::Stops;
use crate::watch;
use sonde_wire::{Control, Counter};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Time between two decisions; more where there are many processes, whose clocks are all looked at.
const BETWEEN: Duration = Duration::from_millis(25);
const FOR_EACH_PROCESS: Duration = Duration::from_micros(500);
/// CPU time that Sonde takes when the program has ended, for summaries, names and the report: 10 to 30 ms and a little for
/// each superblock that was copied were measured.
const ENDING: Duration = Duration::from_millis(20);
const FOR_EACH_SUPERBLOCK: Duration = Duration::from_micros(10);
/// A period is not changed for less than this part of it.
const WORTH_IT: f64 = 0.02;

/// Counts of processes that are gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gone {
    burst_ns: u64,
    triggers: u64,
}

impl Gone {
    /// A process has ended, or has another image.
    pub fn add(&mut self, control: &Control) {
        self.burst_ns += control.counter(Counter::BurstCpuNs);
        self.triggers += control.counter(Counter::Triggers);
    }
}

/// The governor of a session that begins now, if it is to have one.
pub(crate) fn governor(options: &Options) -> Option<Governor> {
    let Policy::Bursts { period, .. } = options.policy else { return None };
    let start = Reading { sonde: watch::own_cpu_time(), ..Reading::default() };
    options.max_overhead.map(|limit| Governor::new(limit, period, start))
}

impl Session {
    /// Looks at what was spent, and lets bursts come as often as that allows.
    pub(crate) fn govern(&mut self) {
        if self.governor.is_none() {
            return;
        }
        let now = self.reading();
        let Some(governor) = &mut self.governor else { return };
        let period = governor.step(now);
        let control = self.shared.control();
        let before = match control.period_now.load(Relaxed) {
            0 => control.config.period_ns,
            now => now,
        };
        let change = period.as_nanos() as f64 / before.max(1) as f64 - 1.0;
        if change.abs() >= WORTH_IT {
            self.set_period(period);
        }
    }

    /// What came of it, once the program has ended.
    pub(crate) fn end_governing(&mut self) -> Option<Governed> {
        let now = self.reading();
        let governor = self.governor.as_mut()?;
        governor.step(now);
        Some(governor.governed())
    }

    pub(crate) fn time_between_decisions(&self) -> Duration {
        BETWEEN + FOR_EACH_PROCESS * u32::try_from(self.children.len()).unwrap_or(u32::MAX)
    }

    fn reading(&self) -> Reading {
        // Of a program that has ended the clock is gone, and its whole time known.
        let living: Duration = self.probes().map(|(pid, _)| watch::cpu_time(pid)).sum();
        // The thread that stops others runs this: what it does for reports that nobody asked for is not for bursts.
        let others = self.stops.as_ref().map_or(0.0, Stops::part_unasked);
        let superblocks = self.counter(Counter::Superblocks);
        Reading {
            program: living + self.cpu + self.followed.cpu,
            in_bursts: Duration::from_nanos(self.counter(Counter::BurstCpuNs) + self.gone.burst_ns),
            sonde: watch::own_cpu_time(),
            others: watch::thread_cpu_time().mul_f64(others),
            triggers: self.counter(Counter::Triggers) + self.gone.triggers,
            reserve: ENDING + FOR_EACH_SUPERBLOCK * u32::try_from(superblocks).unwrap_or(u32::MAX),
        }
    }

    /// Whether bursts are rarer now than was asked for.
    pub fn is_held_back(&self) -> bool {
        self.governor.as_ref().is_some_and(Governor::holds_back)
    }
}
