//! Hot data streams for people (Hirzel and Chilimbi 2001): what is referenced again and again in the same order.

use crate::figures::{grouped, size};
use crate::name::Namer;
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_cache::{Config, Geometry};
use sonde_place::{Kind, Place};
use sonde_streams::{Shape, Stream, StreamsProfile};
use std::collections::BTreeSet;

/// A hot data stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamView {
    /// Share of all references that it accounts for, at least.
    pub share: f64,
    /// The same, at most.
    pub share_at_most: f64,
    /// References in it.
    pub length: u64,
    /// Occurrences that do not overlap, at least.
    pub frequency: u64,
    /// What its addresses look like.
    pub shape: String,
    /// What that suggests, or why there is nothing to gain.
    pub advice: String,
    /// Where in the code, in order; neighbours on the same line are told once.
    pub code: Vec<String>,
    /// Where in memory, in order; neighbours in the same object are told once.
    pub data: Vec<String>,
}

/// All hot streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamsView {
    /// References looked at.
    pub references: u64,
    /// Share of them in hot streams.
    pub coverage: f64,
    /// Hottest first.
    pub streams: Vec<StreamView>,
    /// Streams found in all.
    pub found: usize,
}

/// Streams by name.
pub fn view(
    subject: &Subject<'_>,
    profile: &StreamsProfile,
    namer: &mut Namer<'_>,
    options: &Options,
) -> StreamsView {
    let geometry = subject.cache.map_or_else(Config::default, |cache| cache.config).first();
    let nearest = Nearest::of(profile, geometry);
    let all = profile.references.max(1) as f64;
    let row = |stream: &Stream| StreamView {
        share: stream.heat() as f64 / all,
        share_at_most: (stream.length().saturating_mul(stream.at_most) as f64 / all).min(1.0),
        length: stream.length(),
        frequency: stream.frequency,
        shape: shape(stream.shape),
        advice: nearest.stays(stream, namer).unwrap_or_else(|| stream.shape.advice().into()),
        code: once(stream.pcs.iter().map(|pc| namer.instruction(Place(*pc))).collect()),
        data: once(stream.addresses.iter().map(|at| namer.data(*at, *at).text).collect()),
    };
    StreamsView {
        references: profile.references,
        coverage: profile.coverage(),
        streams: profile.streams.iter().take(options.top).map(row).collect(),
        found: profile.streams.len(),
    }
}

/// Data of fewer lines than this are there before a prefetch of them would have an effect.
const FEW_LINES: u64 = 4;

/// The nearest cache, and what of it hot streams take.
struct Nearest {
    geometry: Geometry,
    /// References that were looked at.
    references: u64,
    /// Bytes of all lines of all streams; none if streams were dropped.
    all_streams: Option<u64>,
}

impl Nearest {
    fn of(profile: &StreamsProfile, geometry: Geometry) -> Nearest {
        let line = u64::from(geometry.line.max(1));
        let all = profile.streams.iter().flat_map(|stream| &stream.addresses);
        let lines: BTreeSet<u64> = all.map(|at| at / line).collect();
        let all_streams = (profile.lost.streams == 0).then_some(lines.len() as u64 * line);
        Nearest { geometry, references: profile.references, all_streams }
    }

    /// Why nothing is to be gained by layout or prefetching, if that is so: the data do not leave the nearest cache. The lines
    /// of a stream alone say little, since long passes over memory are found as many short streams.
    fn stays(&self, stream: &Stream, namer: &mut Namer<'_>) -> Option<String> {
        let Geometry { size: room, line, .. } = self.geometry;
        let line = u64::from(line.max(1));
        // No more lines are touched from one occurrence to the next than there are references.
        let between = self.references / stream.frequency.max(1);
        let on_stack = |at: &u64| namer.region(Place(*at)).is_some_and(|region| region.kind == Kind::Stack);
        if stream.addresses.iter().all(on_stack) {
            return Some("All of it is on the stack, which stays in the nearest cache: no advice.".into());
        }
        if let Some(bytes) = self.all_streams.filter(|bytes| *bytes <= room) {
            return Some(format!(
                "All hot streams together are in {}, which the nearest cache ({}) has room for: no advice.",
                size(bytes),
                size(room)
            ));
        }
        if between <= room / line {
            return Some(format!(
                "It comes again every {} references or less, which the nearest cache ({}) has room for: no advice.",
                grouped(between),
                size(room)
            ));
        }
        let bytes = variables(stream, namer).filter(|bytes| *bytes <= FEW_LINES * line)?;
        Some(format!(
            "All of it is in {}: too little for layout or prefetching to gain anything.",
            size(bytes)
        ))
    }
}

/// Bytes of the variables that a stream is in, if all of it is in some.
fn variables(stream: &Stream, namer: &mut Namer<'_>) -> Option<u64> {
    let spans = stream.addresses.iter().map(|at| namer.variable_at(Place(*at)));
    let spans: BTreeSet<(u64, u64)> = spans.collect::<Option<_>>()?;
    Some(spans.into_iter().map(|(_, bytes)| bytes).fold(0, u64::saturating_add))
}

fn shape(shape: Shape) -> String {
    match shape {
        Shape::Irregular => "irregular".into(),
        Shape::Repeated => "the same addresses again".into(),
        Shape::Sequential => "sequential".into(),
        Shape::Strided { stride } => format!("strided by {stride} B"),
        Shape::PointerChasing { links } => format!("pointer chasing, {links} links"),
    }
}

/// Neighbours that are the same, told once.
fn once(mut names: Vec<String>) -> Vec<String> {
    names.dedup();
    names
}
