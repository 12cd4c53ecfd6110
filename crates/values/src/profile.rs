//! The result, whichever way it was found: per load its values with bounds, as plain data that can be merged.

use crate::filter::{Recorded, STRETCHES};
use crate::merge;
use std::collections::HashSet;

/// Most values kept for a load.
pub const MAX_VALUES: usize = 64;
/// Most loads kept in a merged profile.
pub const MAX_LOADS: usize = 1 << 20;

/// How the values were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Every load was looked at.
    #[default]
    Exact,
    /// One load in `every` was looked at.
    Sampling {
        /// Loads per sample.
        every: u64,
    },
    /// Slots (Zilles and Sohi 2001, section 5).
    Slots {
        /// Number of slots.
        slots: u32,
        /// Whether only the low 32 bits of values were kept.
        narrow: bool,
    },
    /// Profiles of different methods, merged.
    Mixed,
}

/// One value of a load, counted in samples (for the exact method, in executions).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueCount {
    /// The value; for operands wider than 8 bytes with more than the low 8 in use, a fingerprint of all
    /// ([`fingerprint`](crate::fingerprint)).
    pub value: u64,
    /// It was seen at least so often.
    pub lower: u64,
    /// Best guess.
    pub estimate: f64,
    /// It was there at most so often.
    pub upper: u64,
}

/// A share with bounds, each from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Lower bound.
    pub lower: f64,
    /// Best guess.
    pub estimate: f64,
    /// Upper bound.
    pub upper: f64,
}

/// What is known about the values of one load instruction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadValues {
    /// The instruction.
    pub pc: u64,
    /// Bytes loaded; above 8, see [`ValueCount::value`].
    pub size: u16,
    /// How often it ran in the recorded stream, whether or not it was looked at: its weight.
    pub executions: u64,
    /// Samples that the values are shares of.
    pub seen: u64,
    /// At most so many samples more were seen and forgotten for lack of memory; for the exact method, also those that
    /// were masked at the source.
    pub missed: u64,
    /// Values, the most frequent first.
    pub values: Vec<ValueCount>,
    /// No value that is not listed was there more often than this.
    pub unlisted: u64,
    /// Whether it holds one value for long, then another for long; none if the method cannot tell.
    pub glacial: Option<bool>,
}

/// Totals over a stream, and what is not in the profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Executions of load instructions in the stream (a repeated string instruction counts once).
    pub loads: u64,
    /// Of them, those that are profiled: the sum of [`LoadValues::executions`] and of loads never looked at.
    pub profiled: u64,
    /// Of those that are profiled, the ones that were not recorded, because they were masked at the source.
    pub masked: u64,
    /// Of all, returns that were left out.
    pub returns: u64,
    /// Of all, those whose value the stream cannot have.
    pub without_value: u64,
    /// Values looked at.
    pub samples: u64,
    /// Times that a load was forgotten, or not taken in, for lack of memory.
    pub evicted_loads: u64,
    /// Samples of them.
    pub evicted_samples: u64,
    /// Places where a part of the stream is missing.
    pub gaps: u64,
    /// Passes through code that the catalog does not describe.
    pub unplaced: u64,
}

/// The values of all loads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueProfile {
    /// How it was made.
    pub method: Method,
    /// Loads by ascending pc.
    pub loads: Vec<LoadValues>,
    /// Totals.
    pub totals: Totals,
    /// How much was recorded and looked at over the time of the run, for methods that mask; empty for several runs
    /// together, which have no common time.
    pub timeline: Vec<Recorded>,
}

impl LoadValues {
    /// The share that its most frequent value has of it.
    ///
    /// The exact method's bounds are certain. The others' are certain for the samples, widened by the 95 % interval of
    /// Wilson for having seen samples only; that holds for independent samples, which those of a program are not quite
    /// (section 5.1.4 of the paper).
    pub fn invariance(&self, method: Method) -> Share {
        self.values.first().map_or(Share::default(), |v| self.share(v, method))
    }

    /// The share of one of its values, bounded as [`invariance`](Self::invariance).
    pub fn share(&self, value: &ValueCount, method: Method) -> Share {
        if self.seen == 0 {
            return Share { upper: 1.0, ..Share::default() };
        }
        let (seen, most) = (self.seen as f64, self.seen.saturating_add(self.missed) as f64);
        let estimate = (value.estimate / seen).min(1.0);
        let (lower, upper) = (value.lower as f64 / most, value.upper as f64 / most);
        match method {
            Method::Exact => Share { lower, estimate, upper },
            _ => Share { lower: wilson(lower, seen, -1.0), estimate, upper: wilson(upper, seen, 1.0) },
        }
    }

    /// What is known about a value: if it is not listed, what that means.
    pub fn value(&self, value: u64) -> ValueCount {
        let listed = self.values.iter().find(|v| v.value == value);
        listed.copied().unwrap_or(ValueCount { value, lower: 0, estimate: 0.0, upper: self.unlisted })
    }
}

/// One side of the 95 % interval of Wilson.
fn wilson(share: f64, samples: f64, side: f64) -> f64 {
    const Z: f64 = 1.96;
    let center = share + Z * Z / (2.0 * samples);
    let half = Z * (share * (1.0 - share) / samples + Z * Z / (4.0 * samples * samples)).max(0.0).sqrt();
    ((center + side * half) / (1.0 + Z * Z / samples)).clamp(0.0, 1.0)
}

impl ValueProfile {
    /// The load at a pc.
    pub fn load(&self, pc: u64) -> Option<&LoadValues> {
        self.loads.binary_search_by_key(&pc, |l| l.pc).ok().map(|i| &self.loads[i])
    }

    /// Replaces pcs by what `place` gives, and unites loads that get the same. Values stay as they are.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        for load in &mut self.loads {
            load.pc = place(load.pc);
        }
        let loads = std::mem::take(&mut self.loads);
        self.loads = merge::unite(loads);
    }

    /// Makes this the profile of both runs together; bounds add up.
    pub fn merge(&mut self, other: &ValueProfile) {
        merge::profiles(self, other);
    }

    /// Whether the data can be true.
    pub fn check(&self) -> Result<(), String> {
        if let Some(pair) = self.loads.windows(2).find(|p| p[0].pc >= p[1].pc) {
            return Err(format!("load {:#x} stands before {:#x}", pair[0].pc, pair[1].pc));
        }
        let t = &self.totals;
        if t.returns.saturating_add(t.without_value).saturating_add(t.profiled) != t.loads {
            return Err(format!("the kinds of loads do not add up to {}: {t:?}", t.loads));
        }
        if t.masked > t.profiled {
            return Err(format!("{} loads were masked, but only {} are profiled", t.masked, t.profiled));
        }
        self.check_timeline()?;
        if self.loads.len() > MAX_LOADS {
            return Err(format!("{} loads are more than {MAX_LOADS}", self.loads.len()));
        }
        // A stream with holes in its descriptions has values of loads that cannot be counted.
        let executions: u64 = self.loads.iter().map(|l| l.executions).fold(0, u64::saturating_add);
        if executions > t.profiled {
            return Err(format!("loads ran {executions} times in all, but only {} did", t.profiled));
        }
        self.loads
            .iter()
            .try_for_each(|l| l.check(t.unplaced > 0).map_err(|what| format!("load {:#x}: {what}", l.pc)))
    }
}

impl ValueProfile {
    fn check_timeline(&self) -> Result<(), String> {
        if self.timeline.len() > STRETCHES {
            return Err(format!("{} stretches are more than {STRETCHES}", self.timeline.len()));
        }
        let mut before = 0;
        for (i, point) in self.timeline.iter().enumerate() {
            let grows = point.loads >= before;
            let within = point.recorded <= point.logged && point.logged <= point.loads.saturating_sub(before);
            if !grows || !within || point.skipped > point.passes {
                return Err(format!("stretch {i} of the time line cannot be: {point:?}"));
            }
            before = point.loads;
        }
        Ok(())
    }
}

impl LoadValues {
    fn check(&self, incomplete: bool) -> Result<(), String> {
        if self.values.len() > MAX_VALUES {
            return Err(format!("{} values are more than {MAX_VALUES}", self.values.len()));
        }
        if self.seen > self.executions && !incomplete {
            return Err(format!("seen {} times, but ran {} times", self.seen, self.executions));
        }
        if self.values.windows(2).any(|p| p[0].estimate < p[1].estimate) {
            return Err("values are not in order".into());
        }
        let mut distinct = HashSet::new();
        let most = self.seen.saturating_add(self.missed);
        for v in &self.values {
            if !distinct.insert(v.value) {
                return Err(format!("value {:#x} is there twice", v.value));
            }
            // Estimates are sums of fractions.
            let slack = 1e-6 * (1.0 + v.upper as f64);
            let ordered = v.lower as f64 <= v.estimate + slack && v.estimate <= v.upper as f64 + slack;
            if !ordered || v.upper > most {
                return Err(format!("bounds of value {:#x} cannot be: {v:?} of {most}", v.value));
            }
        }
        let certain = self.values.iter().map(|v| v.lower).fold(0, u64::saturating_add);
        if certain > self.seen {
            return Err(format!("values were seen {certain} times, but all only {} times", self.seen));
        }
        if self.unlisted > most {
            return Err(format!("an unlisted value may have {} of {most}", self.unlisted));
        }
        Ok(())
    }
}
