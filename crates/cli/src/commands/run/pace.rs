//! `--rate`: adapts how often and how long bursts are to the share of CPU time that they take.
//!
//! The share that is steered is CPU time spent in bursts, translation included, over all CPU time of the program: that
//! is what recording costs at most, and it can be measured everywhere. The gap is adapted first; when it reaches its
//! bounds, the length.

use std::time::Duration;

/// Bounds of the mean gap. More often is little but signals; more seldom sees too little of a short run.
const SHORTEST: f64 = 0.002;
const LONGEST: f64 = 0.2;
/// Bounds of the length in checks.
const FEWEST: f64 = 50.0;
const MOST: f64 = 1e6;
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
    period: f64,
    checks: f64,
    last: Measured,
    recent: Measured,
}

impl Pace {
    /// Starts with these settings.
    pub fn new(rate: f64, period: Duration, checks: u64) -> Pace {
        let none = Measured::default();
        Pace { rate, period: period.as_secs_f64(), checks: checks as f64, last: none, recent: none }
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
        if self.recent.cpu <= 0.0 || self.recent.bursts < 1.0 {
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
        let bounded = wanted.clamp(SHORTEST, LONGEST);
        // Half the way each time: measurements lag behind.
        self.period = (self.period * bounded).sqrt();
        if each > 0.0 && !(SHORTEST..=LONGEST).contains(&wanted) {
            let factor = (bounded / wanted).sqrt().clamp(0.5, 2.0);
            self.checks = (self.checks * factor).clamp(FEWEST, MOST);
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
    fn without_bursts_nothing_changes() {
        let mut pace = Pace::new(0.01, Duration::from_millis(10), 1000);
        assert_eq!(pace.step(Measured { cpu: 1.0, in_bursts: 0.0, bursts: 0.0 }), None);
    }
}
