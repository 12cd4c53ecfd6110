//! From what a method found to a profile: executions and totals are the same for all of them.

use crate::executions::Executions;
use crate::profile::{LoadValues, Method, Totals, ValueProfile};

/// The profile of these loads, which are sorted by pc.
pub(crate) fn profile(method: Method, mut loads: Vec<LoadValues>, executions: &Executions) -> ValueProfile {
    for load in &mut loads {
        let executed = executions.by_pc.get(&load.pc).copied().unwrap_or_default();
        load.executions = executed.count;
        load.size = executed.size;
    }
    let totals = Totals {
        loads: executions.loads,
        profiled: executions.profiled,
        returns: executions.returns,
        without_value: executions.without_value,
        masked: executions.masked,
        unplaced: executions.unplaced,
        ..Totals::default()
    };
    ValueProfile { method, loads, totals, timeline: Vec::new() }
}
