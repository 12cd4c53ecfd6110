//! Functions by weight, from the blocks that are kept with exact weights, and by where bursts began.
//!
//! The two are different estimates of the same share of time. Inside a burst time is shared out by instructions, so that
//! code that waits for memory gets too little; beginnings are drawn from the time itself, but there is only one of each
//! burst (docs/design/weights.md). Where they differ by more than chance explains, that tells something about the code.

use crate::error_bars::half_width;
use crate::figures::lines;
use crate::name::{CodeName, Function, Namer};
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::Place;
use sonde_starts::Sum;
use sonde_summary::{Bursts, Kind, Trees};
use std::collections::BTreeMap;

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FunctionView {
    /// Its name, or module and offset; `(blocks not kept)` for all code beyond the blocks that are kept.
    pub name: String,
    /// File name of its module.
    pub module: String,
    /// Source file and lines of its hot part.
    pub source: Option<String>,
    /// The function inlined into it that most of its weight was made from, if it was: name, file and lines.
    pub inlined: Option<String>,
    /// Share of all code.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
    /// Weight.
    pub weight: u64,
    /// Its share of the beginnings of bursts; null if there are none.
    pub starts: Option<StartsView>,
}

/// Beginnings of bursts in a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StartsView {
    /// Bursts that began in it.
    pub bursts: u64,
    /// Share of the time that all beginnings in user code stand for: also of time in which it waited for memory.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability.
    pub plus_minus: f64,
    /// The share differs from that of the instructions inside bursts by more than chance explains: if it is larger, the
    /// function waits for memory, or its instructions are slow.
    pub differs: bool,
}

/// The weight of all code.
pub fn all_code(subject: &Subject<'_>) -> u64 {
    match subject.tree(Kind::Code).map(|ranges| &ranges.tree) {
        Some(Trees::One(tree)) => tree.events,
        _ => subject.blocks.iter().map(|b| b.weight).sum(),
    }
}

/// Differences of less than this are of no interest.
const LEAST_DIFFERENCE: f64 = 0.05;
/// Half the width of the interval that a difference has to leave, in those of 95 %: 99.9 %, since many are looked at. Both
/// shares are of the same bursts, so that they differ by less than independent ones.
const SURE: f64 = 1.68;

/// What is known of the beginnings of bursts.
struct Starts<'a> {
    subject: &'a Subject<'a>,
    all: Sum,
    by_function: BTreeMap<Function, Sum>,
}

impl<'a> Starts<'a> {
    fn of(
        subject: &'a Subject<'a>,
        namer: &mut Namer<'_>,
        wanted: &dyn Fn(Place) -> bool,
    ) -> Option<Starts<'a>> {
        let starts = subject.starts.filter(|starts| starts.all().weight > 0)?;
        let mut by_function: BTreeMap<Function, Sum> = BTreeMap::new();
        for start in starts.starts.iter().filter(|start| wanted(Place(start.pc))) {
            by_function.entry(namer.function(Place(start.pc))).or_default().add(start.sum);
        }
        Some(Starts { subject, all: starts.all(), by_function })
    }

    /// The beginnings in a function whose share inside bursts is known with an error.
    fn row(&self, function: &Function, inside: f64, plus_minus: f64) -> StartsView {
        let sum = self.by_function.get(function).copied().unwrap_or_default();
        let share = sum.weight as f64 / self.all.weight as f64;
        let bursts = Bursts { count: self.all.count, empty: 0, ..*self.subject.bursts };
        let half = half_width(share, self.subject.unit, &bursts);
        let chance = SURE * (half * half + plus_minus * plus_minus).sqrt();
        StartsView {
            bursts: sum.count,
            share,
            plus_minus: half,
            differs: (share - inside).abs() > chance.max(LEAST_DIFFERENCE),
        }
    }
}

/// The lines of a function, and what was inlined into it that has most of its weight.
fn source(name: CodeName) -> (Option<String>, Option<String>) {
    let at = |file: Option<String>, span| file.zip(span).map(|(file, span)| lines(&file, span));
    let own = at(name.own.file, name.own.lines);
    let inner = at(name.file, name.lines);
    match name.outer.and(name.function) {
        Some(inlined) => (own, inner.map(|at| format!("{inlined} at {at}"))),
        None => (inner, None),
    }
}

impl FunctionView {
    /// Whether it waits for memory or has slow instructions, as far as chance can be ruled out.
    pub fn waits(&self) -> bool {
        self.starts.is_some_and(|starts| starts.differs && starts.share > self.share)
    }
}

/// Those that wait, largest share of time first, without their lines, which take longest to find.
pub fn waiting(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<FunctionView> {
    let Some(starts) = subject.starts else { return Vec::new() };
    // Only where a function can differ by enough: finding functions means reading a module's debug file.
    let mut modules: BTreeMap<u16, u64> = BTreeMap::new();
    for start in &starts.starts {
        *modules.entry(Place(start.pc).slot()).or_default() += start.sum.weight;
    }
    let least = LEAST_DIFFERENCE * starts.all().weight as f64;
    modules.retain(|_, weight| *weight as f64 > least);
    let mut rows = rows(subject, namer, false, &|place| modules.contains_key(&place.slot()));
    rows.retain(FunctionView::waits);
    rows
}

/// All functions, largest share of time first.
pub fn view(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<FunctionView> {
    rows(subject, namer, true, &|_| true)
}

fn rows(
    subject: &Subject<'_>,
    namer: &mut Namer<'_>,
    has_lines: bool,
    wanted: &dyn Fn(Place) -> bool,
) -> Vec<FunctionView> {
    let all = all_code(subject).max(1);
    let starts = Starts::of(subject, namer, wanted);
    let mut by_function: BTreeMap<Function, (u64, u64, u64)> = BTreeMap::new();
    let mut kept = 0;
    for block in subject.blocks {
        kept += block.weight;
        if !wanted(block.place) {
            continue;
        }
        let entry =
            by_function.entry(namer.function(block.place)).or_insert((0, block.place.0, block.place.0));
        entry.0 += block.weight;
        (entry.1, entry.2) = (entry.1.min(block.place.0), entry.2.max(block.place.0));
    }
    // A burst may have begun in a function and recorded nothing, or too little to be kept.
    let begun = subject.starts.filter(|_| starts.is_some()).into_iter().flat_map(|s| &s.starts);
    for start in begun.filter(|start| wanted(Place(start.pc))) {
        by_function.entry(namer.function(Place(start.pc))).or_insert((0, start.pc, start.pc));
    }
    let row = |weight: u64| {
        let share = weight as f64 / all as f64;
        let plus_minus = half_width(share, subject.unit, subject.bursts);
        FunctionView { share, plus_minus, weight, ..FunctionView::default() }
    };
    let mut rows = Vec::new();
    for (function, (weight, lo, hi)) in by_function {
        let (source, inlined) = if has_lines { source(namer.code(lo, hi, &[])) } else { (None, None) };
        let row = row(weight);
        let starts = starts.as_ref().map(|starts| starts.row(&function, row.share, row.plus_minus));
        rows.push(FunctionView {
            name: function.name,
            module: function.module,
            source,
            inlined,
            starts,
            ..row
        });
    }
    if all > kept && kept > 0 {
        rows.push(FunctionView { name: "(blocks not kept)".into(), ..row(all - kept) });
    }
    let time = |row: &FunctionView| row.starts.filter(|starts| starts.differs).map_or(row.share, |s| s.share);
    rows.sort_by(|a, b| time(b).total_cmp(&time(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}
