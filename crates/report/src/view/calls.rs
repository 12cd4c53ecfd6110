//! Calls for people (Nagpurkar et al. 2006, section 3.5).

use crate::error_bars::{half_width, half_width_of};
use crate::name::Namer;
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_calls::{CallProfile, Context, ELSEWHERE, ROOT};
use sonde_place::Place;
use std::collections::BTreeMap;

/// A hot method: invocations and backward branches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MethodView {
    /// The function.
    pub name: String,
    /// File name of its module.
    pub module: String,
    /// Calls recorded.
    pub calls: u64,
    /// Backward branches recorded.
    pub backward: u64,
    /// Share of all calls and backward branches; from bursts, each weighted by the CPU time that its burst stands for.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
}

/// A hot call pair.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PairView {
    /// The call site: function and line.
    pub site: String,
    /// The callee.
    pub callee: String,
    /// Calls recorded.
    pub calls: u64,
    /// Share of all calls; from bursts, each weighted by the CPU time that its burst stands for.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
}

/// A hot code region: the instructions up to a branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RegionView {
    /// The branch: function and line.
    pub branch: String,
    /// How often it was executed while recording.
    pub executed: u64,
    /// Share of all instructions; from bursts, of CPU time.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
}

/// A context: a function with the chain of its callers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ContextView {
    /// The function.
    pub name: String,
    /// How many callers are above it in this list.
    pub depth: usize,
    /// Share of all instructions (from bursts, of CPU time) in it and what it calls.
    pub share: f64,
    /// Share in it alone.
    pub own_share: f64,
    /// Share of what it calls in contexts that were not kept.
    pub not_kept_share: f64,
    /// The share is this much more or less, with 95 % probability.
    pub plus_minus: f64,
    /// Calls recorded.
    pub calls: u64,
    /// Its callers were not seen: a burst began in it or returned to it.
    pub cut: bool,
}

/// Who calls whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CallsView {
    /// Calls recorded.
    pub calls: u64,
    /// Those among them by a jump from the end of one function to the beginning of another, which returns for both.
    pub tail_calls: u64,
    /// Hot methods.
    pub methods: Vec<MethodView>,
    /// Hot call pairs.
    pub pairs: Vec<PairView>,
    /// Hot code regions.
    pub regions: Vec<RegionView>,
    /// Contexts from the hot threshold on, each behind its caller.
    pub contexts: Vec<ContextView>,
}

/// Calls by name.
pub fn view(
    subject: &Subject<'_>,
    calls: &CallProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> CallsView {
    CallsView {
        calls: calls.calls,
        tail_calls: calls.tail_calls,
        methods: methods(subject, calls, namer, options),
        pairs: pairs(subject, calls, namer, options),
        regions: regions(subject, calls, namer, options),
        contexts: contexts(subject, calls, namer, options),
    }
}

/// Without a symbol the nearest entry that was called stands for the function, unless a symbol says that its function ends
/// before.
fn nearest(calls: &CallProfile, namer: &mut Namer<'_>, at: u64) -> u64 {
    let entry = calls.function_of(at);
    if namer.function(Place(entry)).start.is_some() { at } else { entry }
}

fn methods(
    subject: &Subject<'_>,
    calls: &CallProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> Vec<MethodView> {
    let mut names: BTreeMap<u64, (String, String)> = BTreeMap::new();
    let all = sonde_calls::methods(calls, |at| {
        let function = namer.function(Place(at));
        let key = function.start.map_or_else(|| nearest(calls, namer, at), |start| start.0);
        let name = if function.start.is_some() { function.name } else { namer.function(Place(key)).name };
        names.entry(key).or_insert((name, function.module));
        key
    });
    let total: u64 = all.iter().map(|m| m.weight).sum();
    let events = all.iter().map(|m| m.calls.saturating_add(m.backward)).sum();
    let row = |m: &sonde_calls::Method| {
        let (name, module) = names[&m.function].clone();
        let share = m.weight as f64 / total.max(1) as f64;
        let plus_minus = half_width_of(share, subject.unit, subject.bursts, events);
        MethodView { name, module, calls: m.calls, backward: m.backward, share, plus_minus }
    };
    all.iter().take(options.top).map(row).collect()
}

fn pairs(
    subject: &Subject<'_>,
    calls: &CallProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> Vec<PairView> {
    let total: u64 = calls.functions.iter().map(|f| f.weight).sum();
    let mut all = calls.pairs.clone();
    all.sort_by_key(|p| (std::cmp::Reverse(p.weight), p.site));
    let row = |p: &sonde_calls::Pair| {
        let share = p.weight as f64 / total.max(1) as f64;
        PairView {
            site: namer.instruction(Place(p.site)),
            callee: namer.function(Place(p.callee)).name,
            calls: p.count,
            share,
            plus_minus: half_width_of(share, subject.unit, subject.bursts, calls.calls),
        }
    };
    all.iter().take(options.top).map(row).collect()
}

fn regions(
    subject: &Subject<'_>,
    calls: &CallProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> Vec<RegionView> {
    let mut all = calls.regions.clone();
    all.sort_by_key(|r| (std::cmp::Reverse(r.weight), r.branch));
    let row = |r: &sonde_calls::Region| {
        let share = r.weight as f64 / calls.weight.max(1) as f64;
        RegionView {
            branch: namer.instruction(Place(r.branch)),
            executed: r.count,
            share,
            plus_minus: half_width(share, subject.unit, subject.bursts),
        }
    };
    all.iter().take(options.top).map(row).collect()
}

/// The tree by function: contexts whose entry was not seen join those of the same function that were.
fn contexts(
    subject: &Subject<'_>,
    calls: &CallProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> Vec<ContextView> {
    let mut by_function = calls.clone();
    for context in by_function.contexts.iter_mut().skip(ELSEWHERE as usize + 1) {
        let place = Place(context.function);
        let start = namer.function(place).start.map_or_else(|| nearest(calls, namer, place.0), |s| s.0);
        context.function = start;
    }
    by_function.relocate(&mut |at| at);
    let inclusive = by_function.inclusive();
    let all = by_function.weight.max(1);
    let share = |weight: u64| weight as f64 / all as f64;
    let mut depths = vec![0usize; by_function.contexts.len()];
    let mut rows = Vec::new();
    for (i, context) in by_function.contexts.iter().enumerate().skip(ELSEWHERE as usize + 1) {
        let context: &Context = context;
        depths[i] = if context.parent == ROOT { 0 } else { depths[context.parent as usize] + 1 };
        if share(inclusive[i]) < options.hot {
            continue;
        }
        rows.push(ContextView {
            name: namer.function(Place(context.function)).name,
            depth: depths[i],
            share: share(inclusive[i]),
            own_share: share(context.weight.saturating_sub(context.rest)),
            not_kept_share: share(context.rest),
            plus_minus: half_width(share(inclusive[i]), subject.unit, subject.bursts),
            calls: context.calls,
            cut: context.around,
        });
    }
    rows
}
