//! Hot data streams for people (Hirzel and Chilimbi 2001): what is referenced again and again in the same order.

use crate::figures::{grouped, size};
use crate::name::Namer;
use crate::subject::Subject;
use crate::text::percent;
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
    /// What that suggests, or why there is nothing to gain, or why nobody can say.
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
        advice: nearest.advice(stream, namer),
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
/// What the streams must cover of all references before their size says what stays in a cache: the rest pushes lines out, too.
const NEARLY_ALL: f64 = 0.9;
/// What they must cover before there is advice at all, unless the stream alone is [`MUCH`].
const MOST: f64 = 0.5;
/// A stream of this share is worth advice, whatever the rest does.
const MUCH: f64 = 0.1;
/// Of so many occurrences per burst, most come again within their burst: what lies between bursts is not recorded.
const PER_BURST: u64 = 4;

/// The nearest cache, and what of it hot streams take.
struct Nearest<'a> {
    geometry: Geometry,
    profile: &'a StreamsProfile,
    /// Bytes of all lines of all streams; none if streams were dropped.
    all_streams: Option<u64>,
}

impl Nearest<'_> {
    fn of(profile: &StreamsProfile, geometry: Geometry) -> Nearest<'_> {
        let line = u64::from(geometry.line.max(1));
        let all = profile.streams.iter().flat_map(|stream| &stream.addresses);
        let lines: BTreeSet<u64> = all.map(|at| at / line).collect();
        let all_streams = (profile.lost.streams == 0).then_some(lines.len() as u64 * line);
        Nearest { geometry, profile, all_streams }
    }

    /// What there is to gain; or why nothing is; or why nobody can say.
    fn advice(&self, stream: &Stream, namer: &mut Namer<'_>) -> String {
        let stays = self.stays(stream, namer).or_else(|| self.leaves_open(stream));
        stays.unwrap_or_else(|| stream.shape.advice().into())
    }

    /// Why nothing is to be gained by layout or prefetching, if that is so: the data do not leave the nearest cache. The lines
    /// of a stream alone say little, since long passes over memory are found as many short streams.
    fn stays(&self, stream: &Stream, namer: &mut Namer<'_>) -> Option<String> {
        let Geometry { size: room, line, .. } = self.geometry;
        let line = u64::from(line.max(1));
        let on_stack = |at: &u64| namer.region(Place(*at)).is_some_and(|region| region.kind == Kind::Stack);
        if stream.addresses.iter().all(on_stack) {
            return Some("All of it is on the stack, which stays in the nearest cache: no advice.".into());
        }
        let (fits, covered) = (self.all_streams.filter(|bytes| *bytes <= room), self.profile.coverage());
        if let Some(bytes) = fits.filter(|_| covered >= NEARLY_ALL) {
            return Some(format!(
                "All hot streams together are in {}, which the nearest cache ({}) has room for: no advice.",
                size(bytes),
                size(room)
            ));
        }
        if let Some(between) = self.between(stream).filter(|between| *between <= room / line) {
            return Some(format!(
                "It comes again every {} references or less, which the nearest cache ({}) has room for: no advice.",
                grouped(between),
                size(room)
            ));
        }
        if let Some(bytes) = fits.filter(|_| covered >= MOST) {
            return Some(format!(
                "All hot streams together are in {}, less than the nearest cache ({}), if the {} of references outside of them leave them there: no advice.",
                size(bytes),
                size(room),
                percent(1.0 - covered).trim()
            ));
        }
        let bytes = variables(stream, namer).filter(|bytes| *bytes <= FEW_LINES * line)?;
        Some(format!(
            "All of it is in {}: too little for layout or prefetching to gain anything.",
            size(bytes)
        ))
    }

    /// References from one occurrence to the next, on average and at most; none if most of them are in other bursts, with
    /// nobody knows what between. No more lines are touched between them.
    fn between(&self, stream: &Stream) -> Option<u64> {
        let bursts = self.profile.bursts.max(1);
        let again = stream.frequency.saturating_sub(bursts).max(1);
        match bursts {
            1 => Some(self.profile.references / stream.frequency.max(1)),
            _ => (stream.frequency >= PER_BURST * bursts).then(|| self.profile.references / again),
        }
    }

    /// What was seen, if it is too little to conclude from: of references that no stream covers, nobody knows whether they
    /// push these data out, nor whether they would gain anything.
    fn leaves_open(&self, stream: &Stream) -> Option<String> {
        let (covered, references) = (self.profile.coverage(), self.profile.references);
        let share = stream.heat() as f64 / references.max(1) as f64;
        if covered >= MOST || share >= MUCH {
            return None;
        }
        Some(format!(
            "Hot streams cover {} of {} references; the others did not repeat in what was recorded: too little to say what layout or prefetching would gain.",
            percent(covered).trim(),
            grouped(references)
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
