//! Names for places: what a person would call a stretch of code or data.

mod code;
mod data;
mod used;

pub use code::{CodeName, Outer};
pub use data::DataName;
pub use used::Used;

use crate::figures::short;
use sonde_place::{Kind, Place, Region, Regions};
use sonde_summary::BlockWeight;
use sonde_symbol::{Frame, Symbols, shorten};
use std::collections::HashMap;
use std::rc::Rc;
use used::Grounds;

/// Names places.
pub struct Namer<'a> {
    symbols: &'a mut Symbols,
    regions: &'a Regions,
    /// By place.
    blocks: Vec<BlockWeight>,
    /// What of the data was used.
    used: Used,
    /// What lies where in modules, by number; worked out when first asked for.
    layouts: HashMap<u16, Rc<Grounds>>,
}

/// A function, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// File name of the module.
    pub module: String,
    /// The function; for code without a symbol the offset in the module.
    pub name: String,
    /// Where it starts, where the symbol table tells.
    pub start: Option<Place>,
}

impl<'a> Namer<'a> {
    /// Names places in these regions; the blocks tell what in a stretch was executed.
    pub fn new(symbols: &'a mut Symbols, regions: &'a Regions, blocks: &[BlockWeight]) -> Namer<'a> {
        let mut blocks = blocks.to_vec();
        blocks.sort_by_key(|b| b.place);
        Namer { symbols, regions, blocks, used: Used::default(), layouts: HashMap::new() }
    }

    /// From now on stretches of data are named by what in them these say was used.
    pub fn weigh_data(&mut self, used: Used) {
        self.used = used;
    }

    /// The region of a place.
    pub fn region(&self, place: Place) -> Option<&'a Region> {
        self.regions.get(place)
    }

    /// A place as module and offset.
    pub fn offset(&self, place: Place) -> String {
        let name = self.region(place).map_or_else(String::new, region_name);
        match self.region(place).map(|r| r.kind) {
            Some(Kind::Unknown) | None => format!("{:#x}", place.offset()),
            // These regions count down from their end.
            Some(Kind::Anonymous) => below("anonymous", 1 << 46, place),
            Some(Kind::Stack) => below(&name, 1 << 47, place),
            _ => format!("{name}+{:#x}", place.offset()),
        }
    }

    fn image_address(&mut self, place: Place) -> Option<(&'a Region, u64)> {
        let region = self.regions.get(place).filter(|r| r.kind == Kind::Module)?;
        let address = self.symbols.image_address(&region.name, &region.build_id, place.offset())?;
        Some((region, address))
    }

    /// The file of a place, if it is not there any more as it was run.
    pub fn lost_file(&mut self, place: Place) -> Option<&'a str> {
        let region = self.regions.get(place).filter(|r| r.kind == Kind::Module && r.name.starts_with('/'))?;
        (!self.symbols.is_there(&region.name, &region.build_id)).then_some(region.name.as_str())
    }

    /// The functions of an instruction, the innermost inlined one first.
    pub fn frames(&mut self, place: Place) -> Vec<Frame> {
        let Some((region, address)) = self.image_address(place) else { return Vec::new() };
        self.symbols.frames(&region.name, &region.build_id, address)
    }

    /// The function (not inlined ones) that a place lies in.
    pub fn function(&mut self, place: Place) -> Function {
        let module = self.region(place).map_or_else(String::new, region_name);
        let span = self
            .image_address(place)
            .and_then(|(r, at)| self.symbols.function(&r.name, &r.build_id, at).map(|s| (s, at)));
        match span {
            Some((span, at)) => {
                let name = if span.name == sonde_symbol::PLT {
                    format!("{module} {}", span.name)
                } else {
                    span.name
                };
                let start = Place(place.0.wrapping_sub(at - span.start));
                Function { module, name, start: Some(start) }
            }
            // Where its functions begin cannot be told, either.
            None if self.lost_file(place).is_some() => {
                Function { name: format!("{module} (changed or gone)"), module, start: None }
            }
            None => {
                let frames = self.frames(place);
                let name = frames.into_iter().rev().find_map(|f| f.function);
                let start = self.extent(place);
                let name = name.unwrap_or_else(|| self.offset(start.unwrap_or(place)));
                Function { module, name, start }
            }
        }
    }

    /// Where the function of a place begins, by the tables for unwinding.
    fn extent(&mut self, place: Place) -> Option<Place> {
        let (region, address) = self.image_address(place)?;
        let (start, _) = self.symbols.extent(&region.name, &region.build_id, address)?;
        Some(Place(place.0.wrapping_sub(address - start)))
    }

    /// An instruction in words: function and line, or module and offset.
    pub fn instruction(&mut self, place: Place) -> String {
        let function = self.function(place).name;
        let frames = self.frames(place);
        let line = |frame: &Frame| Some(format!("{}:{}", short(frame.file.as_deref()?), frame.line?));
        let (inner, outer) = (frames.first(), code::caller(&frames));
        let inlined = inner.filter(|_| frames.len() > 1).and_then(|frame| frame.function.as_deref());
        let name = shorten(&function, code::LONGEST);
        match (inlined, inner.and_then(line), outer.and_then(line)) {
            (Some(inlined), Some(at), Some(into)) => {
                format!("{} at {at}, inlined in {name}, {into}", shorten(inlined, code::LONGEST))
            }
            (_, Some(at), _) => format!("{name}, {at}"),
            _ if function.contains('+') => function,
            _ => format!("{name} ({})", self.offset(place)),
        }
    }
}

/// A region in a word or a few.
pub(crate) fn region_name(region: &Region) -> String {
    match region.kind {
        Kind::Unknown => "unknown".into(),
        Kind::Anonymous => "anonymous memory".into(),
        Kind::Heap => "heap".into(),
        // "[stack]", or that of another thread.
        Kind::Stack => region.name.trim_matches(['[', ']']).to_owned(),
        Kind::Module | Kind::File | Kind::Kernel => short(&region.name).to_owned(),
    }
}

fn below(name: &str, end: u64, place: Place) -> String {
    match place.offset().checked_sub(end) {
        Some(above) => format!("{name}+{above:#x}"),
        None => format!("{name}-{:#x}", end - place.offset()),
    }
}
