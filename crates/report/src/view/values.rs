//! Values of loads for people (Zilles and Sohi 2001, section 5).

use crate::name::Namer;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::Place;
use sonde_values::filter::Recorded;
use sonde_values::{LoadValues, Method, ValueCount, ValueProfile};

/// Values told of a load.
const VALUES: usize = 4;

/// A value of a load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ValueView {
    /// The value.
    pub value: String,
    /// Its share of the load's executions.
    pub share: f64,
    /// The share is at least this ...
    pub share_at_least: f64,
    /// ... and at most this.
    pub share_at_most: f64,
}

/// A load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LoadView {
    /// Function and line.
    pub name: String,
    /// Module and offset.
    pub place: String,
    /// Share of all loads.
    pub share: f64,
    /// How often it was executed while recording.
    pub executions: u64,
    /// Bytes.
    pub bytes: u16,
    /// Its most frequent values.
    pub values: Vec<ValueView>,
    /// It holds one value for long, then another for long; null where that cannot be told.
    pub glacial: Option<bool>,
}

/// All loads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ValuesView {
    /// How the values were found.
    pub method: String,
    /// Loads executed while recording.
    pub loads: u64,
    /// Of them, those that were not recorded, because what they give was known (`--live-masks`).
    pub masked: u64,
    /// Share of loads recorded in each stretch of the run, where that changed; empty for several runs together.
    pub recorded_over_time: Vec<f64>,
    /// Different load instructions.
    pub instructions: usize,
    /// Share of executions whose load gives its most frequent value: how invariant the program is.
    pub invariance: f64,
    /// The most frequent loads.
    pub hot: Vec<LoadView>,
}

/// Values by name.
pub fn view(profile: &ValueProfile, namer: &mut Namer<'_>, options: &Options) -> ValuesView {
    let all = profile.totals.loads.max(1) as f64;
    let mut loads: Vec<&LoadValues> = profile.loads.iter().collect();
    loads.sort_by_key(|l| (std::cmp::Reverse(l.executions), l.pc));
    let weighted = |l: &LoadValues| l.executions as f64 * l.invariance(profile.method).estimate;
    let executions: u64 = loads.iter().map(|l| l.executions).sum();
    ValuesView {
        method: method(profile.method),
        loads: profile.totals.loads,
        masked: profile.totals.masked,
        recorded_over_time: if profile.totals.masked > 0 { recorded(&profile.timeline) } else { Vec::new() },
        instructions: loads.len(),
        invariance: loads.iter().map(|l| weighted(l)).sum::<f64>() / executions.max(1) as f64,
        hot: loads.into_iter().take(options.top).map(|l| row(profile, l, all, namer)).collect(),
    }
}

fn recorded(timeline: &[Recorded]) -> Vec<f64> {
    let mut before = 0;
    let share = |stretch: &Recorded| {
        let loads = stretch.loads.saturating_sub(std::mem::replace(&mut before, stretch.loads));
        stretch.logged as f64 / loads.max(1) as f64
    };
    timeline.iter().map(share).collect()
}

fn row(profile: &ValueProfile, load: &LoadValues, all: f64, namer: &mut Namer<'_>) -> LoadView {
    let value = |v: &ValueCount| {
        let share = load.share(v, profile.method);
        ValueView {
            value: text(v.value, load.size),
            share: share.estimate,
            share_at_least: share.lower,
            share_at_most: share.upper,
        }
    };
    LoadView {
        name: namer.instruction(Place(load.pc)),
        place: namer.offset(Place(load.pc)),
        share: load.executions as f64 / all,
        executions: load.executions,
        bytes: load.size,
        values: load.values.iter().take(VALUES).map(value).collect(),
        glacial: load.glacial,
    }
}

fn method(method: Method) -> String {
    match method {
        Method::Exact => "every load".into(),
        Method::Sampling { every } => format!("one load in {every}"),
        Method::Slots { slots, .. } => format!("{slots} slots"),
        Method::Mixed => "several methods".into(),
    }
}

fn text(value: u64, bytes: u16) -> String {
    if bytes > 8 && value >= 1 << 32 {
        // Wider operands are told apart by a fingerprint, which is no value.
        return format!("vector #{:08x}", value as u32);
    }
    if value < 1 << 16 { value.to_string() } else { format!("{value:#x}") }
}
