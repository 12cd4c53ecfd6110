//! How far an estimated profile is from the exact one: the paper's metric (5.2, 5.3).

use crate::hash::PcMap;
use crate::profile::{Method, ValueProfile};
use std::collections::HashMap;

/// Which values count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Loaded at least so often by an instruction,
    pub count: u64,
    /// and at least this share of what it loads.
    pub share: f64,
}

impl Default for Worth {
    fn default() -> Self {
        Worth { count: 200, share: 0.25 }
    }
}

/// How good an estimate is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Pairs of instruction and value that count.
    pub pairs: u64,
    /// Of them, those that the estimate has.
    pub found: u64,
    /// Root of the mean square of the errors of invariance, weighted by how often the value was loaded.
    pub rms: f64,
    /// Share of the weight with an error above 5 % (outside the dotted lines of figure 5).
    pub beyond_5: f64,
}

/// Shares of values, by pc.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    by_pc: PcMap<Vec<(u64, f32)>>,
    narrow: bool,
}

/// No smaller share is kept: it would count for nothing.
const LEAST_SHARE: f64 = 1e-4;

impl Estimates {
    /// Nothing known; `narrow` if values are cut to 32 bits.
    pub fn new(narrow: bool) -> Estimates {
        Estimates { narrow, ..Estimates::default() }
    }

    /// Adds a share.
    pub fn add(&mut self, pc: u64, value: u64, share: f64) {
        if share >= LEAST_SHARE {
            self.by_pc.entry(pc).or_default().push((value, share as f32));
        }
    }

    /// Those of a profile.
    pub fn of(profile: &ValueProfile) -> Estimates {
        let mut all = Estimates::new(matches!(profile.method, Method::Slots { narrow: true, .. }));
        for load in &profile.loads {
            load.values
                .iter()
                .for_each(|v| all.add(load.pc, v.value, load.share(v, profile.method).estimate));
        }
        all
    }

    fn get(&self, pc: u64, value: u64) -> f64 {
        let value = if self.narrow { value & 0xffff_ffff } else { value };
        let values = self.by_pc.get(&pc).map_or(&[][..], Vec::as_slice);
        values.iter().find(|(v, _)| *v == value).map_or(0.0, |(_, share)| f64::from(*share))
    }
}

/// What is compared with: the pairs that count, with their share and how often they were loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    pairs: Vec<(u64, u64, f64, f64)>,
}

impl Truth {
    /// The pairs of an exact profile that are worth it.
    pub fn of(exact: &ValueProfile, worth: Worth) -> Truth {
        let mut pairs = Vec::new();
        for load in &exact.loads {
            for v in &load.values {
                let share = load.share(v, exact.method).estimate;
                if v.estimate >= worth.count as f64 && share >= worth.share {
                    pairs.push((load.pc, v.value, share, v.estimate));
                }
            }
        }
        Truth { pairs }
    }

    /// Judges estimates. A value that was not found has the share 0.
    pub fn score(&self, estimates: &Estimates) -> Score {
        let mut score = Score { pairs: self.pairs.len() as u64, ..Score::default() };
        let (mut squares, mut beyond, mut weights) = (0.0, 0.0, 0.0);
        for (pc, value, share, weight) in &self.pairs {
            let estimate = estimates.get(*pc, *value);
            let error = (estimate - share).abs();
            score.found += u64::from(estimate > 0.0);
            squares += weight * error * error;
            beyond += if error > 0.05 { *weight } else { 0.0 };
            weights += weight;
        }
        if weights > 0.0 {
            score.rms = (squares / weights).sqrt();
            score.beyond_5 = beyond / weights;
        }
        score
    }
}

/// Judges a profile against the exact one.
pub fn score(exact: &ValueProfile, estimate: &ValueProfile, worth: Worth) -> Score {
    Truth::of(exact, worth).score(&Estimates::of(estimate))
}

/// One point of figure 5: a pair of instruction and value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The instruction.
    pub pc: u64,
    /// The value.
    pub value: u64,
    /// Its true share.
    pub truth: f64,
    /// The share estimated.
    pub estimate: f64,
    /// How often it was loaded.
    pub count: u64,
}

/// The scatter plot of figure 5.
pub fn scatter(exact: &ValueProfile, estimate: &ValueProfile, worth: Worth) -> Vec<Point> {
    let estimates = Estimates::of(estimate);
    let point = |(pc, value, truth, count): (u64, u64, f64, f64)| Point {
        pc,
        value,
        truth,
        estimate: estimates.get(pc, value),
        count: count as u64,
    };
    Truth::of(exact, worth).pairs.into_iter().map(point).collect()
}

/// Glacial loads: how many the exact profile has, how many the estimate found, and how many it found wrongly.
pub fn glacial(exact: &ValueProfile, estimate: &ValueProfile) -> (u64, u64, u64) {
    let truly: HashMap<u64, bool> = exact.loads.iter().map(|l| (l.pc, l.glacial == Some(true))).collect();
    let found = estimate.loads.iter().filter(|l| l.glacial == Some(true));
    let (right, wrong): (Vec<_>, Vec<_>) = found.partition(|l| truly.get(&l.pc) == Some(&true));
    (truly.values().filter(|g| **g).count() as u64, right.len() as u64, wrong.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{LoadValues, ValueCount};

    /// A load: pc, executions, values with their counts.
    type Load<'a> = (u64, u64, &'a [(u64, u64)]);

    fn profile(loads: &[Load<'_>]) -> ValueProfile {
        let value =
            |(value, n): &(u64, u64)| ValueCount { value: *value, lower: *n, estimate: *n as f64, upper: *n };
        let load = |(pc, seen, values): &Load<'_>| LoadValues {
            pc: *pc,
            executions: *seen,
            seen: *seen,
            values: values.iter().map(value).collect(),
            ..LoadValues::default()
        };
        ValueProfile { loads: loads.iter().map(load).collect(), ..ValueProfile::default() }
    }

    #[test]
    fn the_error_by_hand() {
        let exact = profile(&[
            (1, 1000, &[(5, 900), (6, 100)]),     // 6 has too small a share
            (2, 400, &[(7, 200), (8, 200)]),      // both count
            (3, 199, &[(9, 199)]),                // too seldom
            (4, 10_000, &[(1, 300), (2, 9_700)]), // 1 has too small a share
        ]);
        let estimate = profile(&[(1, 10, &[(5, 8)]), (2, 10, &[(7, 10)]), (4, 100, &[(2, 97)])]);
        let score = score(&exact, &estimate, Worth::default());
        assert_eq!((score.pairs, score.found), (4, 3));
        // Errors: 0.1 of 900, 0.5 of 200, 0.5 of 200 (not found), 0 of 9,700.
        let expected: f64 = (900.0 * 0.01 + 400.0 * 0.25) / 11_000.0;
        assert!((score.rms - expected.sqrt()).abs() < 1e-6);
        assert!((score.beyond_5 - 1300.0 / 11_000.0).abs() < 1e-9);
        assert!(super::score(&exact, &exact, Worth::default()).rms < 1e-6);
    }

    #[test]
    fn nothing_to_compare_is_no_error() {
        assert_eq!(score(&profile(&[]), &profile(&[]), Worth::default()), Score::default());
    }

    #[test]
    fn narrow_estimates_are_found_by_the_low_half() {
        let exact = profile(&[(1, 1000, &[(5 << 32 | 3, 1000)])]);
        let mut estimate = profile(&[(1, 1000, &[(3, 1000)])]);
        assert!(score(&exact, &estimate, Worth::default()).rms > 0.9);
        estimate.method = Method::Slots { slots: 256, narrow: true };
        assert!(score(&exact, &estimate, Worth::default()).rms < 1e-6);
    }
}
