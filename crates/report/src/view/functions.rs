//! Functions by weight, from the blocks that are kept with exact weights.

use crate::error_bars::half_width;
use crate::name::{Function, Namer};
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
    let row = |name, module, source, weight: u64| {
        let share = weight as f64 / all as f64;
        let plus_minus = half_width(share, subject.unit, subject.bursts);
        FunctionView { name, module, source, share, plus_minus, weight }
    };
    let mut rows = Vec::new();
    for (function, (weight, lo, hi)) in by_function {
        let name = namer.code(lo, hi);
        let source = name.file.zip(name.lines).map(|(file, (first, last))| format!("{file}:{first}-{last}"));
        rows.push(row(function.name, function.module, source, weight));
    }
    if all > kept && kept > 0 {
        rows.push(row("(blocks not kept)".into(), String::new(), None, all - kept));
    }
    rows.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
    rows
}
