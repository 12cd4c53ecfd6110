//! Names for places: what a person would call a stretch of code or data.

use sonde_place::{Kind, Place, Region, Regions};
use sonde_summary::BlockWeight;
use sonde_symbol::{Frame, Symbols};
use std::collections::BTreeMap;

/// Names places.
pub struct Namer<'a> {
    symbols: &'a mut Symbols,
    regions: &'a Regions,
    /// By place.
    blocks: Vec<BlockWeight>,
}

/// A function, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// File name of the module.
    pub module: String,
    /// The function; for code without a symbol the offset in the module.
    pub name: String,
    /// Where it starts, where the symbol table tells.
    pub start: Option<Place>,
}

/// A name for a stretch of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeName {
    /// In words, such as `deflate_fast, deflate.c:1620-1658`.
    pub text: String,
    /// The function that most of its weight is in.
    pub function: Option<String>,
    /// Source file of most of its weight.
    pub file: Option<String>,
    /// First and last line there.
    pub lines: Option<(u32, u32)>,
}

/// The last part of a path.
pub fn short(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, file)| file)
}

impl<'a> Namer<'a> {
    /// Names places in these regions; the blocks tell what in a stretch was executed.
    pub fn new(symbols: &'a mut Symbols, regions: &'a Regions, blocks: &[BlockWeight]) -> Namer<'a> {
        let mut blocks = blocks.to_vec();
        blocks.sort_by_key(|b| b.place);
        Namer { symbols, regions, blocks }
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
            Some(Kind::Stack) => below("stack", 1 << 47, place),
            _ => format!("{name}+{:#x}", place.offset()),
        }
    }

    fn image_address(&mut self, place: Place) -> Option<(&'a Region, u64)> {
        let region = self.regions.get(place).filter(|r| r.kind == Kind::Module)?;
        let address = self.symbols.image_address(&region.name, &region.build_id, place.offset())?;
        Some((region, address))
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
                let start = Place(place.0.wrapping_sub(at - span.start));
                Function { module, name: span.name, start: Some(start) }
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

    /// The line of an instruction, as `file:line`, if it is known.
    pub fn line(&mut self, place: Place) -> Option<String> {
        let frame = self.frames(place).into_iter().next()?;
        Some(format!("{}:{}", short(&frame.file?), frame.line?))
    }

    /// An instruction in words: function and line, or module and offset.
    pub fn instruction(&mut self, place: Place) -> String {
        let function = self.function(place).name;
        match self.line(place) {
            Some(line) => format!("{function}, {line}"),
            None if function.contains('+') => function,
            None => format!("{function} ({})", self.offset(place)),
        }
    }

    /// The blocks of a stretch of places.
    fn within(&self, lo: u64, hi: u64) -> &[BlockWeight] {
        let from = self.blocks.partition_point(|b| b.place.0 < lo);
        let to = self.blocks.partition_point(|b| b.place.0 <= hi);
        &self.blocks[from..to]
    }

    /// A stretch of code. What was executed in it names it: most of a wide stretch may never have run.
    pub fn code(&mut self, lo: u64, hi: u64) -> CodeName {
        let blocks = self.within(lo, hi).to_vec();
        if blocks.is_empty() {
            return self.unexecuted(lo, hi);
        }
        let mut by_function: BTreeMap<Function, (u64, Vec<BlockWeight>)> = BTreeMap::new();
        for block in &blocks {
            let function = self.function(block.place);
            // Without symbols there are no functions to tell apart: the module is all there is.
            let key = if function.start.is_none() && !function.name.contains('+') || function.start.is_some()
            {
                function
            } else {
                Function { name: String::new(), ..function }
            };
            let entry = by_function.entry(key).or_default();
            entry.0 += block.weight;
            entry.1.push(*block);
        }
        let count = by_function.len();
        let (function, (_, its)) =
            by_function.into_iter().max_by_key(|(_, (weight, _))| *weight).expect("a block");
        let (file, lines) = self.lines(&its);
        let name = match function.name.as_str() {
            "" => self.offset(its.iter().max_by_key(|b| b.weight).map_or(Place(lo), |b| b.place)),
            name => name.to_owned(),
        };
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let place = match (&file, lines) {
            (Some(file), Some((first, last))) if first == last => format!(", {}:{first}", short(file)),
            (Some(file), Some((first, last))) => format!(", {}:{first}-{last}", short(file)),
            _ => String::new(),
        };
        CodeName { text: format!("{name}{more}{place}"), function: Some(name), file, lines }
    }

    fn unexecuted(&mut self, lo: u64, hi: u64) -> CodeName {
        let text = if Place(lo).slot() != Place(hi).slot() {
            "several modules".into()
        } else if hi - lo < 4096 {
            self.instruction(Place(lo))
        } else {
            self.offset(Place(lo))
        };
        CodeName { text, ..CodeName::default() }
    }

    /// Source file and lines of the heaviest blocks: what most of the weight is made from.
    fn lines(&mut self, blocks: &[BlockWeight]) -> (Option<String>, Option<(u32, u32)>) {
        let mut by_file: BTreeMap<String, (u64, u32, u32)> = BTreeMap::new();
        let heaviest = blocks.iter().map(|b| b.weight).max().unwrap_or(0);
        // Blocks that hardly ran would only make the stretch of lines longer than what is hot.
        for block in blocks.iter().filter(|b| b.weight.saturating_mul(50) >= heaviest) {
            let Some((region, address)) = self.image_address(block.place) else { continue };
            let hi = address + u64::from(block.bytes.max(1)) - 1;
            for lines in self.symbols.lines(&region.name, &region.build_id, address, hi) {
                let entry = by_file.entry(lines.file).or_insert((0, lines.first, lines.last));
                entry.0 += block.weight;
                (entry.1, entry.2) = (entry.1.min(lines.first), entry.2.max(lines.last));
            }
        }
        match by_file.into_iter().max_by_key(|(_, (weight, ..))| *weight) {
            Some((file, (_, first, last))) => (Some(file), Some((first, last))),
            None => (None, None),
        }
    }

    /// A stretch of data.
    pub fn data(&mut self, lo: u64, hi: u64) -> String {
        let (first, last) = (Place(lo), Place(hi));
        let (Some(a), Some(b)) = (self.region(first), self.region(last)) else {
            return "outside everything known".into();
        };
        if first.slot() != last.slot() {
            return format!("from {} to {}", region_name(a), region_name(b));
        }
        match a.kind {
            Kind::Module => self.module_data(first, last),
            _ if lo == hi => self.offset(first),
            Kind::Stack => {
                let below = (1u64 << 47).saturating_sub(first.offset());
                format!("stack, {}, {} below the top", size(span(lo, hi)), size(below))
            }
            Kind::Heap => format!("heap, {}", size(span(lo, hi))),
            Kind::Anonymous => format!("anonymous memory, {}", size(span(lo, hi))),
            Kind::File | Kind::Kernel => format!("{}+{:#x}", region_name(a), first.offset()),
            Kind::Unknown => format!("unmapped when looked at, {:#x}", first.offset()),
        }
    }

    fn module_data(&mut self, first: Place, last: Place) -> String {
        let mut part = |place: Place| {
            let (region, address) = self.image_address(place)?;
            let section = self.symbols.data(&region.name, &region.build_id, address).section;
            let variable = self.symbols.variable(&region.name, &region.build_id, address);
            Some((section.unwrap_or_default(), variable.map(|v| v.name)))
        };
        let ends = (part(first), part(last));
        let module = self.region(first).map_or_else(String::new, region_name);
        match ends {
            (Some((section, Some(variable))), Some((_, Some(other)))) if variable == other => {
                format!("{module}:{section} {variable}")
            }
            (Some((section, Some(variable))), _) if !section.is_empty() => {
                format!("{module}:{section} {variable} and behind")
            }
            (Some((a, _)), Some((b, _))) if a == b && !a.is_empty() => format!("{module}:{a}"),
            (Some((a, _)), Some((b, _))) if !a.is_empty() && !b.is_empty() => format!("{module}:{a} to {b}"),
            _ => format!("{module}+{:#x}", first.offset()),
        }
    }
}

fn region_name(region: &Region) -> String {
    match region.kind {
        Kind::Unknown => "unknown".into(),
        Kind::Anonymous => "anonymous memory".into(),
        Kind::Heap => "heap".into(),
        Kind::Stack => "stack".into(),
        Kind::Module | Kind::File | Kind::Kernel => short(&region.name).to_owned(),
    }
}

fn below(name: &str, end: u64, place: Place) -> String {
    match place.offset().checked_sub(end) {
        Some(above) => format!("{name}+{above:#x}"),
        None => format!("{name}-{:#x}", end - place.offset()),
    }
}

fn span(lo: u64, hi: u64) -> u64 {
    (hi - lo).saturating_add(1)
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 10.0 || value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}
