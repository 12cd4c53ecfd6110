//! Names for stretches of code: what was executed there tells.

use super::{Function, Namer};
use crate::figures::{lines, short};
use sonde_place::Place;
use sonde_summary::BlockWeight;
use sonde_symbol::{Frame, shorten};
use std::collections::{BTreeMap, BTreeSet};

/// Most columns of a function's name in words; the data has all of it.
pub(super) const LONGEST: usize = 60;

/// With so many more functions than one ...
const MANY: usize = 2;
/// ... and less than this share in the heaviest, a stretch is not named by that.
const MOST: f64 = 0.8;

/// A function that other code was inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outer {
    /// The function.
    pub function: String,
    /// Its source file.
    pub file: Option<String>,
    /// First and last line there that the inlined code was put at; in functions of that file which were inlined themselves, too.
    pub lines: Option<(u32, u32)>,
}

/// A name for a stretch of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeName {
    /// In words, such as `deflate_fast, deflate.c:1620-1658`.
    pub text: String,
    /// The function that most of its weight was made from, inlined or not.
    pub function: Option<String>,
    /// Source file of that.
    pub file: Option<String>,
    /// First and last line there.
    pub lines: Option<(u32, u32)>,
    /// What that function was inlined into, if it was.
    pub outer: Option<Outer>,
    /// The function that has a symbol, and its lines: also those at which others were inlined.
    pub own: Outer,
    /// The heaviest block.
    pub hottest: Option<Place>,
}

/// What a part of the weight was made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    /// The inlined function; none if it is not inlined.
    inlined: Option<String>,
    file: String,
}

#[derive(Clone, Debug, Default)]
struct Part {
    weight: f64,
    lines: Option<(u32, u32)>,
    /// Where it is called from.
    outer: Option<(String, (u32, u32))>,
    /// Lines of the function that has a symbol.
    own: Option<(String, (u32, u32))>,
}

impl Part {
    fn add(&mut self, weight: f64, frames: &[Frame]) {
        let (Some(inner), Some(outer), Some(own)) = (frames.first(), caller(frames), frames.last()) else {
            return;
        };
        self.weight += weight;
        self.lines = widened(self.lines, inner.line);
        for (frame, lines) in [(outer, &mut self.outer), (own, &mut self.own)] {
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                let before = lines.take().filter(|(known, _)| known == file).map(|(_, lines)| lines);
                *lines = widened(before, Some(line)).map(|lines| (file.clone(), lines));
            }
        }
    }
}

fn widened(lines: Option<(u32, u32)>, line: Option<u32>) -> Option<(u32, u32)> {
    match (lines, line) {
        (Some((first, last)), Some(line)) => Some((first.min(line), last.max(line))),
        (None, Some(line)) => Some((line, line)),
        (lines, None) => lines,
    }
}

impl Namer<'_> {
    /// The blocks of a stretch of places.
    fn within(&self, lo: u64, hi: u64) -> &[BlockWeight] {
        let from = self.blocks.partition_point(|b| b.place.0 < lo);
        let to = self.blocks.partition_point(|b| b.place.0 <= hi);
        &self.blocks[from..to]
    }

    /// A stretch of code. What was executed in it names it: most of a wide stretch may never have run. What lies in one
    /// of the stretches `without` has a name of its own.
    pub fn code(&mut self, lo: u64, hi: u64, without: &[(u64, u64)]) -> CodeName {
        let own = |b: &&BlockWeight| !without.iter().any(|(lo, hi)| (*lo..=*hi).contains(&b.place.0));
        let blocks: Vec<BlockWeight> = self.within(lo, hi).iter().filter(own).copied().collect();
        if blocks.is_empty() {
            return self.unexecuted(lo, hi);
        }
        let by_function = self.by_function(&blocks);
        let more = by_function.len() - 1;
        let all: u64 = blocks.iter().map(|b| b.weight).sum();
        let heaviest = by_function.into_iter().max_by_key(|(_, (weight, _))| *weight);
        let (function, (weight, its)) = heaviest.expect("a block");
        let hottest = its.iter().max_by_key(|b| b.weight).map_or(Place(lo), |b| b.place);
        if more >= MANY && (weight as f64) < MOST * all as f64 {
            return CodeName { text: self.many(lo, hi), hottest: Some(hottest), ..CodeName::default() };
        }
        let name = if function.name.is_empty() { self.offset(hottest) } else { function.name };
        let named = self.source_of(name, &its);
        CodeName { text: in_words(&named, more), hottest: Some(hottest), ..named }
    }

    /// Blocks by function, with the weight of each.
    fn by_function(&mut self, blocks: &[BlockWeight]) -> BTreeMap<Function, (u64, Vec<BlockWeight>)> {
        let mut by_function: BTreeMap<Function, (u64, Vec<BlockWeight>)> = BTreeMap::new();
        for block in blocks {
            let function = self.function(block.place);
            // Without symbols there are no functions to tell apart: the module is all there is.
            let key = if function.start.is_none() && function.name.contains('+') {
                Function { name: String::new(), ..function }
            } else {
                function
            };
            let entry = by_function.entry(key).or_default();
            entry.0 += block.weight;
            entry.1.push(*block);
        }
        by_function
    }

    /// A stretch of many functions, none of which has most of it: a name of one of them would be that of something cold.
    /// What is said is of all of it, since the share that it is shown with is, too.
    fn many(&mut self, lo: u64, hi: u64) -> String {
        let blocks = self.within(lo, hi).to_vec();
        let by_function = self.by_function(&blocks);
        let count = by_function.len();
        let modules: BTreeSet<&str> = by_function.keys().map(|f| f.module.as_str()).collect();
        let place = match modules.len() {
            1 => modules.iter().map(|module| (*module).to_owned()).collect(),
            n => format!("{n} modules"),
        };
        let heaviest = by_function.into_iter().max_by_key(|(_, (weight, _))| *weight);
        let most = heaviest.map_or_else(String::new, |(function, (_, its))| {
            let block = its.iter().max_by_key(|b| b.weight).map_or(Place(lo), |b| b.place);
            let name = if function.name.is_empty() { self.offset(block) } else { function.name };
            format!(", most in {}", shorten(&name, LONGEST))
        });
        format!("{place}: {count} functions{most}")
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

    /// What most of the weight of blocks of one function was made from.
    fn source_of(&mut self, function: String, blocks: &[BlockWeight]) -> CodeName {
        let mut parts: BTreeMap<Source, Part> = BTreeMap::new();
        let heaviest = blocks.iter().map(|b| b.weight).max().unwrap_or(0);
        // Blocks that hardly ran would only make the stretch of lines longer than what is hot.
        for block in blocks.iter().filter(|b| b.weight.saturating_mul(50) >= heaviest) {
            let Some((region, address)) = self.image_address(block.place) else { continue };
            let hi = address + u64::from(block.bytes.max(1)) - 1;
            for (bytes, frames) in self.symbols.sources(&region.name, &region.build_id, address, hi) {
                let Some(inner) = frames.first() else { continue };
                let Some(file) = inner.file.clone() else { continue };
                let inlined = inner.function.clone().filter(|_| frames.len() > 1);
                let weight = block.weight as f64 * bytes as f64 / f64::from(block.bytes.max(1));
                parts.entry(Source { inlined, file }).or_default().add(weight, &frames);
            }
        }
        let own = own_lines(&function, &parts);
        let heaviest = parts.into_iter().max_by(|(_, a), (_, b)| a.weight.total_cmp(&b.weight));
        let Some((source, part)) = heaviest else {
            return CodeName { function: Some(function), own, ..CodeName::default() };
        };
        let outer = source.inlined.is_some().then(|| {
            let (file, lines) = part.outer.map_or((None, None), |(file, lines)| (Some(file), Some(lines)));
            Outer { function: function.clone(), file, lines }
        });
        let function = Some(source.inlined.unwrap_or(function));
        CodeName { function, file: Some(source.file), lines: part.lines, outer, own, ..CodeName::default() }
    }
}

/// Of an instruction's functions the one whose line says where it comes from: the outermost one, which has a symbol, or the
/// innermost one written in the same file. Where all of a program is inlined into `main`, a line of `main` says little.
pub(super) fn caller(frames: &[Frame]) -> Option<&Frame> {
    let (outermost, around) = (frames.last()?, frames.get(1..).unwrap_or_default());
    let beside =
        |frame: &&Frame| frame.file.is_some() && frame.file == outermost.file && frame.line.is_some();
    Some(around.iter().find(beside).unwrap_or(outermost))
}

/// The lines of the function itself: of the file that most of it is in.
fn own_lines(function: &str, parts: &BTreeMap<Source, Part>) -> Outer {
    let mut files: BTreeMap<&str, (f64, (u32, u32))> = BTreeMap::new();
    for part in parts.values() {
        let Some((file, (first, last))) = &part.own else { continue };
        let entry = files.entry(file).or_insert((0.0, (*first, *last)));
        entry.0 += part.weight;
        entry.1 = (entry.1.0.min(*first), entry.1.1.max(*last));
    }
    let most = files.into_iter().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
    let (file, lines) = most.map_or((None, None), |(file, (_, lines))| (Some(file.to_owned()), Some(lines)));
    Outer { function: function.to_owned(), file, lines }
}

fn in_words(name: &CodeName, more: usize) -> String {
    let at = |file: &Option<String>, span: Option<(u32, u32)>| {
        file.as_deref().zip(span).map(|(file, span)| lines(short(file), span))
    };
    let function = shorten(name.function.as_deref().unwrap_or_default(), LONGEST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let place = at(&name.file, name.lines);
    match &name.outer {
        Some(outer) => {
            let place = place.map_or_else(String::new, |place| format!(" at {place}"));
            let into = at(&outer.file, outer.lines).map_or_else(String::new, |at| format!(", {at}"));
            format!("{function}{place}, inlined in {}{more}{into}", shorten(&outer.function, LONGEST))
        }
        None => format!("{function}{more}{}", place.map_or_else(String::new, |place| format!(", {place}"))),
    }
}
