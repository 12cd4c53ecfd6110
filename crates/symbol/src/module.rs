//! One program or library.

use crate::layout::{self, Layout};
use crate::pieces::{self, Piece};
use crate::raw::Kind;
use crate::table::Table;
use crate::{DataPlace, Frame, Lines, Place, Span, debug_file, plt, unwind};
use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A stretch of the file and where it is to be in memory.
struct Segment {
    offset: u64,
    file_size: u64,
    address: u64,
    size: u64,
}

pub(crate) struct Section {
    pub address: u64,
    pub size: u64,
    pub name: String,
}

/// An opened module: what every question needs. The rest is read when it is first asked for, since most modules are only
/// asked for one thing, and debug files are large.
pub struct Module {
    path: PathBuf,
    /// Its debug file, if that is another one.
    apart: Option<PathBuf>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    has_debug_info: bool,
    functions: OnceCell<Table>,
    variables: OnceCell<Table>,
    /// Functions by the tables for unwinding: first address and bytes.
    unwound: OnceCell<Vec<(u64, u64)>>,
    /// Lines and inlining, if there is debug information.
    lines: OnceCell<Option<Loader>>,
    /// Names of functions that were asked for, by address: who counts blocks by function asks for the same ones again and
    /// again, and demangling takes longer than finding them.
    demangled: RefCell<HashMap<u64, String>>,
}

/// Bytes of code where a program begins, if nothing tells: it takes the address of its arguments and calls or jumps.
const START_BYTES: u64 = 32;

/// A file that is read where it is asked for something.
type Reading = ReadCache<BufReader<File>>;

fn reading(path: &Path) -> Option<Reading> {
    Some(ReadCache::new(BufReader::new(File::open(path).ok()?)))
}

impl Module {
    /// Opens a file, if it is the one with this build-id (or none is known).
    pub fn open(path: &Path, build_id: &[u8], roots: &[PathBuf]) -> Option<Module> {
        // Devices can be mapped too; opening one can have effects.
        if !path.metadata().is_ok_and(|m| m.is_file()) {
            return None;
        }
        let cache = reading(path)?;
        let file = object::File::parse(&cache).ok()?;
        let own_id = file.build_id().ok().flatten().unwrap_or(&[]);
        if !build_id.is_empty() && own_id != build_id {
            return None;
        }
        let apart = debug_file::find(own_id, roots).or_else(|| {
            let (name, _) = file.gnu_debuglink().ok()??;
            debug_file::linked(path, name, own_id, roots)
        });
        Some(Module {
            path: path.to_owned(),
            apart,
            segments: segments(&file),
            sections: sections(&file),
            has_debug_info: file.section_by_name(".debug_info").is_some(),
            functions: OnceCell::new(),
            variables: OnceCell::new(),
            unwound: OnceCell::new(),
            lines: OnceCell::new(),
            demangled: RefCell::default(),
        })
    }

    /// The symbols of a kind, from the file that has more of them.
    fn symbols(&self, kind: Kind) -> Table {
        let own = table_of(&self.path, kind).unwrap_or_default();
        match self.apart.as_deref().and_then(|apart| table_of(apart, kind)) {
            Some(more) => more.or(own),
            None => own,
        }
    }

    fn functions(&self) -> &Table {
        self.functions.get_or_init(|| {
            let mut functions = self.symbols(Kind::Function);
            let Some(cache) = reading(&self.path) else { return functions };
            let Ok(file) = object::File::parse(&cache) else { return functions };
            functions.end_with_sections(&sections_of_code(&file));
            functions.insert(plt::stubs(&file, &functions));
            functions.insert(self.start(&file).into_iter().collect());
            functions
        })
    }

    /// Where the program begins: the loader's own has no symbol of a function, and would count as whatever lies before it.
    fn start<'data, R: ReadRef<'data>>(&self, file: &object::File<'data, R>) -> Option<(u64, u64, String)> {
        let start = Some(file.entry()).filter(|start| *start != 0)?;
        let own = unwind::find(self.unwound(), start).filter(|(at, _)| *at == start);
        Some((start, own.map_or(START_BYTES, |(_, size)| size), "_start".to_owned()))
    }

    fn variables(&self) -> &Table {
        self.variables.get_or_init(|| self.symbols(Kind::Variable))
    }

    fn unwound(&self) -> &[(u64, u64)] {
        self.unwound.get_or_init(|| {
            let Some(cache) = reading(&self.path) else { return Vec::new() };
            object::File::parse(&cache).map_or_else(|_| Vec::new(), |file| unwound(&file))
        })
    }

    fn lines(&self) -> Option<&Loader> {
        let own = || self.has_debug_info.then_some(&*self.path);
        let load_either = || self.apart.as_deref().or_else(own).and_then(load);
        self.lines.get_or_init(load_either).as_ref()
    }

    /// The address of the byte at a file offset.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        // Mappings are whole pages, so an offset may lie a little before or behind what the segment has in the file.
        let page = |n: u64| n & !4095;
        let inside = |s: &&Segment| {
            page(s.offset) <= offset
                && offset < page(s.offset.saturating_add(s.file_size).saturating_add(4095))
        };
        let exact = |s: &&Segment| s.offset <= offset && offset - s.offset < s.file_size;
        let segment = self.segments.iter().find(exact).or_else(|| self.segments.iter().find(inside))?;
        Some(segment.address.wrapping_add(offset.wrapping_sub(segment.offset)))
    }

    /// The lowest address, of a whole page.
    pub fn lowest(&self) -> Option<u64> {
        self.segments.iter().map(|s| s.address & !4095).min()
    }

    /// See [`crate::Symbols::frames`].
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut all = self.lines().map_or_else(Vec::new, |lines| frames_of(lines, address));
        let known = all.iter().any(|frame| frame.function.is_some());
        if let Some(name) = self.functions().find(address).filter(|_| !known).map(demangled) {
            match all.last_mut() {
                Some(frame) => frame.function = Some(name),
                None => all.push(Frame { function: Some(name), ..Frame::default() }),
            }
        }
        all
    }

    /// See [`crate::Symbols::lines`].
    pub fn lines_of(&self, lo: u64, hi: u64) -> Vec<Lines> {
        let mut all: Vec<Lines> = Vec::new();
        let ranges = self.lines().and_then(|l| l.find_location_range(lo, hi.saturating_add(1)).ok());
        for (address, len, location) in ranges.into_iter().flatten() {
            // Line 0 is code that no line stands for.
            let (Some(file), Some(line)) = (location.file, location.line.filter(|line| *line > 0)) else {
                continue;
            };
            let end = address.saturating_add(len).min(hi.saturating_add(1));
            let bytes = end.saturating_sub(address.max(lo));
            match all.iter_mut().find(|lines| lines.file == file) {
                Some(lines) => {
                    (lines.first, lines.last) = (lines.first.min(line), lines.last.max(line));
                    lines.bytes += bytes;
                }
                None => all.push(Lines { file: file.to_owned(), first: line, last: line, bytes }),
            }
        }
        all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.file.cmp(&b.file)));
        all
    }

    /// See [`crate::Symbols::sources`].
    pub fn sources(&self, lo: u64, hi: u64) -> Vec<(u64, Vec<Frame>)> {
        let end = hi.saturating_add(1);
        let Some(lines) = self.lines() else { return Vec::new() };
        let Ok(ranges) = lines.find_location_range(lo, end) else { return Vec::new() };
        // Line 0 is code that no line stands for.
        let told = ranges.filter(|(.., location)| location.line.is_some_and(|line| line > 0));
        let piece = |(address, len, _): (u64, u64, _)| {
            let from = address.max(lo);
            (address.saturating_add(len).min(end).saturating_sub(from), frames_of(lines, from))
        };
        told.map(piece).collect()
    }

    /// See [`crate::Symbols::function`].
    pub fn function(&self, address: u64) -> Option<Span> {
        let (name, start, size) = self.functions().span(address)?;
        let mut names = self.demangled.borrow_mut();
        let name = names.entry(start).or_insert_with(|| demangled(name)).clone();
        Some(Span { name, start, size })
    }

    /// See [`crate::Symbols::extent`].
    pub fn extent(&self, address: u64) -> Option<(u64, u64)> {
        let named = self.functions().span(address).map(|(_, start, size)| (start, size));
        named.or_else(|| unwind::find(self.unwound(), address))
    }

    /// See [`crate::Symbols::pieces`].
    pub fn pieces(&self) -> Vec<Piece> {
        let Some(cache) = reading(&self.path) else { return Vec::new() };
        let Ok(file) = object::File::parse(&cache) else { return Vec::new() };
        let frames = eh_frame(&file, unwind::frames);
        pieces::of(self.functions(), &frames, Some(file.entry()).filter(|start| *start != 0))
    }

    /// See [`crate::Symbols::variable`].
    pub fn variable(&self, address: u64) -> Option<Span> {
        self.variables().span(address).map(span)
    }

    /// See [`crate::Symbols::layout`].
    pub fn layout(&self) -> Layout {
        layout::of(&self.sections, self.variables())
    }

    /// Names code.
    pub fn code(&self, address: u64) -> Place {
        let mut place = self.lines().map_or_else(Place::default, |lines| by_lines(lines, address));
        if place.function.is_none() {
            place.function = self.functions().find(address).map(demangled);
        }
        place
    }

    /// Names data.
    pub fn data(&self, address: u64) -> DataPlace {
        if !self.segments.iter().any(|s| s.address <= address && address - s.address < s.size) {
            return DataPlace::default();
        }
        let section = self.sections.iter().find(|s| s.address <= address && address - s.address < s.size);
        DataPlace {
            section: section.map(|s| s.name.clone()),
            variable: self.variables().find(address).map(demangled),
        }
    }
}

/// First address and end of the sections that hold code.
fn sections_of_code<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<(u64, u64)> {
    let code = file.sections().filter(|s| s.kind() == object::SectionKind::Text);
    code.map(|s| (s.address(), s.address().saturating_add(s.size()))).collect()
}

fn demangled(name: &str) -> String {
    if let Some(target) = name.strip_suffix(plt::SUFFIX) {
        return demangled(target) + plt::SUFFIX;
    }
    // Versions of symbols (`memcpy@@GLIBC_2.14`) say nothing here.
    let name = name.split('@').next().unwrap_or(name);
    // The C++ demangler reads plain names as types too: a C function `f` would become `float`.
    if !["_Z", "__Z", "_R", "__R"].iter().any(|mark| name.starts_with(mark)) {
        return name.to_owned();
    }
    let readable = addr2line::demangle_auto(name.into(), None).into_owned();
    if readable == name { path_of(name).unwrap_or(readable) } else { readable }
}

/// The path of a C++ name that the demangler gives up on (it does so on some template arguments): `std::swap<..>`.
fn path_of(name: &str) -> Option<String> {
    let mut rest = name.trim_start_matches('_').strip_prefix('Z')?;
    rest = rest.strip_prefix('N').unwrap_or(rest).trim_start_matches(['r', 'V', 'K']);
    let mut path = Vec::new();
    loop {
        if let Some(more) = rest.strip_prefix("St") {
            path.push("std");
            rest = more;
            continue;
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        path.push(rest.get(digits..digits + length)?);
        rest = &rest[digits + length..];
    }
    let template = if rest.starts_with('I') { "<..>" } else { "" };
    (!path.is_empty()).then(|| path.join("::") + template)
}

/// A name that was demangled, or could not be.
fn readable(name: &str) -> String {
    if name.starts_with("_Z") { demangled(name) } else { name.to_owned() }
}

fn span((name, start, size): (&str, u64, u64)) -> Span {
    Span { name: demangled(name), start, size }
}

fn frames_of(lines: &Loader, address: u64) -> Vec<Frame> {
    let mut all = Vec::new();
    let Ok(mut frames) = lines.find_frames(address) else { return all };
    while let Ok(Some(frame)) = frames.next() {
        let location = frame.location.as_ref();
        all.push(Frame {
            function: frame.function.and_then(|f| f.demangle().ok().map(|name| readable(&name))),
            file: location.and_then(|l| l.file).map(ToOwned::to_owned),
            line: location.and_then(|l| l.line).filter(|line| *line > 0),
        });
    }
    all
}

fn by_lines(lines: &Loader, address: u64) -> Place {
    let mut place = Place::default();
    if let Ok(Some(location)) = lines.find_location(address) {
        place.file = location.file.map(ToOwned::to_owned);
        place.line = location.line;
    }
    let Ok(mut frames) = lines.find_frames(address) else { return place };
    let mut names = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        names.extend(frame.function.and_then(|f| f.demangle().ok().map(|name| name.into_owned())));
    }
    place.inlined_into = if names.len() > 1 { names.pop() } else { None };
    place.function = names.into_iter().next();
    place
}

fn table_of(path: &Path, kind: Kind) -> Option<Table> {
    let cache = reading(path)?;
    object::File::parse(&cache).ok().map(|file| Table::new(&file, kind))
}

fn load(path: &Path) -> Option<Loader> {
    let shared = reading(path).and_then(|cache| {
        let file = object::File::parse(&cache).ok()?;
        let (name, _) = file.gnu_debugaltlink().ok()??;
        debug_file::supplement(path, name)
    });
    Loader::new_with_sup(path, shared).ok()
}

fn unwound<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<(u64, u64)> {
    eh_frame(file, unwind::functions)
}

/// What is read from the tables for unwinding.
fn eh_frame<'data, R: ReadRef<'data>, T>(
    file: &object::File<'data, R>,
    read: fn(&[u8], u64) -> Vec<T>,
) -> Vec<T> {
    let Some(section) = file.section_by_name(".eh_frame") else { return Vec::new() };
    section.uncompressed_data().map_or_else(|_| Vec::new(), |data| read(&data, section.address()))
}

fn segments<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Segment> {
    let segment = |s: object::Segment<'data, '_, R>| {
        let (offset, file_size) = s.file_range();
        Segment { offset, file_size, address: s.address(), size: s.size() }
    };
    file.segments().map(segment).collect()
}

fn sections<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Section> {
    let section = |s: object::Section<'data, '_, R>| {
        // Only what is in memory has a place there.
        let name = s.name().ok().filter(|_| s.address() != 0)?;
        // Thread-local templates overlap the sections behind them.
        let is_template = matches!(s.kind(), object::SectionKind::UninitializedTls);
        (!is_template).then(|| Section { address: s.address(), size: s.size(), name: name.to_owned() })
    };
    file.sections().filter_map(section).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_demangled_keep_their_path() {
        assert_eq!(path_of("_ZSt4swapI4itemENSt9enable_if").as_deref(), Some("std::swap<..>"));
        assert_eq!(path_of("_ZN3abc5inner4workEv").as_deref(), Some("abc::inner::work"));
        assert_eq!(path_of("_Z1"), None, "cut off");
        assert_eq!(path_of("_Z99abc"), None, "longer than there is");
        assert_eq!(path_of("plain"), None);
        assert_eq!(demangled("_ZN3abc4workEv"), "abc::work()");
    }
}
