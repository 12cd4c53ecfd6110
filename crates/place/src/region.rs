//! The regions that places are in, and how the numbers of two runs are brought together.

use crate::place::Place;
use sonde_event::maps::Mapping;

/// What a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Addresses that lay in nothing we saw; the offset is the address.
    Unknown,
    /// A program or library; the offset counts from its lowest mapping. Its uninitialized data is part of it.
    Module,
    /// The heap that grows (brk); the offset counts from its start.
    Heap,
    /// The stack of a thread, `[stack]` or `[stack of thread N]`; the offset counts up to its top, which is the end of the
    /// region.
    Stack,
    /// Anonymous memory: large allocations, arenas. The offset counts from the middle of the
    /// region, which stands for the end of the area in which the first such address was seen.
    Anonymous,
    /// A mapped file that holds no code; the offset is the offset in the file.
    File,
    /// What the kernel gives every program, such as `[vdso]`; the offset counts from its start.
    Kernel,
}

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Kind; 7] =
        [Kind::Unknown, Kind::Module, Kind::Heap, Kind::Stack, Kind::Anonymous, Kind::File, Kind::Kernel];

    /// The kind in a word.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Module => "module",
            Kind::Heap => "heap",
            Kind::Stack => "stack",
            Kind::Anonymous => "anonymous",
            Kind::File => "file",
            Kind::Kernel => "kernel",
        }
    }

    fn of(mapping: &Mapping) -> Kind {
        match mapping.name.as_str() {
            "" => Kind::Anonymous,
            "[heap]" => Kind::Heap,
            name if name.starts_with("[stack") => Kind::Stack,
            name if name.starts_with("[anon") => Kind::Anonymous,
            name if name.starts_with('[') => Kind::Kernel,
            _ if mapping.is_executable() || !mapping.build_id.is_empty() => Kind::Module,
            _ => Kind::File,
        }
    }
}

/// One region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What it is.
    pub kind: Kind,
    /// Path of the file, or the kernel's name for it; empty for unknown and anonymous memory.
    pub name: String,
    /// The file's build-id, if it has one.
    pub build_id: Vec<u8>,
}

impl Region {
    /// The region that a mapping belongs to.
    pub fn of(mapping: &Mapping) -> Region {
        let kind = Kind::of(mapping);
        let name = if kind == Kind::Anonymous { String::new() } else { mapping.name.clone() };
        Region { kind, name, build_id: mapping.build_id.clone() }
    }

    /// Whether it is the same region in another run: by build-id where there is one, since a file may have moved.
    pub fn is_same_as(&self, other: &Region) -> bool {
        let named = self.kind == other.kind && self.build_id == other.build_id;
        named && (!self.build_id.is_empty() || self.name == other.name)
    }
}

/// All regions of a run, by number. Number 0 is the unknown one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regions {
    all: Vec<Region>,
    left_out: u64,
}

impl Default for Regions {
    fn default() -> Regions {
        let unknown = Region { kind: Kind::Unknown, name: String::new(), build_id: Vec::new() };
        Regions { all: vec![unknown], left_out: 0 }
    }
}

impl Regions {
    /// Most regions: a number has 16 bits.
    pub const MOST: usize = 1 << 16;

    /// Regions by number, as [`Regions::all`] and [`Regions::left_out`] gave them; none if the first is not the unknown
    /// one or there are too many.
    pub fn from_parts(all: Vec<Region>, left_out: u64) -> Option<Regions> {
        let first = all.first().filter(|region| region.kind == Kind::Unknown);
        (first.is_some() && all.len() <= Regions::MOST).then_some(Regions { all, left_out })
    }

    /// The number of a region, a new one if need be; 0 (unknown) if there are too many, which is counted.
    pub fn number(&mut self, region: &Region) -> u16 {
        if let Some(known) = self.all.iter().position(|r| r.is_same_as(region)) {
            return known as u16;
        }
        if self.all.len() == Regions::MOST {
            self.left_out += 1;
            return 0;
        }
        self.all.push(region.clone());
        (self.all.len() - 1) as u16
    }

    /// The region of a place.
    pub fn get(&self, place: Place) -> Option<&Region> {
        self.all.get(usize::from(place.slot()))
    }

    /// All regions by number.
    pub fn all(&self) -> &[Region] {
        &self.all
    }

    /// How often a region got no number because there were too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the regions of another run in, and returns their numbers here, by their numbers there.
    pub fn remap(&mut self, other: &Regions) -> Vec<u16> {
        other.all.iter().map(|region| self.number(region)).collect()
    }
}
