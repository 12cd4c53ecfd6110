//! From an address to its place, fast: a small table of pages in front of the mappings.

use crate::place::Place;
use crate::region::{Kind, Region, Regions};
use sonde_event::Reader;
use sonde_event::maps::Mapping;
use std::collections::BTreeMap;

/// Entries of the page table. A burst touches few pages; an exhaustive run mostly the same ones.
const PAGES: usize = 1 << 12;
const PAGE_BITS: u32 = 12;
/// The stack grows by itself down to its limit; what lies this far below the lowest part seen is stack too.
const STACK_GROWTH: u64 = 8 << 20;
/// The heap grows between two looks; what lies further above it than this is something else.
const HEAP_GROWTH: u64 = 1 << 30;
/// Parts of one copy of a module lie no further apart than this.
const MODULE_EXTENT: u64 = 1 << 32;
/// Places of anonymous memory count from here.
const MIDDLE: u64 = 1 << 46;
/// The end of the stack's region.
const TOP: u64 = 1 << 47;

/// A stretch of addresses of one region: place = address + delta.
#[derive(Clone, Copy, Debug)]
struct Span {
    end: u64,
    slot: u16,
    kind: Kind,
    delta: u64,
    writable: bool,
    /// The kernel makes it larger when it is used beyond its start: the first thread's stack.
    grows: bool,
}

/// A page whose delta is known.
#[derive(Clone, Copy)]
struct Page {
    number: u64,
    delta: u64,
}

const NO_PAGE: Page = Page { number: u64::MAX, delta: 0 };

/// Finds places in one process.
pub struct Places {
    regions: Regions,
    /// By first address; they do not overlap.
    spans: BTreeMap<u64, Span>,
    pages: Box<[Page]>,
    /// What anonymous memory is counted from.
    anchor: Option<u64>,
}

impl Default for Places {
    fn default() -> Places {
        Places::new()
    }
}

impl Places {
    /// Nothing is mapped yet.
    pub fn new() -> Places {
        Places {
            regions: Regions::default(),
            spans: BTreeMap::new(),
            pages: vec![NO_PAGE; PAGES].into(),
            anchor: None,
        }
    }

    /// Takes a mapping that is new or has grown; what lay there before is forgotten.
    pub fn map(&mut self, mapping: &Mapping) {
        if mapping.start >= mapping.end {
            return;
        }
        let span = self.span(mapping);
        self.clear(mapping.start, mapping.end);
        self.spans.insert(mapping.start, span);
        self.pages.fill(NO_PAGE);
    }

    /// The place of an address, if it lies in something that is known.
    #[inline]
    pub fn find(&mut self, address: u64) -> Option<Place> {
        let number = address >> PAGE_BITS;
        let page = self.pages[number as usize % PAGES];
        if page.number == number {
            return Some(Place(address.wrapping_add(page.delta)));
        }
        self.look_up(address)
    }

    /// The place of an address; [`Place::unknown`] if it lies in nothing that is known.
    #[inline]
    pub fn place(&mut self, address: u64) -> Place {
        self.find(address).unwrap_or_else(|| Place::unknown(address))
    }

    /// Turns addresses into places; false, and nothing is changed, if one lies in nothing that is known.
    pub fn place_all(&mut self, addresses: &mut [u64]) -> bool {
        let Some(&first) = addresses.first() else { return true };
        // The bits in which they differ take half the time that the lowest and the highest do, and mostly say enough.
        let differ = addresses.iter().fold(0, |bits, &at| bits | (at ^ first));
        let below = u64::MAX.checked_shr(differ.leading_zeros()).unwrap_or(0);
        let delta = self.delta_within(first, first & !below, first | below).or_else(|| {
            let (lo, hi) = addresses.iter().fold((first, first), |(lo, hi), &at| (lo.min(at), hi.max(at)));
            self.delta_within(first, lo, hi)
        });
        if let Some(delta) = delta {
            addresses.iter_mut().for_each(|at| *at = at.wrapping_add(delta));
            return true;
        }
        if addresses.iter().any(|&at| self.find(at).is_none()) {
            return false;
        }
        addresses.iter_mut().for_each(|at| *at = self.place(*at).0);
        true
    }

    /// What turns addresses from `lo` to `hi` into places, `address` among them, if it is the same for all.
    fn delta_within(&mut self, address: u64, lo: u64, hi: u64) -> Option<u64> {
        let is_one = lo >> PAGE_BITS == hi >> PAGE_BITS || self.holds(lo).is_some_and(|span| hi < span.end);
        is_one.then(|| self.find(address)).flatten().map(|place| place.0.wrapping_sub(address))
    }

    /// The regions met so far.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.spans.len() * (size_of::<(u64, Span)>() + 16) + self.pages.len() * size_of::<Page>()
    }

    fn look_up(&mut self, address: u64) -> Option<Place> {
        let span = self.holds(address).or_else(|| self.grown(address))?;
        let delta = match span.kind {
            Kind::Anonymous => self.anonymous(span.slot),
            _ => span.delta,
        };
        let number = address >> PAGE_BITS;
        self.pages[number as usize % PAGES] = Page { number, delta };
        Some(Place(address.wrapping_add(delta)))
    }

    /// What an address lies in. Mappings are of whole pages; without that, what is found would depend on what was looked up
    /// on the same page before.
    fn holds(&self, address: u64) -> Option<Span> {
        let (_, span) = self.spans.range(..=address).next_back()?;
        (address >> PAGE_BITS <= (span.end - 1) >> PAGE_BITS).then_some(*span)
    }

    /// The heap and the stack grow between two looks at the mappings.
    fn grown(&self, address: u64) -> Option<Span> {
        let below = self.spans.range(..=address).next_back().map(|(_, span)| span);
        let near = |span: &&Span| span.kind == Kind::Heap && address - span.end < HEAP_GROWTH;
        if let Some(span) = below.filter(near) {
            return Some(*span);
        }
        let (start, above) = self.spans.range(address..).next()?;
        (above.grows && start - address <= STACK_GROWTH).then_some(*above)
    }

    fn anonymous(&mut self, slot: u16) -> u64 {
        let outside = |kind| matches!(kind, Kind::Stack | Kind::Kernel);
        let ends = self.spans.values().filter(|span| !outside(span.kind)).map(|span| span.end);
        let anchor = *self.anchor.get_or_insert_with(|| ends.max().unwrap_or(0));
        Place::new(slot, MIDDLE).0.wrapping_sub(anchor)
    }

    fn span(&mut self, mapping: &Mapping) -> Span {
        let before = self.spans.range(..mapping.start).next_back().map(|(_, span)| *span);
        let writable = mapping.permissions.contains('w');
        let mut region = Region::of(mapping);
        // Uninitialized data of a module is nameless memory right behind its writable part.
        let touches = before.filter(|span| span.end == mapping.start && span.kind == Kind::Module);
        if let Some(module) = touches.filter(|m| region.kind == Kind::Anonymous && m.writable && writable) {
            return Span { end: mapping.end, ..module };
        }
        // Parts of a module that hold no code are told from data files by the part that does or the build-id.
        let of_module = |r: &&Region| r.kind == Kind::Module && r.name == region.name;
        if region.kind == Kind::File && self.regions.all().iter().any(|r| of_module(&r)) {
            region.kind = Kind::Module;
        }
        let (slot, kind) = (self.regions.number(&region), region.kind);
        let delta = self.delta(mapping, slot, kind);
        let grows = mapping.name == "[stack]";
        Span { end: mapping.end, slot, kind, delta, writable, grows }
    }

    fn delta(&self, mapping: &Mapping, slot: u16, kind: Kind) -> u64 {
        let from = |offset: u64, address: u64| Place::new(slot, offset).0.wrapping_sub(address);
        match kind {
            Kind::Stack => from(TOP, mapping.end),
            Kind::File => from(mapping.offset, mapping.start),
            Kind::Module if mapping.offset != 0 => {
                // One copy of a module lies in one piece: all parts are as far from its start as the one below.
                let lowest = mapping.start.saturating_sub(MODULE_EXTENT);
                let mut below = self.spans.range(lowest..mapping.start).rev().map(|(_, span)| span);
                let near = below.find(|span| span.slot == slot).map(|span| span.delta);
                near.unwrap_or_else(|| from(mapping.offset, mapping.start))
            }
            _ => from(0, mapping.start),
        }
    }

    /// Makes room for a mapping.
    fn clear(&mut self, start: u64, end: u64) {
        let first = self.spans.range(..start).next_back().filter(|(_, s)| s.end > start);
        let mut over: Vec<(u64, Span)> = first.map(|(at, span)| (*at, *span)).into_iter().collect();
        over.extend(self.spans.range(start..end).map(|(at, span)| (*at, *span)));
        for (at, span) in over {
            self.spans.remove(&at);
            if at < start {
                self.spans.insert(at, Span { end: start, ..span });
            }
            if span.end > end {
                self.spans.insert(end, span);
            }
        }
    }
}

/// Beside readers that need to know where things lay.
impl Reader for Places {
    fn mapping(&mut self, mapping: &Mapping) {
        self.map(mapping);
    }
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
