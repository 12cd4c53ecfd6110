//! Hot ranges with names: which function of which module, or which variable, section or mapping.

use serde::Serialize;
use sonde_event::maps::{Mapping, Mappings};
use sonde_rap::{HotRange, Tree};
use sonde_symbol::{DataPlace, Symbols};

use crate::quantity::size;

/// A hot range of code or data.
#[derive(Debug, Default, Serialize)]
pub struct Hot {
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
    /// Of the hottest block in the module's file.
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
    mappings: &'a Mappings,
    symbols: Symbols,
}

impl<'a> Namer<'a> {
    /// With the mappings that a run saw.
    pub fn new(mappings: &'a Mappings) -> Namer<'a> {
        Namer { mappings, symbols: Symbols::new() }
    }

    /// The hot ranges over block pcs, the hottest first; `blocks` are the pcs with their weights, by pc.
    pub fn code(&mut self, tree: &mut Tree<u64>, threshold: f64, blocks: &[(u64, u64)]) -> Vec<Hot> {
        self.ranges(tree, threshold, |namer, all, index, hot| {
            namer.name_code(hottest(all, index, blocks), hot);
        })
    }

    /// The hot ranges over data addresses, the hottest first.
    pub fn data(&mut self, tree: &mut Tree<u64>, threshold: f64) -> Vec<Hot> {
        self.ranges(tree, threshold, |namer, all, index, hot| {
            namer.name_data(all[index].range.lo, all[index].range.hi, hot);
        })
    }

    fn ranges(
        &mut self,
        tree: &mut Tree<u64>,
        threshold: f64,
        mut name: impl FnMut(&mut Self, &[HotRange<u64>], usize, &mut Hot),
    ) -> Vec<Hot> {
        let snapshot = tree.snapshot();
        let share = |count: u64| count as f64 / snapshot.events.max(1) as f64;
        let mut all: Vec<Hot> = Vec::new();
        let ranges = snapshot.hot(threshold);
        for (index, found) in ranges.iter().enumerate() {
            let mut hot = Hot {
                lo: format!("{:#x}", found.range.lo),
                hi: format!("{:#x}", found.range.hi),
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

    fn name_code(&mut self, pc: u64, hot: &mut Hot) {
        let Some(mapping) = self.mappings.find(pc) else {
            hot.place = format!("{pc:#x}, unmapped when looked at");
            return;
        };
        let offset = pc - mapping.start + mapping.offset;
        let place = self.symbols.code(&mapping.name, &mapping.build_id, offset);
        let module = short(&mapping.name);
        let line = place.file.as_deref().map(|file| match place.line {
            Some(line) => format!(" {}:{line}", short(file)),
            None => format!(" {}", short(file)),
        });
        let line = line.unwrap_or_default();
        hot.place = match (&place.function, &place.inlined_into) {
            (Some(function), Some(outer)) => format!("{function} in {outer}{line} ({module}+{offset:#x})"),
            (Some(function), None) => format!("{function}{line} ({module}+{offset:#x})"),
            (None, _) => format!("{module}+{offset:#x}"),
        };
        hot.module = Some(mapping.name.clone());
        hot.offset = Some(format!("{offset:#x}"));
        hot.function = place.function;
        hot.file = place.file;
        hot.line = place.line;
    }

    fn name_data(&mut self, lo: u64, hi: u64, hot: &mut Hot) {
        let touched: Vec<&'a Mapping> =
            self.mappings.all().iter().filter(|m| m.start <= hi && lo < m.end).collect();
        let (Some(first), Some(last)) = (
            self.mappings.find(lo).or(touched.iter().copied().min_by_key(|m| m.start)),
            self.mappings.find(hi).or(touched.iter().copied().max_by_key(|m| m.end)),
        ) else {
            hot.place = "unmapped when looked at".into();
            return;
        };
        let ends = (self.in_module(first, lo.max(first.start)), self.in_module(last, hi.min(last.end - 1)));
        hot.place = match ends {
            (Some(from), Some(to)) if from.module.name == to.module.name => {
                hot.module = Some(from.module.name.clone());
                hot.section = from.place.section.clone();
                hot.variable = from.place.variable.clone().filter(|_| from.place == to.place);
                in_words(&from, &to)
            }
            (Some(from), None) if first == last => {
                hot.module = Some(from.module.name.clone());
                hot.section = from.place.section.clone();
                in_words(
                    &from,
                    &InModule {
                        module: from.module,
                        place: DataPlace { variable: None, ..from.place.clone() },
                    },
                )
            }
            _ if first.name == last.name => nameless(first),
            _ => format!("spread over {} mappings", touched.len()),
        };
    }

    /// Where in a module an address lies, if it does; in its uninitialized data too, which is nameless memory.
    fn in_module(&mut self, mapping: &'a Mapping, at: u64) -> Option<InModule<'a>> {
        let module = if mapping.is_file() { mapping } else { self.module_before(mapping)? };
        let bias = self.bias(module)?;
        let place = self.symbols.data(&module.name, &module.build_id, at.wrapping_sub(bias));
        place.section.is_some().then_some(InModule { module, place })
    }

    /// By how much a module lies above the addresses that its file asks for.
    ///
    /// A page of the file can be mapped twice, as the end of one segment and the start of another; code never is, so
    /// the nearest mapping of the module's code tells.
    fn bias(&mut self, module: &Mapping) -> Option<u64> {
        let of_it = |m: &&Mapping| m.name == module.name && m.is_executable();
        let code = self.mappings.all().iter().filter(of_it).min_by_key(|m| m.start.abs_diff(module.start));
        let base = code.unwrap_or(module);
        let asked = self.symbols.address(&base.name, &base.build_id, base.offset)?;
        Some(base.start.wrapping_sub(asked))
    }

    /// The module that nameless memory right behind it belongs to: its uninitialized data.
    fn module_before(&self, mapping: &Mapping) -> Option<&'a Mapping> {
        if !mapping.name.is_empty() {
            return None;
        }
        self.mappings.all().iter().rev().find(|m| m.end == mapping.start && m.is_file())
    }
}

/// A data address of a module.
struct InModule<'a> {
    module: &'a Mapping,
    place: DataPlace,
}

fn in_words(from: &InModule<'_>, to: &InModule<'_>) -> String {
    let section = |end: &InModule<'_>| end.place.section.clone().unwrap_or_default();
    let (module, first, last) = (short(&from.module.name), section(from), section(to));
    match &from.place.variable {
        Some(variable) if from.place == to.place => format!("{module}:{first} {variable}"),
        _ if first == last => format!("{module}:{first}"),
        _ => format!("{module}:{first} to {last}"),
    }
}

fn nameless(mapping: &Mapping) -> String {
    match mapping.name.as_str() {
        "" => format!("anonymous memory, {} mapped", size(mapping.end - mapping.start)),
        "[heap]" => "heap".into(),
        "[stack]" => "stack".into(),
        name if mapping.is_file() => format!("file {}", short(name)),
        name => name.into(),
    }
}

/// The pc of the heaviest block of a hot range outside the hot ranges within it.
fn hottest(ranges: &[HotRange<u64>], index: usize, blocks: &[(u64, u64)]) -> u64 {
    let range = ranges[index].range;
    let from = blocks.partition_point(|b| b.0 < range.lo);
    let to = blocks.partition_point(|b| b.0 <= range.hi);
    let inner: Vec<_> = ranges.iter().filter(|r| r.parent == Some(index)).map(|r| r.range).collect();
    let own = blocks[from..to].iter().filter(|b| !inner.iter().any(|r| r.contains_key(b.0)));
    own.max_by_key(|b| b.1).map_or(range.lo, |b| b.0)
}

fn short(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, file)| file)
}
