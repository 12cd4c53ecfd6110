//! Functions by weight, from the blocks that are kept with exact weights.

use crate::error_bars::half_width;
use crate::figures::lines;
use crate::name::{CodeName, Function, Namer};
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_summary::{Kind, Trees};
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
}

/// The weight of all code.
pub fn all_code(subject: &Subject<'_>) -> u64 {
    match subject.tree(Kind::Code).map(|ranges| &ranges.tree) {
        Some(Trees::One(tree)) => tree.events,
        _ => subject.blocks.iter().map(|b| b.weight).sum(),
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

/// All functions, heaviest first.
pub fn view(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<FunctionView> {
    let all = all_code(subject).max(1);
    let mut by_function: BTreeMap<Function, (u64, u64, u64)> = BTreeMap::new();
    let mut kept = 0;
    for block in subject.blocks {
        let entry =
            by_function.entry(namer.function(block.place)).or_insert((0, block.place.0, block.place.0));
        entry.0 += block.weight;
        (entry.1, entry.2) = (entry.1.min(block.place.0), entry.2.max(block.place.0));
        kept += block.weight;
    }
    let row = |name, module, (source, inlined), weight: u64| {
        let share = weight as f64 / all as f64;
        let plus_minus = half_width(share, subject.unit, subject.bursts);
        FunctionView { name, module, source, inlined, share, plus_minus, weight }
    };
    let mut rows = Vec::new();
    for (function, (weight, lo, hi)) in by_function {
        rows.push(row(function.name, function.module, source(namer.code(lo, hi, &[])), weight));
    }
    if all > kept && kept > 0 {
        rows.push(row("(blocks not kept)".into(), String::new(), (None, None), all - kept));
    }
    rows.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    rows
}
