//! Hot ranges of a tree (Mysore et al. 2008, section 5.1) and the coverage by width (figure 11).

use crate::error_bars::half_width;
use crate::name::Namer;
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::Place;
use sonde_rap::{HotRange, Key, Snapshot};
use sonde_summary::{Domain, Ranges, Trees};

/// One dimension of a hot range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SideView {
    /// What it is: `code`, `data` or `value`.
    pub domain: &'static str,
    /// First key: a value, or a place (`region number << 48 | offset`).
    pub lo: String,
    /// Last key.
    pub hi: String,
    /// In words: function and lines, variable, section, heap ...; for values the range itself.
    pub name: String,
    /// Module and offset of the first key; none for values.
    pub place: Option<String>,
}

/// A hot range, or a hot box of two ranges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct HotView {
    /// The range; two for a box.
    pub sides: Vec<SideView>,
    /// Share of all events in the range outside the hot ranges within it.
    pub own_share: f64,
    /// Share of all events in the range, at least.
    pub share: f64,
    /// The same, at most: what the tree may have missed.
    pub share_at_most: f64,
    /// Sampling makes the share this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
    /// Weight of the range.
    pub weight: u64,
    /// How many hot ranges it lies in.
    pub depth: usize,
}

/// A point of figure 11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WidthView {
    /// Hot ranges of at most 2 to this power keys ...
    pub log2_width: u32,
    /// ... have this share of all events.
    pub share: f64,
}

/// A tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct RangesView {
    /// What it is over, by the name of `--what`.
    pub kind: &'static str,
    /// Events that were counted.
    pub events: u64,
    /// Their weight.
    pub weight: u64,
    /// The proven error as a share of all weight.
    pub eps: f64,
    /// Ranges that are kept.
    pub nodes: usize,
    /// The most ranges that were kept at a time.
    pub nodes_max: u64,
    /// Hot from this share on.
    pub hot_from: f64,
    /// Hot ranges, each after the one it lies in.
    pub hot: Vec<HotView>,
    /// Ranges, fewest first, that hold half of all events, 80 % and 95 %.
    pub covering: Vec<(f64, usize)>,
    /// Coverage by width.
    pub widths: Vec<WidthView>,
}

/// A tree for people.
pub fn view(subject: &Subject<'_>, ranges: &Ranges, namer: &mut Namer<'_>, options: &Options) -> RangesView {
    match &ranges.tree {
        Trees::One(tree) => of(subject, ranges, tree, namer, options, |k| vec![k]),
        Trees::Two(tree) => of(subject, ranges, tree, namer, options, |k| k.to_vec()),
    }
}

fn of<K: Key>(
    subject: &Subject<'_>,
    ranges: &Ranges,
    tree: &Snapshot<K>,
    namer: &mut Namer<'_>,
    options: &Options,
    keys: impl Fn(K) -> Vec<u64>,
) -> RangesView {
    let mut hot = Vec::new();
    for found in in_preorder(&tree.hot(options.hot)) {
        let (lo, hi) = (keys(found.range.lo), keys(found.range.hi));
        let sides = ranges.kind.domains().iter().zip(lo.into_iter().zip(hi));
        let sides = sides.map(|(domain, (lo, hi))| side(namer, *domain, lo, hi)).collect();
        hot.push(row(subject, tree.events, &found, sides));
    }
    let widths = tree.width_coverage(options.hot).into_iter();
    RangesView {
        kind: ranges.kind.name(),
        events: ranges.events,
        weight: tree.events,
        eps: tree.eps_effective,
        nodes: tree.nodes.len(),
        nodes_max: tree.nodes_max,
        hot_from: options.hot,
        hot,
        covering: [0.5, 0.8, 0.95].map(|share| (share, tree.covering(share).len())).to_vec(),
        widths: widths.map(|p| WidthView { log2_width: p.log2_width, share: p.share }).collect(),
    }
}

/// Each range after the one it lies in, heavier ones first.
fn in_preorder<K: Key>(ranges: &[HotRange<K>]) -> Vec<HotRange<K>> {
    let below = |parent: Option<usize>| {
        let mut its: Vec<usize> = (0..ranges.len()).filter(|i| ranges[*i].parent == parent).collect();
        its.sort_by_key(|i| ranges[*i].total);
        its
    };
    let mut open = below(None);
    let mut all = Vec::with_capacity(ranges.len());
    while let Some(i) = open.pop() {
        all.push(ranges[i]);
        open.extend(below(Some(i)));
    }
    all
}

fn row<K: Key>(subject: &Subject<'_>, all: u64, found: &HotRange<K>, sides: Vec<SideView>) -> HotView {
    let share = |weight: u64| weight as f64 / all.max(1) as f64;
    HotView {
        sides,
        own_share: share(found.own),
        share: share(found.total),
        share_at_most: share(found.upper).min(1.0),
        plus_minus: half_width(share(found.total), subject.unit, subject.bursts),
        weight: found.total,
        depth: found.depth,
    }
}

fn side(namer: &mut Namer<'_>, domain: Domain, lo: u64, hi: u64) -> SideView {
    let key = |k: u64| format!("{k:#x}");
    let (word, name, place) = match domain {
        Domain::Code => ("code", namer.code(lo, hi).text, Some(namer.offset(Place(lo)))),
        Domain::Data => ("data", namer.data(lo, hi), Some(namer.offset(Place(lo)))),
        Domain::Value => ("value", value(lo, hi), None),
    };
    SideView { domain: word, lo: key(lo), hi: key(hi), name, place }
}

/// A range of values: the number itself where there is only one.
fn value(lo: u64, hi: u64) -> String {
    match (lo, hi) {
        (0, u64::MAX) => "any value".into(),
        _ if lo == hi && lo < 1 << 20 => format!("{lo}"),
        // Small negative numbers are more often meant than huge ones.
        _ if lo == hi && (lo as i64) < 0 && (lo as i64) > -(1 << 20) => format!("{} ({lo:#x})", lo as i64),
        _ if lo == hi => format!("{lo:#x}"),
        _ if hi < 1 << 20 => format!("{lo} to {hi}"),
        _ => format!("{lo:#x} to {hi:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_people_do() {
        assert_eq!(value(0, 0), "0");
        assert_eq!(value(u64::MAX, u64::MAX), "-1 (0xffffffffffffffff)");
        assert_eq!(value(0, 255), "0 to 255");
        assert_eq!(value(0x7f00_0000_0000, 0x7fff_ffff_ffff), "0x7f0000000000 to 0x7fffffffffff");
        assert_eq!(value(0, u64::MAX), "any value");
    }
}
