//! Hot data streams for people (Hirzel and Chilimbi 2001): what is referenced again and again in the same order.

use crate::name::Namer;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::Place;
use sonde_streams::{Shape, Stream, StreamsProfile};

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
    /// What that suggests.
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
pub fn view(profile: &StreamsProfile, namer: &mut Namer<'_>, options: &Options) -> StreamsView {
    let all = profile.references.max(1) as f64;
    let row = |stream: &Stream| StreamView {
        share: stream.heat() as f64 / all,
        share_at_most: (stream.length().saturating_mul(stream.at_most) as f64 / all).min(1.0),
        length: stream.length(),
        frequency: stream.frequency,
        shape: shape(stream.shape),
        advice: stream.shape.advice().into(),
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
