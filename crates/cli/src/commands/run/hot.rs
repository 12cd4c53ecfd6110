//! Hot ranges with names: which function of which module, or which variable, section or region.

use serde::Serialize;
use sonde_place::{Kind, Place, Region};
use sonde_rap::{HotRange, Snapshot};
use sonde_summary::{BlockWeight, Summary};
use sonde_symbol::{DataPlace, Frame, Symbols};

/// What a range that reaches over several regions lies in.
pub const SEVERAL: &str = "several";

/// A hot range of code or data.
#[derive(Debug, Default, Serialize)]
pub struct Hot {
    /// Where it lies: a module, the heap, the stack ...
    pub region: String,
    /// First and last offset there.
    pub lo: String,
    pub hi: String,
    pub own: u64,
    pub total: u64,
    pub own_share: f64,
    pub total_share: f64,
    /// In words.
    pub place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Of the hottest block, from where the module is mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

/// Gives names to ranges.
pub struct Namer<'a> {
    summary: &'a Summary,
    symbols: Symbols,
}

impl<'a> Namer<'a> {
    /// With the regions and blocks of a run.
    pub fn new(summary: &'a Summary) -> Namer<'a> {
        Namer { summary, symbols: Symbols::new() }
    }

    /// The hot ranges over places of code, the hottest first.
    pub fn code(&mut self, tree: &Snapshot<u64>, threshold: f64) -> Vec<Hot> {
        let blocks = &self.summary.blocks;
        self.ranges(tree, threshold, |namer, all, index, hot| {
            namer.name_code(hottest(all, index, blocks), hot);
        })
    }

    /// The hot ranges over places of data, the hottest first.
    pub fn data(&mut self, tree: &Snapshot<u64>, threshold: f64) -> Vec<Hot> {
        self.ranges(tree, threshold, |namer, all, index, hot| {
            namer.name_data(Place(all[index].range.lo), Place(all[index].range.hi), hot);
        })
    }

    fn ranges(
        &mut self,
        tree: &Snapshot<u64>,
        threshold: f64,
        mut name: impl FnMut(&mut Self, &[HotRange<u64>], usize, &mut Hot),
    ) -> Vec<Hot> {
        let share = |count: u64| count as f64 / tree.events.max(1) as f64;
        let mut all: Vec<Hot> = Vec::new();
        let ranges = tree.hot(threshold);
        for (index, found) in ranges.iter().enumerate() {
            let (lo, hi) = (Place(found.range.lo), Place(found.range.hi));
            let mut hot = Hot {
                region: self.region(lo, hi).map_or_else(|| SEVERAL.into(), region_name),
                lo: format!("{:#x}", lo.offset()),
                hi: format!("{:#x}", hi.offset()),
                own: found.own,
                total: found.total,
                own_share: share(found.own),
                total_share: share(found.total),
                ..Hot::default()
            };
            name(self, &ranges, index, &mut hot);
            all.push(hot);
        }
        all.sort_by_key(|h| std::cmp::Reverse(h.own));
        all
    }

    /// The region that both places are in.
    fn region(&self, lo: Place, hi: Place) -> Option<&'a Region> {
        self.summary.regions.get(lo).filter(|_| lo.slot() == hi.slot())
    }

    fn name_code(&mut self, at: Place, hot: &mut Hot) {
        let Some(region) = self.summary.regions.get(at).filter(|r| r.kind != Kind::Unknown) else {
            hot.place = format!("{:#x}, unmapped when looked at", at.offset());
            return;
        };
        let (module, offset) = (short(&region.name), at.offset());
        let address = self.symbols.image_address(&region.name, &region.build_id, offset);
        let frames =
            address.map(|at| self.symbols.frames(&region.name, &region.build_id, at)).unwrap_or_default();
        let inner = frames.first().cloned().unwrap_or_default();
        let outer = frames.last().filter(|_| frames.len() > 1).and_then(|frame| frame.function.clone());
        let line = line_of(&inner);
        hot.place = match (&inner.function, &outer) {
            (Some(function), Some(outer)) => format!("{function} in {outer}{line} ({module}+{offset:#x})"),
            (Some(function), None) => format!("{function}{line} ({module}+{offset:#x})"),
            (None, _) => format!("{module}+{offset:#x}"),
        };
        hot.module = Some(region.name.clone());
        hot.offset = Some(format!("{offset:#x}"));
        hot.function = inner.function;
        hot.file = inner.file;
        hot.line = inner.line;
    }

    fn name_data(&mut self, lo: Place, hi: Place, hot: &mut Hot) {
        let Some(region) = self.region(lo, hi) else {
            hot.place = "spread over several regions".into();
            return;
        };
        hot.place = region_in_words(region, hi.offset() - lo.offset());
        if region.kind != Kind::Module {
            return;
        }
        hot.module = Some(region.name.clone());
        let ends = (self.in_module(region, lo), self.in_module(region, hi));
        // A range is a power of two and may reach over the end of a module, or of what has a name.
        let nameless = |end: DataPlace| DataPlace { variable: None, ..end };
        let (from, to) = match ends {
            (Some(from), Some(to)) => (from, to),
            (Some(end), None) | (None, Some(end)) => (nameless(end.clone()), nameless(end)),
            (None, None) => return,
        };
        hot.section = from.section.clone();
        hot.variable = from.variable.clone().filter(|_| from == to);
        hot.place = in_words(short(&region.name), &from, &to);
    }

    fn in_module(&mut self, region: &Region, at: Place) -> Option<DataPlace> {
        let address = self.symbols.image_address(&region.name, &region.build_id, at.offset())?;
        let place = self.symbols.data(&region.name, &region.build_id, address);
        place.section.is_some().then_some(place)
    }
}

fn line_of(frame: &Frame) -> String {
    let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
    frame.file.as_deref().map(|file| format!(" {}{line}", short(file))).unwrap_or_default()
}

fn in_words(module: &str, from: &DataPlace, to: &DataPlace) -> String {
    let section = |end: &DataPlace| end.section.clone().unwrap_or_default();
    let (first, last) = (section(from), section(to));
    match &from.variable {
        Some(variable) if from == to => format!("{module}:{first} {variable}"),
        _ if first == last => format!("{module}:{first}"),
        _ => format!("{module}:{first} to {last}"),
    }
}

/// A short name.
fn region_name(region: &Region) -> String {
    match region.kind {
        Kind::Unknown => "unknown".into(),
        Kind::Anonymous => "anonymous".into(),
        Kind::Heap => "heap".into(),
        Kind::Stack => "stack".into(),
        Kind::Module | Kind::File | Kind::Kernel => short(&region.name).into(),
    }
}

fn region_in_words(region: &Region, last: u64) -> String {
    match region.kind {
        Kind::Unknown => "unmapped when looked at".into(),
        Kind::Anonymous => {
            format!("anonymous memory, {} of it", crate::quantity::size(last.saturating_add(1)))
        }
        Kind::File => format!("file {}", short(&region.name)),
        _ => region_name(region),
    }
}

/// The place of the heaviest block of a hot range outside the hot ranges within it.
fn hottest(ranges: &[HotRange<u64>], index: usize, blocks: &[BlockWeight]) -> Place {
    let range = ranges[index].range;
    let from = blocks.partition_point(|b| b.place.0 < range.lo);
    let to = blocks.partition_point(|b| b.place.0 <= range.hi);
    let inner: Vec<_> = ranges.iter().filter(|r| r.parent == Some(index)).map(|r| r.range).collect();
    let own = blocks[from..to].iter().filter(|b| !inner.iter().any(|r| r.contains_key(b.place.0)));
    own.max_by_key(|b| b.weight).map_or(Place(range.lo), |b| b.place)
}

fn short(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, file)| file)
}
