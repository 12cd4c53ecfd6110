//! The memory map of figure 12: where in memory loads go, and how likely they are to give zero.

use crate::figures::short;
use crate::subject::Subject;
use crate::view::Options;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_place::{Kind as RegionKind, OFFSET_BITS};
use sonde_rap::Snapshot;
use sonde_summary::{Kind, Trees};

/// Columns of a region.
pub const COLUMNS: usize = 32;

/// A region of memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MapRow {
    /// The region.
    pub name: String,
    /// Offset of the first column.
    pub from: u64,
    /// Offset behind the last column.
    pub to: u64,
    /// Share of all loads in the region.
    pub loads: f64,
    /// Share of all zero loads in the region.
    pub zero_loads: f64,
    /// How likely a load there is zero, at least and at most.
    pub zero_chance: (f64, f64),
    /// Share of all zero loads in each column.
    pub columns: Vec<f64>,
}

/// Where zeros are loaded from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MapView {
    /// The regions, most zero loads first.
    pub rows: Vec<MapRow>,
}

fn tree<'a>(subject: &Subject<'a>, kind: Kind) -> Option<&'a Snapshot<u64>> {
    match &subject.tree(kind)?.tree {
        Trees::One(tree) => Some(tree),
        Trees::Two(_) => None,
    }
}

/// The map, if both trees were kept.
pub fn view(subject: &Subject<'_>, options: &Options) -> Option<MapView> {
    let (zeros, loads) = (tree(subject, Kind::ZeroLoads)?, tree(subject, Kind::LoadAddresses)?);
    let mut rows = Vec::new();
    for (slot, region) in subject.regions.all().iter().enumerate() {
        let first = (slot as u64) << OFFSET_BITS;
        let last = first | ((1 << OFFSET_BITS) - 1);
        let total = zeros.bounds(first, last).lower;
        if total as f64 >= options.hot * zeros.events.max(1) as f64 && total > 0 {
            let name = match region.kind {
                RegionKind::Module | RegionKind::File | RegionKind::Kernel => short(&region.name).to_owned(),
                kind => kind.word().to_owned(),
            };
            rows.push(row(zeros, loads, name, first, last));
        }
    }
    rows.sort_by(|a, b| b.zero_loads.total_cmp(&a.zero_loads));
    rows.truncate(options.top);
    Some(MapView { rows })
}

fn row(zeros: &Snapshot<u64>, loads: &Snapshot<u64>, name: String, first: u64, last: u64) -> MapRow {
    let (lo, hi) = extent(loads, first, last);
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let (zero, all) = (zeros.bounds(lo, hi), loads.bounds(lo, hi));
    let step = ((hi - lo) / COLUMNS as u64 + 1).max(1);
    let column = |i: usize| {
        let from = lo.saturating_add(step * i as u64);
        if from > hi {
            return 0.0;
        }
        let to = from.saturating_add(step - 1).min(hi);
        share(zeros.bounds(from, to).lower, zeros.events)
    };
    MapRow {
        name,
        from: lo - first,
        to: hi - first + 1,
        loads: share(loads.bounds(first, last).lower, loads.events),
        zero_loads: share(zeros.bounds(first, last).lower, zeros.events),
        zero_chance: (share(zero.lower, all.upper).min(1.0), share(zero.upper, all.lower).min(1.0)),
        columns: (0..COLUMNS).map(column).collect(),
    }
}

/// The stretch of a region in which loads were seen: all of it would be empty but for a corner.
fn extent(loads: &Snapshot<u64>, first: u64, last: u64) -> (u64, u64) {
    let inside = loads.nodes.iter().filter(|n| n.range.lo >= first && n.range.hi <= last);
    let narrow = inside.filter(|n| n.range.hi - n.range.lo < 1 << 40);
    let (mut lo, mut hi) = (u64::MAX, 0);
    for node in narrow {
        (lo, hi) = (lo.min(node.range.lo), hi.max(node.range.hi));
    }
    if lo > hi { (first, last) } else { (lo, hi) }
}
