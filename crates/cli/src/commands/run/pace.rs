//! Adapts how often and how long bursts are to the share of CPU time that they take: to the share that `--rate` asks for,
//! or, if nothing was asked for, so that programs whose bursts are dear get fewer of them.
//!
//! The share that is steered is CPU time spent in bursts, translation included, over all CPU time of the program: that
//! is what recording costs at most, and it can be measured everywhere. The gap is adapted first; when it reaches its
//! bounds, the length.

use std::time::Duration;

/// Bounds of what is adapted.
#[derive(Clone, Copy)]
struct Bounds {
    /// Of the mean gap in seconds.
    shortest: f64,
    longest: f64,
    /// Of the length in checks.
    fewest: f64,
    most: f64,
    /// Bursts before anything is adapted.
    first: f64,
}

/// More often is little but signals; more seldom sees too little of a short run.
const RATE: Bounds = Bounds { shortest: 0.002, longest: 0.2, fewest: 50.0, most: 1e6, first: 1.0 };
/// The share that is kept if nothing was asked for: recording it, reading it and the triggers together cost some percent
/// (bench/results/overhead.md).
const GENTLE: f64 = 0.002;
/// By how much periods may grow then, and the bursts that even a short run gets before.
const GENTLE_FACTOR: f64 = 4.0;
const GENTLE_FIRST: f64 = 50.0;
/// How much of what was measured before is kept at each step: bursts differ a lot in length.
const MEMORY: f64 = 0.8;

/// What the program's clock and the probe's counters say so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// CPU time of the program, in seconds.
    pub cpu: f64,
    /// Of that, spent in bursts.
    pub in_bursts: f64,
    /// Bursts.
    pub bursts: f64,
}

/// Steers towards a share.
pub struct Pace {
    rate: f64,
    bounds: Bounds,
    period: f64,
    checks: f64,
    last: Measured,
    recent: Measured,
}

impl Pace {
    /// Keeps a rate, starting with these settings.
    pub fn new(rate: f64, period: Duration, checks: u64) -> Pace {
        Pace::within(RATE, rate, period, checks)
    }

    /// Makes bursts of this length, this often at most, and up to a few times more seldom if that costs too much.
    pub fn gentle(period: Duration, checks: u64) -> Pace {
        let shortest = period.as_secs_f64();
        let (longest, checks_only) = (shortest * GENTLE_FACTOR, checks as f64);
        let bounds =
            Bounds { shortest, longest, fewest: checks_only, most: checks_only, first: GENTLE_FIRST };
        Pace::within(bounds, GENTLE, period, checks)
    }

    fn within(bounds: Bounds, rate: f64, period: Duration, checks: u64) -> Pace {
        let none = Measured::default();
        Pace { rate, bounds, period: period.as_secs_f64(), checks: checks as f64, last: none, recent: none }
    }

    /// Takes new measurements; returns settings if they changed.
    pub fn step(&mut self, now: Measured) -> Option<(Duration, u64)> {
        let fresh = |now: f64, last: f64, recent: f64| recent * MEMORY + (now - last).max(0.0);
        self.recent = Measured {
            cpu: fresh(now.cpu, self.last.cpu, self.recent.cpu),
            in_bursts: fresh(now.in_bursts, self.last.in_bursts, self.recent.in_bursts),
            bursts: fresh(now.bursts, self.last.bursts, self.recent.bursts),
        };
        self.last = now;
        if self.recent.cpu <= 0.0 || self.recent.bursts < 1.0 || now.bursts < self.bounds.first {
            return None;
        }
        let each = self.recent.in_bursts / self.recent.bursts;
        let wanted = self.wanted_period(each);
        self.adapt(each, wanted);
        Some((Duration::from_secs_f64(self.period), self.checks as u64))
    }

    /// The mean CPU time from one burst to the next that gives the rate. Triggers can fail to begin a burst, so what a
    /// period is worth is measured, not assumed.
    fn wanted_period(&self, each: f64) -> f64 {
        let between = self.recent.cpu / self.recent.bursts;
        let worth = (between / self.period).max(0.1);
        each / self.rate / worth
    }

    fn adapt(&mut self, each: f64, wanted: f64) {
        let Bounds { shortest, longest, fewest, most, .. } = self.bounds;
        let bounded = wanted.clamp(shortest, longest);
        // Half the way each time: measurements lag behind.
        self.period = (self.period * bounded).sqrt();
        if each > 0.0 && !(shortest..=longest).contains(&wanted) {
            let factor = (bounded / wanted).sqrt().clamp(0.5, 2.0);
            self.checks = (self.checks * factor).clamp(fewest, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose bursts take `fixed + per_check * checks` seconds, and of whose triggers a part begins one.
    fn settle(rate: f64, fixed: f64, per_check: f64, begins: f64) -> f64 {
        let mut pace = Pace::new(rate, Duration::from_millis(10), 1000);
        let (mut period, mut checks) = (0.01, 1000.0);
        let mut now = Measured::default();
        let mut share = 0.0;
        for _ in 0..300 {
            let bursts = 0.1 / period * begins;
            let in_bursts = bursts * (fixed + per_check * checks);
            now.cpu += 0.1;
            now.bursts += bursts;
            now.in_bursts += in_bursts;
            share = in_bursts / 0.1;
            if let Some((p, c)) = pace.step(now) {
                (period, checks) = (p.as_secs_f64(), c as f64);
            }
        }
        share
    }

    #[test]
    fn the_share_is_reached_whatever_bursts_cost() {
        for rate in [0.001, 0.01, 0.05, 0.3] {
            for (fixed, per_check) in [(0.0, 1e-7), (1e-5, 3e-8), (2e-5, 1e-6)] {
                for begins in [1.0, 0.6] {
                    let share = settle(rate, fixed, per_check, begins);
                    assert!((share / rate - 1.0).abs() < 0.1, "{rate} {fixed} {per_check} {begins}: {share}");
                }
            }
        }
    }

    #[test]
    fn what_was_not_asked_for_stays_within_bounds() {
        let mut pace = Pace::gentle(Duration::from_millis(10), 1000);
        let mut now = Measured { cpu: 0.4, in_bursts: 0.04, bursts: 40.0 };
        assert_eq!(pace.step(now), None, "a short run gets its bursts");
        for (each, expected) in [(1e-3, 0.04), (4e-5, 0.02), (1e-6, 0.01)] {
            let mut period = 0.0;
            for _ in 0..100 {
                now.cpu += 0.1;
                now.bursts += 0.1 / pace.period;
                now.in_bursts += 0.1 / pace.period * each;
                period = pace.step(now).map_or(0.0, |(period, _)| period.as_secs_f64());
            }
            assert!((period / expected - 1.0).abs() < 0.05, "{each}: {period}");
        }
        assert_eq!(pace.checks, 1000.0);
    }

    #[test]
    fn without_bursts_nothing_changes() {
        let mut pace = Pace::new(0.01, Duration::from_millis(10), 1000);
        assert_eq!(pace.step(Measured { cpu: 1.0, in_bursts: 0.0, bursts: 0.0 }), None);
    }
}
