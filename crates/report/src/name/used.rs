//! What in a wide stretch of data was used: a range is a power of two and may reach over many variables, and the section
//! that it begins in need not be the one that is hot.

use super::{DataName, Namer, region_name};
use crate::figures::count;
use sonde_place::Place;
use sonde_rap::Snapshot;
use sonde_symbol::Layout;
use std::collections::BTreeMap;
use std::rc::Rc;

/// With less than this share in the heaviest, a stretch of several objects is not named by that.
const MOST: f64 = 0.8;

/// Ranges of data, and the weight of each without that of the ranges within it.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// First place, last place, weight; by first place.
    ranges: Vec<(u64, u64, u64)>,
}

impl Used {
    /// What trees over addresses say.
    pub fn of<'a>(trees: impl IntoIterator<Item = &'a Snapshot<u64>>) -> Used {
        let nodes = trees.into_iter().flat_map(|tree| &tree.nodes).filter(|node| node.own > 0);
        let mut ranges: Vec<_> = nodes.map(|node| (node.range.lo, node.range.hi, node.own)).collect();
        ranges.sort_unstable();
        Used { ranges }
    }

    fn within(&self, lo: u64, hi: u64) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let from = self.ranges.partition_point(|(first, ..)| *first < lo);
        self.ranges[from..]
            .iter()
            .take_while(move |(first, ..)| *first <= hi)
            .filter(move |(_, last, _)| *last <= hi)
            .copied()
    }
}

/// What a module's memory consists of.
#[derive(Debug, Default)]
pub(super) struct Grounds {
    /// Address, as the file counts, of offset 0.
    base: u64,
    layout: Layout,
}

/// A variable or, for what no variable covers, a section: where its stretch begins, as the file counts.
type Object = (bool, u64);

impl Grounds {
    /// The object that all of a stretch lies in.
    fn object(&self, lo: Place, hi: Place) -> Option<(Object, usize)> {
        let at = |place: Place| {
            let address = self.base.wrapping_add(place.offset());
            let behind = self.layout.stretches.partition_point(|stretch| stretch.start <= address);
            let number = behind.checked_sub(1)?;
            (address < self.layout.stretches[number].end).then_some(number)
        };
        let (first, last) = (at(lo)?, at(hi)?);
        let stretch = &self.layout.stretches[first];
        let key = |number: usize| {
            let stretch = &self.layout.stretches[number];
            if stretch.is_variable { (true, stretch.start) } else { (false, stretch.section as u64) }
        };
        (first == last).then(|| (key(first), stretch.section))
    }
}

/// Objects, with weight, section and a place of each.
type Found = BTreeMap<Object, (u64, usize, Place)>;

impl Namer<'_> {
    fn grounds(&mut self, slot: u16) -> Rc<Grounds> {
        if let Some(known) = self.layouts.get(&slot) {
            return known.clone();
        }
        let (base, layout) = self.layout(slot).unwrap_or_default();
        self.layouts.entry(slot).or_insert(Rc::new(Grounds { base, layout })).clone()
    }

    /// Whether a place lies behind all that is in a module's file.
    pub(super) fn is_behind(&mut self, place: Place) -> bool {
        let grounds = self.grounds(place.slot());
        grounds.layout.end().is_some_and(|end| grounds.base.wrapping_add(place.offset()) >= end)
    }

    /// A stretch of a module by the objects in it that were used; none if it is not known what was.
    pub(super) fn used_objects(&mut self, first: Place, last: Place) -> Option<String> {
        let module = self.region(first).map_or_else(String::new, region_name);
        let grounds = self.grounds(first.slot());
        let mut found = Found::new();
        for (lo, hi, weight) in self.used.within(first.0, last.0) {
            if let Some((object, section)) = grounds.object(Place(lo), Place(hi)) {
                let entry = found.entry(object).or_insert((0, section, Place(lo)));
                entry.0 = entry.0.saturating_add(weight);
            }
        }
        let all: u64 = found.values().map(|(weight, ..)| *weight).fold(0, u64::saturating_add);
        let (object, (weight, section, place)) = found.iter().max_by_key(|(_, (weight, ..))| *weight)?;
        let section = grounds.layout.sections.get(*section).map_or("", String::as_str);
        let variable = object.0.then(|| self.variable(*place)).flatten();
        let heaviest =
            variable.map_or_else(|| section.to_owned(), |variable| format!("{section} {variable}"));
        Some(match found.len() - 1 {
            0 => format!("{module}:{heaviest}"),
            more if *weight as f64 >= MOST * all as f64 => format!("{module}:{heaviest} and {more} more"),
            more => format!("{module}: {} objects, most in {heaviest}", more + 1),
        })
    }

    /// A stretch of several regions.
    pub(super) fn used_regions(&self, first: Place, last: Place) -> DataName {
        let mut regions: BTreeMap<u16, u64> = BTreeMap::new();
        for (lo, hi, weight) in self.used.within(first.0, last.0) {
            if Place(lo).slot() == Place(hi).slot() {
                let sum = regions.entry(Place(lo).slot()).or_default();
                *sum = sum.saturating_add(weight);
            }
        }
        let heaviest = regions.iter().max_by_key(|(_, weight)| **weight).map(|(slot, _)| self.memory(*slot));
        let text = match heaviest {
            Some(heaviest) => {
                format!("{}, most in {heaviest}", count(regions.len() as u64, "region", "regions"))
            }
            None => "several regions".into(),
        };
        DataName { text, ..DataName::default() }
    }
}
