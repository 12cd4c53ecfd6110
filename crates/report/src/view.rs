//! The report as data: what the text shows and what JSON gives.

mod calls;
mod functions;
mod loops;
mod map;
mod missing;
mod objects;
mod ranges;
mod streams;
mod values;

use crate::name::Namer;
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_summary::Ranges;
use sonde_symbol::Symbols;

pub use calls::{CallsView, ContextView, MethodView, PairView, RegionView};
pub use functions::FunctionView;
pub use loops::{LoopView, LoopsView};
pub use map::{MapRow, MapView};
pub use missing::{CacheView, Missed};
pub use objects::{ObjectShare, ObjectView, ObjectsView};
pub use ranges::{HotView, InlinedView, RangesView, SideView, WidthView};
pub use streams::{StreamView, StreamsView};
pub use values::{LoadView, ValueView, ValuesView};

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// A range is hot from this share on.
    pub hot: f64,
    /// Most rows of a list.
    pub top: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { hot: 0.02, top: 12 }
    }
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunView {
    /// The command line.
    pub command: Vec<String>,
    /// How it was taken: what, and how it was.
    pub facts: Vec<(String, String)>,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// The part of it in the kernel, which is not recorded; null where it was not measured.
    pub system_seconds: Option<f64>,
}

/// Exact totals of what was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Bursts.
    pub bursts: u64,
    /// Instructions.
    pub instructions: u64,
    /// Blocks.
    pub blocks: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Times that repeated string instructions were gone through again; loads and stores count each.
    pub repetitions: u64,
}

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Always `sonde-report`.
    pub format: String,
    /// Version of the layout.
    pub version: u32,
    /// How the runs were taken.
    pub runs: Vec<RunView>,
    /// What weights are: `events`, or `picoseconds` of CPU time.
    pub unit: String,
    /// What shares of code are shares of, in words.
    pub share_of: String,
    /// What was recorded.
    pub totals: Totals,
    /// Functions, largest share first.
    pub functions: Vec<FunctionView>,
    /// Totals per data object; null if no addresses were kept.
    pub data: Option<ObjectsView>,
    /// The trees.
    pub ranges: Vec<RangesView>,
    /// Calls.
    pub calls: Option<CallsView>,
    /// Loops.
    pub loops: Option<LoopsView>,
    /// Values of loads.
    pub values: Option<ValuesView>,
    /// Hot data streams.
    pub streams: Option<StreamsView>,
    /// Where zeros are loaded from (figure 12).
    pub map: Option<MapView>,
    /// The cache model.
    pub cache: Option<CacheView>,
    /// What was not seen.
    pub missing: Vec<Missed>,
}

/// Works a report out.
pub fn report(subject: &Subject<'_>, symbols: &mut Symbols, options: &Options) -> Report {
    let mut namer = Namer::new(symbols, subject.regions, subject.blocks);
    let run = |about: &crate::About| RunView {
        command: about.command.clone(),
        facts: about.facts.clone(),
        cpu_seconds: about.cpu_seconds,
        system_seconds: about.system_seconds,
    };
    Report {
        format: "sonde-report".into(),
        version: 2,
        runs: subject.runs.iter().map(run).collect(),
        unit: subject.unit.word().into(),
        share_of: share_of(subject).into(),
        totals: Totals {
            bursts: subject.counts.bursts,
            instructions: subject.counts.instructions,
            blocks: subject.counts.blocks,
            loads: subject.counts.loads,
            stores: subject.counts.stores,
            repetitions: subject.counts.repetitions,
        },
        functions: functions::view(subject, &mut namer),
        data: objects::view(subject, &mut namer),
        ranges: subject.ranges.iter().map(|r| ranges::view(subject, r, &mut namer, options)).collect(),
        calls: subject.calls.map(|calls| calls::view(subject, calls, &mut namer, options)),
        loops: subject.loops.map(|profile| loops::view(subject, profile, &mut namer, options)),
        values: subject.values.map(|profile| values::view(profile, &mut namer, options)),
        streams: subject.streams.map(|profile| streams::view(subject, profile, &mut namer, options)),
        map: map::view(subject, options),
        cache: subject.cache.map(CacheView::of),
        missing: missing::view(subject, &mut namer),
    }
}

/// The hot ranges of one tree, which need not be one of the subject's.
pub fn hot(subject: &Subject<'_>, tree: &Ranges, symbols: &mut Symbols, options: &Options) -> Vec<HotView> {
    let mut namer = Namer::new(symbols, subject.regions, subject.blocks);
    ranges::hot(subject, tree, &mut namer, options)
}

fn share_of(subject: &Subject<'_>) -> &'static str {
    match subject.unit {
        sonde_summary::Unit::Events => "all instructions executed while recording",
        sonde_summary::Unit::Picoseconds => "the program's CPU time in user code, estimated from bursts",
    }
}

/// The JSON Schema of a report.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Report)
}
