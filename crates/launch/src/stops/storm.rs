//! Notices when signals come faster than stops are cheap.
//!
//! A thread that is traced stops at each signal until Sonde, another process, lets it go on: some tens of microseconds, on a busy
//! machine some milliseconds. A program whose timer expires more often than that gets nowhere: each time that it goes on, the next
//! signal is there already. Such a thread is let go (`apart.rs`).

use std::time::{Duration, Instant};

/// Signals that are looked at together.
const SIGNALS: u32 = 64;
/// Signals that come faster cost more than a tenth of the time.
const LEAST_TIME: Duration = Duration::from_micros(500);
/// On a busy machine they cannot come that fast; but a thread that is at work and gets no further is seen by its CPU time.
const LEAST_CPU_NS: u64 = 100_000;

/// The signals of one thread.
pub struct Storm {
    since: Instant,
    cpu_ns: u64,
    signals: u32,
    /// Of those, the ones that came while it was at work rather than in a system call.
    at_work: u32,
}

impl Storm {
    /// None so far.
    pub fn new(now: Instant, cpu_ns: u64) -> Storm {
        Storm { since: now, cpu_ns, signals: 0, at_work: 0 }
    }

    /// One more; says whether there were enough of them to ask for a verdict.
    pub fn note(&mut self, at_work: bool) -> bool {
        self.signals += 1;
        self.at_work += u32::from(at_work);
        self.signals >= SIGNALS
    }

    /// Whether they cost too much. Begins anew.
    pub fn verdict(&mut self, now: Instant, cpu_ns: u64) -> bool {
        let time = now.saturating_duration_since(self.since);
        let cpu = cpu_ns.saturating_sub(self.cpu_ns);
        let fast = time < LEAST_TIME * self.signals;
        let stuck = self.at_work > self.signals / 4 * 3 && cpu < LEAST_CPU_NS * u64::from(self.signals);
        *self = Storm::new(now, cpu_ns);
        fast || stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first verdict on signals each of which takes so much time, CPU time and comes while it is at work or not.
    fn verdict(time_us: u64, cpu_us: u64, at_work: bool) -> bool {
        let mut now = Instant::now();
        let mut cpu_ns = 5;
        let mut storm = Storm::new(now, cpu_ns);
        loop {
            now += Duration::from_micros(time_us);
            cpu_ns += cpu_us * 1000;
            if storm.note(at_work) {
                return storm.verdict(now, cpu_ns);
            }
        }
    }

    #[test]
    fn storms_are_told_from_other_signals() {
        assert!(verdict(60, 5, true), "a timer of 50 us, machine at rest");
        assert!(verdict(5_000, 5, true), "the same on a busy one");
        assert!(verdict(60, 5, false), "signals that are waited for");
        assert!(!verdict(1_000, 990, true), "a profiler's timer");
        assert!(!verdict(5_000, 5, false), "something that sleeps most of the time");
        assert!(!verdict(20_000, 990, true), "a profiler's timer on a busy machine");
    }
}
