//! By how much shares differ by chance when only bursts were recorded.
//!
//! A burst is one draw: what it records lies close together, so that its many events tell hardly more than its one
//! place. Let a range take the part `x` of what a burst stands for, and `p` of the whole: `x` is between 0 and 1 with mean
//! `p`, and its variance is at most `p (1 - p)`. With `A` and `B` bursts, independent of each other, Bernstein's
//! inequality bounds the difference of the two averages: it exceeds
//!
//! ```text
//! t = c L / 3 + sqrt((c L / 3)^2 + 2 V L),   c = 1 / min(A, B),   V = p (1 - p) (1 / A + 1 / B),   L = ln(2 m / q)
//! ```
//!
//! with a probability of at most `q / m`; among `m` ranges compared, one or more do so with at most `q`. Not the normal
//! approximation: it promises too much for ranges that few bursts fell into.
//!
//! In a tree over loads, say, bursts with few loads weigh less. If each burst weighs at most its share of the time, the
//! number of equal bursts that would vary as much is at least the number of bursts times the weight of the tree as a part
//! of all time (from `sum w^2 <= max w * sum w`); that number is taken.

use crate::profile::Profile;
use sonde_summary::{Kind, Trees, Unit};

#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    before: f64,
    after: f64,
    /// `L` above.
    log: f64,
}

impl Noise {
    /// Of these effective numbers of bursts (infinite if everything was recorded).
    pub fn new(before: f64, after: f64, compared: usize, confidence: f64) -> Noise {
        let doubt = (1.0 - confidence).clamp(1e-12, 1.0);
        Noise { before, after, log: (2.0 * compared as f64 / doubt).ln() }
    }

    /// For a range with these shares, if it has not changed; never above 1.
    pub fn of(&self, before: f64, after: f64) -> f64 {
        let (a, b) = (1.0 / self.before.max(1e-9), 1.0 / self.after.max(1e-9));
        if a + b == 0.0 {
            return 0.0;
        }
        // Under the assumption that both are the same, all bursts tell of it; where both are sampled, by their number.
        let p = if a == 0.0 || b == 0.0 { before.max(after) } else { (b * before + a * after) / (a + b) };
        let p = p.clamp(0.0, 1.0);
        let variance = p * (1.0 - p) * (a + b);
        let step = a.max(b) * self.log / 3.0;
        (step + (step * step + 2.0 * variance * self.log).sqrt()).min(1.0)
    }
}

/// How many bursts of equal weight tell as much as a tree of this kind was made from; infinite if all was recorded.
pub(super) fn effective_bursts(profile: &Profile, kind: Kind) -> f64 {
    let summary = &profile.summary;
    if profile.runs.iter().all(|run| run.policy == "always") && profile.runs_left_out() == 0 {
        return f64::INFINITY;
    }
    let (bursts, whole) = match summary.unit {
        Unit::Picoseconds if kind == Kind::Code => return summary.bursts.effective(),
        Unit::Picoseconds => {
            let code = summary.bursts.time.saturating_sub(summary.bursts.kernel_time);
            (summary.bursts.effective_of_references(), code)
        }
        Unit::Events => {
            let bursts = summary.bursts.count.saturating_sub(summary.bursts.empty);
            (bursts as f64, summary.counts.instructions)
        }
    };
    let weight = summary.of(kind).map_or(0, |ranges| match &ranges.tree {
        Trees::One(tree) => tree.events,
        Trees::Two(tree) => tree.events,
    });
    if whole == 0 { 0.0 } else { bursts * (weight as f64 / whole as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_chance_where_all_was_recorded() {
        let noise = Noise::new(f64::INFINITY, f64::INFINITY, 1000, 0.99);
        assert_eq!(noise.of(0.5, 0.6), 0.0);
    }

    #[test]
    fn few_bursts_tell_little_and_many_tell_much() {
        let of = |bursts: f64| Noise::new(bursts, bursts, 100, 0.99).of(0.3, 0.3);
        assert_eq!(of(1.0), 1.0);
        assert_eq!(of(0.0), 1.0);
        assert!(of(100.0) > 0.2 && of(1e6) < 0.01);
        assert!(of(4e6) < of(1e6) * 0.51);
    }

    /// Draws of bursts that lie wholly inside or outside: the worst case of the bound.
    #[test]
    fn chance_stays_below_the_bound() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        for (bursts, p) in [(50, 0.5), (200, 0.1), (1000, 0.01), (1000, 0.6)] {
            let noise = Noise::new(bursts as f64, bursts as f64, 1, 0.95);
            let mut share = || (0..bursts).filter(|_| random() < p).count() as f64 / bursts as f64;
            let trials = 1000;
            let exceeded = (0..trials).filter(|_| {
                let (a, b) = (share(), share());
                (a - b).abs() > noise.of(a, b)
            });
            let exceeded = exceeded.count();
            assert!(exceeded <= trials / 20, "{exceeded} of {trials} at {bursts} bursts, p = {p}");
        }
    }
}
