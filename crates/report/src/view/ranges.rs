//! Hot ranges of a tree (Mysore et al. 2008, section 5.1) and the coverage by width (figure 11).

use crate::error_bars::{half_width_of, half_width_of_data};
use crate::name::{Namer, Outer, Used};
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::Place;
use sonde_rap::{HotRange, Key, Snapshot};
use sonde_summary::{Domain, Kind, Ranges, Trees};

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
    /// Module and offset of the first key; none for values and for what lies in several regions.
    pub place: Option<String>,
    /// What it lies in: a file by its path, or `[heap]`, `[stack]` ...; none for values and for several.
    pub region: Option<String>,
    /// What kind of memory that is: `module`, `heap`, `stack`, `anonymous`, `file`, `kernel`, `unknown`.
    pub kind: Option<&'static str>,
    /// Of code: the function that most of the weight was made from, inlined or not.
    pub function: Option<String>,
    /// Source file of that.
    pub file: Option<String>,
    /// First and last line there.
    pub lines: Option<(u32, u32)>,
    /// What that function was inlined into.
    pub inlined_in: Option<InlinedView>,
    /// Of code: module and offset of the heaviest block.
    pub hottest: Option<String>,
    /// Of data: the section of its first address.
    pub section: Option<String>,
    /// Of data: the variable that all of it lies in.
    pub variable: Option<String>,
}

/// Where a function was inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InlinedView {
    /// The function around it that has a symbol.
    pub function: String,
    /// Its source file.
    pub file: Option<String>,
    /// First and last line there; in functions of that file which were inlined themselves, too.
    pub lines: Option<(u32, u32)>,
}

impl InlinedView {
    /// As it was found.
    pub fn of(outer: Outer) -> InlinedView {
        InlinedView { function: outer.function, file: outer.file, lines: outer.lines }
    }
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
    /// Weight of the range outside the hot ranges within it.
    pub own_weight: u64,
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

/// The hot ranges of a tree, without what there is to tell of all of it, which takes longer.
pub fn hot(subject: &Subject<'_>, ranges: &Ranges, namer: &mut Namer<'_>, options: &Options) -> Vec<HotView> {
    match &ranges.tree {
        Trees::One(tree) => rows(subject, ranges, tree, namer, options, |k| vec![k]),
        Trees::Two(tree) => rows(subject, ranges, tree, namer, options, |k| k.to_vec()),
    }
}

/// A tree for people.
pub fn view(subject: &Subject<'_>, ranges: &Ranges, namer: &mut Namer<'_>, options: &Options) -> RangesView {
    match &ranges.tree {
        Trees::One(tree) => of(ranges, tree, hot(subject, ranges, namer, options), options),
        Trees::Two(tree) => of(ranges, tree, hot(subject, ranges, namer, options), options),
    }
}

fn rows<K: Key>(
    subject: &Subject<'_>,
    ranges: &Ranges,
    tree: &Snapshot<K>,
    namer: &mut Namer<'_>,
    options: &Options,
    keys: impl Fn(K) -> Vec<u64>,
) -> Vec<HotView> {
    let mut hot = Vec::new();
    namer.weigh_data(used(subject, ranges));
    let found = tree.hot(options.hot);
    for index in in_preorder(&found) {
        let (lo, hi) = (keys(found[index].range.lo), keys(found[index].range.hi));
        // What lies in a hot range within has its name there. In two dimensions a range within does not take its whole
        // stretch of code away.
        let within = found.iter().filter(|r| r.parent == Some(index) && lo.len() == 1);
        let within: Vec<_> = within.map(|r| (keys(r.range.lo)[0], keys(r.range.hi)[0])).collect();
        let sides = ranges.kind.domains().iter().zip(lo.into_iter().zip(hi));
        let sides = sides.map(|(domain, (lo, hi))| side(namer, *domain, lo, hi, &within)).collect();
        hot.push(row(subject, ranges, tree.events, &found[index], sides));
    }
    hot
}

fn of<K: Key>(ranges: &Ranges, tree: &Snapshot<K>, hot: Vec<HotView>, options: &Options) -> RangesView {
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

/// What tells which data in a stretch was used: the tree itself, or those over addresses if it is over more than that.
fn used(subject: &Subject<'_>, ranges: &Ranges) -> Used {
    match (&ranges.tree, ranges.kind.domains()) {
        (Trees::One(tree), [Domain::Data]) => Used::of([tree]),
        (_, domains) if domains.contains(&Domain::Data) => {
            let kinds = [Kind::LoadAddresses, Kind::StoreAddresses];
            let trees = kinds.into_iter().filter_map(|kind| subject.tree(kind));
            Used::of(trees.filter_map(|ranges| match &ranges.tree {
                Trees::One(tree) => Some(tree),
                Trees::Two(_) => None,
            }))
        }
        _ => Used::default(),
    }
}

/// Each range after the one it lies in, heavier ones first, by number.
fn in_preorder<K: Key>(ranges: &[HotRange<K>]) -> Vec<usize> {
    let below = |parent: Option<usize>| {
        let mut its: Vec<usize> = (0..ranges.len()).filter(|i| ranges[*i].parent == parent).collect();
        its.sort_by_key(|i| ranges[*i].total);
        its
    };
    let mut open = below(None);
    let mut all = Vec::with_capacity(ranges.len());
    while let Some(i) = open.pop() {
        all.push(i);
        open.extend(below(Some(i)));
    }
    all
}

fn row<K: Key>(
    subject: &Subject<'_>,
    ranges: &Ranges,
    all: u64,
    found: &HotRange<K>,
    sides: Vec<SideView>,
) -> HotView {
    let share = |weight: u64| weight as f64 / all.max(1) as f64;
    let of_code = matches!(ranges.kind, Kind::Code | Kind::Edges);
    let width = if of_code { half_width_of } else { half_width_of_data };
    HotView {
        sides,
        own_share: share(found.own),
        share: share(found.total),
        share_at_most: share(found.upper).min(1.0),
        plus_minus: width(share(found.total), subject.unit, subject.bursts, ranges.events),
        own_weight: found.own,
        weight: found.total,
        depth: found.depth,
    }
}

fn side(namer: &mut Namer<'_>, domain: Domain, lo: u64, hi: u64, within: &[(u64, u64)]) -> SideView {
    let key = |k: u64| format!("{k:#x}");
    let mut view = SideView { lo: key(lo), hi: key(hi), ..SideView::default() };
    if domain != Domain::Value {
        let region = namer.region(Place(lo)).filter(|_| Place(lo).slot() == Place(hi).slot());
        view.place = region.map(|_| namer.offset(Place(lo)));
        view.kind = region.map(|region| region.kind.word());
        view.region = region.map(|region| region.name.clone()).filter(|name| !name.is_empty());
    }
    match domain {
        Domain::Code => {
            let name = namer.code(lo, hi, within);
            (view.domain, view.name) = ("code", name.text);
            (view.function, view.file, view.lines) = (name.function, name.file, name.lines);
            view.inlined_in = name.outer.map(InlinedView::of);
            view.hottest = name.hottest.map(|place| namer.offset(place));
        }
        Domain::Data => {
            let name = namer.data(lo, hi);
            (view.domain, view.name) = ("data", name.text);
            (view.section, view.variable) = (name.section, name.variable);
        }
        Domain::Value => (view.domain, view.name) = ("value", value(lo, hi)),
    }
    view
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
