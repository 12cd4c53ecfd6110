//! Totals per data object: which variable, heap, stack or file gets how many loads and stores.
//!
//! Worked out from the trees over addresses, so that nothing more has to be counted while a program runs. What a range
//! holds belongs to an object if all of the range does. What lies in a range of several objects may belong to each of
//! them: it is in no total, and in the most that each may have. Since every range that holds more than its part of the
//! tree's error is split, that is little, and it is said how much.

mod share_out;

use crate::error_bars::half_width_of_data;
use crate::name::Namer;
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use share_out::{Object, Shared, share_out};
use sonde_place::{Kind as RegionKind, Place, Regions};
use sonde_rap::Snapshot;
use sonde_summary::{Kind, Trees};
use sonde_symbol::Layout;

/// How much of all loads, or of all stores, goes to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ObjectShare {
    /// Weight: a number of loads or stores if everything was recorded, otherwise the time that they stand for.
    pub weight: u64,
    /// Share of all, at least.
    pub share: f64,
    /// The same, at most: what lies in ranges of several objects.
    pub share_at_most: f64,
    /// Sampling makes the share this much more or less, with 95 % probability; 0 if everything was recorded.
    pub plus_minus: f64,
}

/// A variable, the rest of a section, or a whole region of memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ObjectView {
    /// In words: module, section and variable, or `heap`, `stack`, the file ...
    pub name: String,
    /// What it is: `variable`, `section` (what no variable covers), or the kind of memory: `module`, `heap`, `stack`,
    /// `anonymous` (all of it, but for what lies right behind a module), `file`, `kernel`, `unknown`.
    pub kind: &'static str,
    /// The file by its path, or `[heap]`, `[stack]` ...
    pub region: Option<String>,
    /// Section of a module.
    pub section: Option<String>,
    /// The variable.
    pub variable: Option<String>,
    /// Module and offset of the variable.
    pub place: Option<String>,
    /// Bytes of the variable.
    pub bytes: Option<u64>,
    /// Loads and stores together.
    pub both: ObjectShare,
    /// Loads; null if they were not kept.
    pub loads: Option<ObjectShare>,
    /// Stores; null if they were not kept.
    pub stores: Option<ObjectShare>,
}

/// All objects that were used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ObjectsView {
    /// Most loads and stores first.
    pub objects: Vec<ObjectView>,
    /// Share of all loads and stores in ranges that hold several objects: it is in no total.
    pub in_several: f64,
}

/// A part of a region that has a total of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// What lies in no section of a module.
    Elsewhere,
    /// What lies behind all of a module: memory that the program asked for, which the system put right there.
    Behind,
    /// What no variable covers, by number of the section.
    Section(usize),
    /// By number of its stretch.
    Variable(usize),
}

/// What a region consists of.
pub(super) struct Ground {
    layout: Layout,
    /// Address, as the file counts, of offset 0.
    base: u64,
    /// Pieces by offset, without gaps: where each ends, and what it is. None if the region is one object.
    pieces: Vec<(u64, Part)>,
    /// The same by part.
    by_part: Vec<(Part, usize)>,
}

impl Ground {
    fn of(slot: u16, namer: &mut Namer<'_>) -> Ground {
        let (base, layout) = namer.layout(slot).unwrap_or_default();
        let mut pieces: Vec<(u64, Part)> = Vec::with_capacity(2 * layout.stretches.len());
        let mut put = |end: u64, part| {
            if pieces.last().map_or(0, |last| last.0) < end {
                pieces.push((end, part));
            }
        };
        for (number, stretch) in layout.stretches.iter().enumerate() {
            put(stretch.start.saturating_sub(base), Part::Elsewhere);
            let part =
                if stretch.is_variable { Part::Variable(number) } else { Part::Section(stretch.section) };
            put(stretch.end.saturating_sub(base), part);
        }
        if let Some(end) = layout.end() {
            put(end.saturating_sub(base), Part::Elsewhere);
            put(u64::MAX, Part::Behind);
        }
        let mut by_part: Vec<(Part, usize)> = pieces.iter().enumerate().map(|(i, p)| (p.1, i)).collect();
        by_part.sort_unstable();
        Ground { layout, base, pieces, by_part }
    }

    /// Number of the piece that an offset lies in.
    pub fn piece(&self, offset: u64) -> usize {
        self.pieces.partition_point(|(end, _)| *end <= offset).min(self.pieces.len().saturating_sub(1))
    }

    /// What a piece is.
    pub fn part(&self, piece: usize) -> Part {
        self.pieces.get(piece).map_or(Part::Whole, |(_, part)| *part)
    }

    /// Whether one of these pieces belongs to a part.
    pub fn has(&self, part: Part, first: usize, last: usize) -> bool {
        let at = self.by_part.partition_point(|entry| *entry < (part, first));
        self.by_part.get(at).is_some_and(|(of, piece)| *of == part && *piece <= last)
    }
}

fn tree<'a>(subject: &Subject<'a>, kind: Kind) -> Option<(&'a Snapshot<u64>, u64)> {
    let ranges = subject.tree(kind)?;
    match &ranges.tree {
        Trees::One(tree) => Some((tree, ranges.events)),
        Trees::Two(_) => None,
    }
}

/// Totals per object, if addresses were kept.
pub fn view(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Option<ObjectsView> {
    let (loads, stores) = (tree(subject, Kind::LoadAddresses), tree(subject, Kind::StoreAddresses));
    loads.or(stores)?;
    let slots = 0..subject.regions.all().len() as u32;
    let grounds: Vec<Ground> = slots.map(|slot| Ground::of(slot as u16, namer)).collect();
    let of = |tree: Option<(&Snapshot<u64>, u64)>| tree.map(|(tree, _)| share_out(tree, &grounds));
    let shared = [of(loads), of(stores)];
    let mut keys: Vec<Object> = shared.iter().flatten().flat_map(|s| s.parts.keys().copied()).collect();
    keys.sort_unstable();
    keys.dedup();
    let sum =
        Sum { subject, events: [loads, stores].map(|tree| tree.map_or(0, |(_, events)| events)), shared };
    let mut objects: Vec<ObjectView> = keys.into_iter().map(|key| sum.row(key, &grounds, namer)).collect();
    objects.sort_by(|a, b| b.both.weight.cmp(&a.both.weight).then_with(|| a.name.cmp(&b.name)));
    let in_several = sum.shared.iter().flatten().map(|s| s.in_several() as f64).sum::<f64>();
    let all = sum.shared.iter().flatten().map(|s| s.all as f64).sum::<f64>();
    Some(ObjectsView { objects, in_several: in_several / all.max(1.0) })
}

/// Loads and stores, shared out.
struct Sum<'a> {
    subject: &'a Subject<'a>,
    shared: [Option<Shared>; 2],
    events: [u64; 2],
}

impl Sum<'_> {
    fn row(&self, key: Object, grounds: &[Ground], namer: &mut Namer<'_>) -> ObjectView {
        let ground = &grounds[usize::from(key.0)];
        let bounds = |s: &Shared| s.bounds(key, ground);
        let each = [0, 1].map(|i| {
            let shared = self.shared[i].as_ref()?;
            let (least, most) = bounds(shared);
            Some(self.share(least, most, shared.all, self.events[i]))
        });
        let sum =
            |of: &dyn Fn(&Shared) -> u64| self.shared.iter().flatten().map(of).fold(0, u64::saturating_add);
        let (least, most) = (sum(&|s| bounds(s).0), sum(&|s| bounds(s).1));
        let both = self.share(least, most, sum(&|s| s.all), self.events[0] + self.events[1]);
        let [loads, stores] = each;
        ObjectView { both, loads, stores, ..named(key, ground, self.subject.regions, namer) }
    }

    fn share(&self, least: u64, most: u64, all: u64, events: u64) -> ObjectShare {
        let of = |weight: u64| weight as f64 / all.max(1) as f64;
        ObjectShare {
            weight: least,
            share: of(least),
            share_at_most: of(most).min(1.0),
            plus_minus: half_width_of_data(of(least), self.subject.unit, self.subject.bursts, events),
        }
    }
}

/// An object without its numbers.
fn named((slot, part): Object, ground: &Ground, regions: &Regions, namer: &mut Namer<'_>) -> ObjectView {
    let region = regions.get(Place::new(slot, 0));
    let kind = region.map_or(RegionKind::Unknown, |region| region.kind);
    let memory = namer.memory(slot);
    let section = |number: usize| ground.layout.sections.get(number).cloned().unwrap_or_default();
    let view = ObjectView {
        kind: kind.word(),
        region: region.map(|region| region.name.clone()).filter(|name| !name.is_empty()),
        ..ObjectView::default()
    };
    match part {
        Part::Whole => ObjectView { name: memory, ..view },
        Part::Elsewhere => ObjectView { name: format!("{memory}, in no section"), ..view },
        Part::Behind => {
            let (name, kind) = (format!("anonymous memory behind {memory}"), RegionKind::Anonymous.word());
            ObjectView { name, kind, region: None, ..view }
        }
        Part::Section(number) => {
            let section = section(number);
            let name = format!("{memory}:{section}");
            ObjectView { name, kind: "section", section: Some(section), ..view }
        }
        Part::Variable(number) => {
            let stretch = ground.layout.stretches[number];
            let place = Place::new(slot, stretch.start.wrapping_sub(ground.base));
            let (section, variable) = (section(stretch.section), namer.variable(place).unwrap_or_default());
            ObjectView {
                name: format!("{memory}:{section} {variable}"),
                kind: "variable",
                section: Some(section),
                variable: Some(variable),
                place: Some(namer.offset(place)),
                bytes: Some(stretch.end - stretch.start),
                ..view
            }
        }
    }
}
