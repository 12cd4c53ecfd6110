//! Loops for people: where, how often, how long.

use crate::error_bars::half_width;
use crate::figures::short;
use crate::name::Namer;
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_loops::{Estimate, LoopStats, LoopsProfile};
use sonde_place::Place;

/// A loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LoopView {
    /// Function and lines of its own code, without the loops in it.
    pub name: String,
    /// Module and offset of its header.
    pub place: String,
    /// File and line of its header, where it is known.
    pub line: Option<String>,
    /// How many loops of its function it is nested in, itself included.
    pub depth: u32,
    /// The loop around it: file and line of that one's header, or module and offset.
    pub inside: Option<String>,
    /// Executions that were seen whole: entries into the loop. Of bursts these are a sample, and no total of the run.
    pub executions: u64,
    /// Executions of which the start or the end was not seen.
    pub cut: u64,
    /// From bursts: how often they saw it begin, and end, together; each execution of the run does either once.
    pub ends_seen: Option<u64>,
    /// Iterations per execution, on average. From bursts an estimate by all that they saw, whole executions or not.
    pub iterations: f64,
    /// The average is at least this, with 95 % probability; the same as `iterations` if everything was recorded.
    pub iterations_at_least: f64,
    /// The average is at most this; null if no execution was seen to begin or to end.
    pub iterations_at_most: Option<f64>,
    /// Fewest iterations of an execution that was seen whole.
    pub iterations_least: u64,
    /// Most iterations of an execution that was seen whole.
    pub iterations_most: u64,
    /// Executions by iterations: 0, 1, 2 to 3, 4 to 7 ...; without the empty end.
    pub histogram: Vec<u64>,
    /// Share of all instructions (or of CPU time, from bursts) in the loop without inner loops and calls.
    pub own_share: f64,
    /// The same with inner loops and calls; from bursts at least that, since callers are known as far as bursts return to them.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
    /// Instructions in its body.
    pub body: u64,
}

/// All loops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LoopsView {
    /// Loops found.
    pub found: usize,
    /// By own share.
    pub loops: Vec<LoopView>,
    /// Executions of cycles that are no natural loops (entered at several places).
    pub irregular: u64,
}

/// Loops by name.
pub fn view(
    subject: &Subject<'_>,
    profile: &LoopsProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> LoopsView {
    let hottest = profile.hottest();
    LoopsView {
        found: profile.loops.len(),
        loops: hottest.into_iter().take(options.top).map(|l| row(subject, profile, l, namer)).collect(),
        irregular: profile.irregular.executions,
    }
}

/// File and line of an instruction.
fn line(namer: &mut Namer<'_>, pc: u64) -> Option<String> {
    let frames = namer.frames(Place(pc));
    let frame = frames.first()?;
    Some(format!("{}:{}", short(frame.file.as_deref()?), frame.line?))
}

/// Function and lines of what is in a loop and in none within: the loops of a nest would all have the lines of the
/// innermost one, where most of their weight is.
fn name(profile: &LoopsProfile, l: &LoopStats, namer: &mut Namer<'_>) -> String {
    let extent = |l: &LoopStats| (l.low, l.low.saturating_add(l.extent.max(1) - 1));
    let (lo, hi) = extent(l);
    let within = |inner: &&LoopStats| inner.depth > l.depth && (lo..=hi).contains(&inner.header);
    let inner: Vec<(u64, u64)> = profile.loops.iter().filter(within).map(extent).collect();
    let own = namer.code(lo, hi, &inner);
    // Parts of the body may lie between those of a loop within.
    if own.hottest.is_some() || inner.is_empty() { own.text } else { namer.code(lo, hi, &[]).text }
}

fn row(subject: &Subject<'_>, profile: &LoopsProfile, l: &LoopStats, namer: &mut Namer<'_>) -> LoopView {
    let share = profile.share(l.inclusive_weight);
    // Profiles of older versions have only what was seen whole.
    let exact = Estimate { mean: l.whole.mean(), at_least: l.whole.mean(), at_most: Some(l.whole.mean()) };
    let estimate = l.iterations_each();
    let each = estimate.unwrap_or(exact);
    let used = l.whole.buckets.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
    LoopView {
        name: name(profile, l, namer),
        place: namer.offset(Place(l.header)),
        line: line(namer, l.header),
        depth: l.depth,
        inside: l.parent.map(|at| line(namer, at).unwrap_or_else(|| namer.offset(Place(at)))),
        executions: l.whole.executions,
        cut: l.cut.starts + l.cut.ends,
        ends_seen: estimate.map(|_| l.seen.ends),
        iterations: each.mean,
        iterations_at_least: each.at_least,
        iterations_at_most: each.at_most,
        iterations_least: l.whole.least,
        iterations_most: l.whole.most,
        histogram: l.whole.buckets[..used].to_vec(),
        own_share: profile.share(l.own_weight),
        share,
        plus_minus: half_width(share, subject.unit, subject.bursts),
        body: l.body,
    }
}
