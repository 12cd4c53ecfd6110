//! Functions by their share: of the time, from where bursts began, or of the instructions where everything was recorded.
//!
//! Where a burst began is a sample of the time (docs/design/weights.md). Samples of the kernel's time are in no share; code
//! that the program generates is never recorded, but sampled all the same, and has a row.

use crate::error_bars::half_width;
use crate::figures::lines;
use crate::name::{CodeName, Function, Namer};
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::{Kind as RegionKind, Place};
use sonde_summary::{Kind, Trees};
use std::collections::BTreeMap;

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FunctionView {
    /// Its name, or module and offset; in brackets what is no function: `(generated code)`, `(functions not told apart)` for
    /// light blocks of several functions that were added up, and what was not kept.
    pub name: String,
    /// File name of its module.
    pub module: String,
    /// Source file and lines of its hot part.
    pub source: Option<String>,
    /// The function inlined into it that most of its weight was made from, if it was: name, file and lines.
    pub inlined: Option<String>,
    /// Share of all code: of the time in user code, from where bursts began; or of all instructions, if everything was
    /// recorded.
    pub share: f64,
    /// The share is this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
    /// Weight.
    pub weight: u64,
    /// Bursts that began in it: samples of the time; null if everything was recorded.
    pub samples: Option<u64>,
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

/// What is known of a function.
#[derive(Clone, Copy, Default)]
struct Sum {
    weight: u64,
    samples: u64,
    /// First and last place.
    lo: u64,
    hi: u64,
}

impl Sum {
    fn at(place: u64) -> Sum {
        Sum { lo: place, hi: place, ..Sum::default() }
    }

    fn add(&mut self, place: u64, weight: u64, samples: u64) {
        (self.lo, self.hi) = (self.lo.min(place), self.hi.max(place));
        self.weight = self.weight.saturating_add(weight);
        self.samples += samples;
    }
}

/// The name of code that a program makes while it runs.
const GENERATED: &str = "(generated code)";
/// The name of blocks that were added up.
const TOGETHER: &str = "(functions not told apart)";

/// All functions, largest share first.
pub fn view(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<FunctionView> {
    let starts = subject.starts.filter(|starts| starts.all().weight > 0);
    let mut sums: BTreeMap<Function, Sum> = BTreeMap::new();
    let mut add = |place: Place, weight: u64, samples: u64, bytes: u32| {
        let mut function =
            if is_generated(subject, place) { unnamed(GENERATED) } else { namer.function(place) };
        // Light blocks that were added up may be of several functions.
        let last = Place(place.0 + u64::from(bytes.max(1)) - 1);
        if function.name != GENERATED && bytes > 1 && namer.function(last) != function {
            function = unnamed(TOGETHER);
        }
        sums.entry(function).or_insert_with(|| Sum::at(place.0)).add(place.0, weight, samples);
    };
    let (all, rest) = match starts {
        Some(starts) => {
            starts.starts.iter().for_each(|s| add(Place(s.pc), s.sum.weight, s.sum.count, 1));
            (starts.all().weight, ("(samples not kept)", starts.not_kept.weight, starts.not_kept.count))
        }
        None => {
            subject.blocks.iter().for_each(|block| add(block.place, block.weight, 0, block.bytes));
            let kept: u64 = subject.blocks.iter().map(|block| block.weight).sum();
            (all_code(subject), ("(blocks not kept)", all_code(subject).saturating_sub(kept), 0))
        }
    };
    let row = |weight: u64, samples: u64| {
        let share = weight as f64 / all.max(1) as f64;
        let plus_minus = half_width(share, subject.unit, subject.bursts);
        let samples = starts.is_some().then_some(samples);
        FunctionView { share, plus_minus, weight, samples, ..FunctionView::default() }
    };
    let mut rows = Vec::new();
    for (function, sum) in sums {
        let (source, inlined) =
            if is_unnamed(&function) { (None, None) } else { source(namer.code(sum.lo, sum.hi, &[])) };
        let Function { name, module, .. } = function;
        rows.push(FunctionView { name, module, source, inlined, ..row(sum.weight, sum.samples) });
    }
    let (name, weight, samples) = rest;
    if weight > 0 && !rows.is_empty() {
        rows.push(FunctionView { name: name.into(), ..row(weight, samples) });
    }
    rows.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// Whether a place lies in memory that is no part of a file: code there was made by the program.
fn is_generated(subject: &Subject<'_>, place: Place) -> bool {
    let kinds = [RegionKind::Anonymous, RegionKind::Heap, RegionKind::Stack];
    subject.regions.get(place).is_some_and(|region| kinds.contains(&region.kind))
}

fn unnamed(name: &str) -> Function {
    Function { name: name.into(), ..Function::default() }
}

fn is_unnamed(function: &Function) -> bool {
    function.module.is_empty() && [GENERATED, TOGETHER].contains(&function.name.as_str())
}
