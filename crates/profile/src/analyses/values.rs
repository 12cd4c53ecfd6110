//! Values of loads as columns.

use super::columns::{differences, even, sums};
use crate::error::ProfileError;
use crate::wire;
use sonde_values::filter::Recorded;
use sonde_values::{LoadValues, Method, Totals, ValueCount, ValueProfile};

pub(crate) fn encode(values: &ValueProfile) -> wire::Values {
    let (totals, loads) = (&values.totals, &values.loads);
    let (method, every, slots, narrow) = match values.method {
        Method::Exact => (wire::ValueMethod::Exact, 0, 0, false),
        Method::Sampling { every } => (wire::ValueMethod::Sampling, every, 0, false),
        Method::Slots { slots, narrow } => (wire::ValueMethod::Slots, 0, slots, narrow),
        Method::Mixed => (wire::ValueMethod::Mixed, 0, 0, false),
    };
    let column = |of: fn(&LoadValues) -> u64| loads.iter().map(of).collect();
    let all = || loads.iter().flat_map(|load| &load.values);
    wire::Values {
        method: method as i32,
        every,
        slots,
        narrow,
        loads: totals.loads,
        profiled: totals.profiled,
        returns: totals.returns,
        without_value: totals.without_value,
        samples: totals.samples,
        evicted_loads: totals.evicted_loads,
        evicted_samples: totals.evicted_samples,
        gaps: totals.gaps,
        unplaced: totals.unplaced,
        masked: totals.masked,
        stretch_loads: stretches(&values.timeline),
        stretch_logged: values.timeline.iter().map(|s| s.logged).collect(),
        stretch_recorded: values.timeline.iter().map(|s| s.recorded).collect(),
        stretch_passes: values.timeline.iter().map(|s| s.passes).collect(),
        stretch_skipped: values.timeline.iter().map(|s| s.skipped).collect(),
        place: differences(loads.iter().map(|load| load.pc)),
        size: loads.iter().map(|load| load.size.into()).collect(),
        executions: column(|load| load.executions),
        seen: column(|load| load.seen),
        missed: column(|load| load.missed),
        unlisted: column(|load| load.unlisted),
        glacial: loads.iter().map(|load| load.glacial.map_or(0, |yes| 1 + u32::from(yes))).collect(),
        values: loads.iter().map(|load| load.values.len() as u32).collect(),
        value: all().map(|value| value.value).collect(),
        lower: all().map(|value| value.lower).collect(),
        estimate: all().map(|value| value.estimate).collect(),
        upper: all().map(|value| value.upper).collect(),
    }
}

/// Loads of each stretch, from those since the beginning.
fn stretches(timeline: &[Recorded]) -> Vec<u64> {
    let mut before = 0;
    let lengths = timeline.iter().map(|s| s.loads.saturating_sub(std::mem::replace(&mut before, s.loads)));
    lengths.collect()
}

fn timeline(values: &wire::Values) -> Result<Vec<Recorded>, ProfileError> {
    let columns = [
        &values.stretch_loads,
        &values.stretch_logged,
        &values.stretch_recorded,
        &values.stretch_passes,
        &values.stretch_skipped,
    ];
    even("values", &columns.map(Vec::len))?;
    let mut loads = 0u64;
    let stretch = |i: usize| {
        let [more, logged, recorded, passes, skipped] = columns.map(|column| column[i]);
        loads = loads.saturating_add(more);
        Recorded { loads, logged, recorded, passes, skipped }
    };
    Ok((0..values.stretch_loads.len()).map(stretch).collect())
}

pub(crate) fn decode(values: &wire::Values) -> Result<ValueProfile, ProfileError> {
    let bad = || ProfileError::damaged("the values of loads were found in no known way, or are cut off");
    let method = match wire::ValueMethod::try_from(values.method).map_err(|_| bad())? {
        wire::ValueMethod::Exact => Method::Exact,
        wire::ValueMethod::Sampling => Method::Sampling { every: values.every },
        wire::ValueMethod::Slots => Method::Slots { slots: values.slots, narrow: values.narrow },
        wire::ValueMethod::Mixed => Method::Mixed,
    };
    let lengths = [
        values.place.len(),
        values.size.len(),
        values.executions.len(),
        values.seen.len(),
        values.missed.len(),
        values.unlisted.len(),
        values.glacial.len(),
        values.values.len(),
    ];
    even("values", &lengths)?;
    let counted = [values.value.len(), values.lower.len(), values.estimate.len(), values.upper.len()];
    even("values", &counted)?;
    let counts = |i: usize| ValueCount {
        value: values.value[i],
        lower: values.lower[i],
        estimate: values.estimate[i],
        upper: values.upper[i],
    };
    let mut next = 0usize;
    let mut loads = Vec::with_capacity(values.place.len());
    for (i, pc) in sums(&values.place).enumerate() {
        let end = next + values.values[i] as usize;
        if end > values.value.len() {
            return Err(bad());
        }
        loads.push(LoadValues {
            pc,
            size: values.size[i].try_into().map_err(|_| bad())?,
            executions: values.executions[i],
            seen: values.seen[i],
            missed: values.missed[i],
            values: (next..end).map(counts).collect(),
            unlisted: values.unlisted[i],
            glacial: [None, Some(false), Some(true)]
                .get(values.glacial[i] as usize)
                .copied()
                .ok_or_else(bad)?,
        });
        next = end;
    }
    even("values", &[next, values.value.len()])?;
    Ok(ValueProfile { method, loads, totals: totals(values), timeline: timeline(values)? })
}

fn totals(values: &wire::Values) -> Totals {
    Totals {
        loads: values.loads,
        profiled: values.profiled,
        returns: values.returns,
        without_value: values.without_value,
        samples: values.samples,
        evicted_loads: values.evicted_loads,
        evicted_samples: values.evicted_samples,
        gaps: values.gaps,
        unplaced: values.unplaced,
        masked: values.masked,
    }
}

/// How many values are listed.
fn listed(values: &ValueProfile) -> usize {
    values.loads.iter().map(|load| load.values.len() + 1).sum()
}

/// Whether there are few enough loads and values.
pub(super) fn within_bounds(values: &ValueProfile, most: usize) -> Result<(), String> {
    if listed(values) > most { Err("there are too many".into()) } else { Ok(()) }
}

/// Forgets the loads that ran least until at most so many values and loads are left; they count as evicted.
pub(crate) fn bound(values: &mut ValueProfile, most: usize) {
    if listed(values) <= most {
        return;
    }
    values.loads.sort_by_key(|load| (std::cmp::Reverse(load.executions), load.pc));
    let mut room = most;
    let fits = values.loads.iter().take_while(|load| {
        let left = room.checked_sub(load.values.len() + 1);
        room = left.unwrap_or(0);
        left.is_some()
    });
    let fits = fits.count();
    for load in values.loads.drain(fits..) {
        values.totals.evicted_loads += 1;
        values.totals.evicted_samples = values.totals.evicted_samples.saturating_add(load.seen);
    }
    values.loads.sort_by_key(|load| load.pc);
}
