//! Putting profiles together: of two runs, or of two places that turn out to be one.

use crate::profile::{LoadValues, MAX_LOADS, MAX_VALUES, Method, Totals, ValueCount, ValueProfile};

/// Adds `other` to `into`.
pub(crate) fn profiles(into: &mut ValueProfile, other: &ValueProfile) {
    let empty = |p: &ValueProfile| p.loads.is_empty() && p.totals == Totals::default();
    into.method = match (empty(into), empty(other)) {
        (true, false) => other.method,
        (_, true) => into.method,
        _ if into.method == other.method => into.method,
        _ => Method::Mixed,
    };
    into.timeline = match (empty(into), empty(other)) {
        (true, _) => other.timeline.clone(),
        (_, true) => std::mem::take(&mut into.timeline),
        _ => Vec::new(),
    };
    totals(&mut into.totals, &other.totals);
    let mut loads = std::mem::take(&mut into.loads);
    loads.extend(other.loads.iter().cloned());
    into.loads = unite(loads);
    drop_coldest(into);
}

fn totals(into: &mut Totals, other: &Totals) {
    let add = |a: &mut u64, b: u64| *a = a.saturating_add(b);
    add(&mut into.loads, other.loads);
    add(&mut into.profiled, other.profiled);
    add(&mut into.masked, other.masked);
    add(&mut into.returns, other.returns);
    add(&mut into.without_value, other.without_value);
    add(&mut into.samples, other.samples);
    add(&mut into.evicted_loads, other.evicted_loads);
    add(&mut into.evicted_samples, other.evicted_samples);
    add(&mut into.gaps, other.gaps);
    add(&mut into.unplaced, other.unplaced);
}

/// Keeps the size bounded; what goes is counted.
fn drop_coldest(profile: &mut ValueProfile) {
    let excess = profile.loads.len().saturating_sub(MAX_LOADS);
    if excess == 0 {
        return;
    }
    let coldest = |l: &LoadValues| (l.executions, l.pc);
    profile.loads.select_nth_unstable_by_key(excess - 1, coldest);
    for load in profile.loads.drain(..excess) {
        profile.totals.evicted_loads += 1;
        profile.totals.evicted_samples = profile.totals.evicted_samples.saturating_add(load.seen);
    }
    profile.loads.sort_unstable_by_key(|l| l.pc);
}

/// Sorts loads by pc and unites those of the same pc.
pub(crate) fn unite(mut loads: Vec<LoadValues>) -> Vec<LoadValues> {
    loads.sort_by_key(|l| l.pc);
    let mut united: Vec<LoadValues> = Vec::with_capacity(loads.len());
    for load in loads {
        match united.last_mut() {
            Some(last) if last.pc == load.pc => *last = both(last, &load),
            _ => united.push(load),
        }
    }
    united
}

/// Two observations of one load. A value that only one of them lists may have been in the other as often as the other's
/// `unlisted` allows.
fn both(a: &LoadValues, b: &LoadValues) -> LoadValues {
    let mut values: Vec<ValueCount> = a.values.iter().map(|v| sum(v, &b.value(v.value))).collect();
    let only_b = b.values.iter().filter(|v| a.values.iter().all(|w| w.value != v.value));
    values.extend(only_b.map(|v| sum(v, &a.value(v.value))));
    let mut unlisted = a.unlisted.saturating_add(b.unlisted);
    sort(&mut values);
    for v in values.drain(values.len().min(MAX_VALUES)..) {
        unlisted = unlisted.max(v.upper);
    }
    LoadValues {
        pc: a.pc,
        size: a.size.max(b.size),
        executions: a.executions.saturating_add(b.executions),
        seen: a.seen.saturating_add(b.seen),
        missed: a.missed.saturating_add(b.missed),
        values,
        unlisted,
        glacial: match (a.glacial, b.glacial) {
            (Some(a), Some(b)) => Some(a || b),
            (known, None) | (None, known) => known,
        },
    }
}

fn sum(a: &ValueCount, b: &ValueCount) -> ValueCount {
    ValueCount {
        value: a.value,
        lower: a.lower.saturating_add(b.lower),
        estimate: a.estimate + b.estimate,
        upper: a.upper.saturating_add(b.upper),
    }
}

/// The most frequent first, and always in the same order.
pub(crate) fn sort(values: &mut [ValueCount]) {
    values.sort_by(|a, b| b.estimate.total_cmp(&a.estimate).then(a.value.cmp(&b.value)));
}
