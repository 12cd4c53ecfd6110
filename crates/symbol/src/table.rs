//! A symbol table that can be asked what lies at an address.

use crate::raw::{Kind, RawSymbols};

/// One symbol.
#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    size: u64,
    /// Where its name begins and ends among all names.
    name: (u32, u32),
}

/// Symbols of one kind by address.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    /// All names, one behind the other: a string each would be a hundred thousand allocations.
    names: String,
}

impl Table {
    /// The symbols of this kind in the full table and the dynamic one (all that stripped libraries have).
    pub fn new<'data, R: object::ReadRef<'data>>(file: &object::File<'data, R>, kind: Kind) -> Table {
        let mut table = Table::default();
        for symbols in [RawSymbols::full(file), RawSymbols::dynamic(file)] {
            for symbol in symbols.defined(kind) {
                table.push(symbol.address, symbol.size, symbol.name);
            }
        }
        // Of several names for one place, the one that covers most, then the shortest: aliases have prefixes.
        let Table { entries, names } = &mut table;
        entries.sort_by(|a, b| {
            let key = |e: &Entry| (e.address, std::cmp::Reverse(e.size), e.name.1 - e.name.0);
            key(a).cmp(&key(b)).then_with(|| text(names, a).cmp(text(names, b)))
        });
        entries.dedup_by_key(|e| e.address);
        table
    }

    fn push(&mut self, address: u64, size: u64, name: &str) {
        let from = self.names.len();
        // Beyond 4 GiB of names there are no more of them.
        let Ok(to) = u32::try_from(from + name.len()) else { return };
        self.names.push_str(name);
        self.entries.push(Entry { address, size, name: (from as u32, to) });
    }

    /// Adds the symbols of another table where this one has none.
    pub fn or(self, other: Table) -> Table {
        if self.entries.len() >= other.entries.len() { self } else { other }
    }

    /// Symbols without a size reach to the next one, but not over the end of their section: `_init` is not the PLT that
    /// follows it. Sections are given as first address and end.
    pub fn end_with_sections(&mut self, sections: &[(u64, u64)]) {
        for i in 0..self.entries.len() {
            let (at, next) =
                (self.entries[i].address, self.entries.get(i + 1).map_or(u64::MAX, |e| e.address));
            if self.entries[i].size == 0
                && let Some((_, end)) = sections.iter().find(|(start, end)| (*start..*end).contains(&at))
            {
                self.entries[i].size = next.min(*end) - at;
            }
        }
    }

    /// Adds symbols, each with address, size and name, where none has an address of its own.
    pub fn insert(&mut self, more: Vec<(u64, u64, String)>) {
        let new = more.into_iter().filter(|(address, ..)| self.span(*address).is_none());
        let new: Vec<(u64, u64, String)> = new.collect();
        new.iter().for_each(|(address, size, name)| self.push(*address, *size, name));
        self.entries.sort_by_key(|e| e.address);
    }

    /// All symbols by address: first address and end, each no further than the next one begins, as [`Table::span`] has it.
    pub fn spans(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.entries.iter().enumerate().map(|(i, entry)| {
            let next = self.entries.get(i + 1).map_or(u64::MAX, |next| next.address);
            let end = if entry.size == 0 { next } else { entry.address.saturating_add(entry.size) };
            (entry.address, end.min(next))
        })
    }

    /// The same with names.
    pub fn named_spans(&self) -> impl Iterator<Item = (&str, u64, u64)> + '_ {
        self.entries
            .iter()
            .zip(self.spans())
            .map(|(entry, (start, end))| (text(&self.names, entry), start, end))
    }

    /// The name of the symbol that an address lies in.
    pub fn find(&self, address: u64) -> Option<&str> {
        self.span(address).map(|(name, _, _)| name)
    }

    /// The symbol that an address lies in: name, address, size.
    pub fn span(&self, address: u64) -> Option<(&str, u64, u64)> {
        let behind = self.entries.partition_point(|e| e.address <= address);
        let entry = self.entries.get(behind.checked_sub(1)?)?;
        // Assembly functions often have no size: they reach to the next symbol.
        let next = || self.entries.get(behind).map_or(u64::MAX, |e| e.address);
        let size = if entry.size == 0 { next() - entry.address } else { entry.size };
        (address - entry.address < size).then_some((text(&self.names, entry), entry.address, size))
    }
}

/// The name of a symbol.
fn text<'a>(names: &'a str, entry: &Entry) -> &'a str {
    &names[entry.name.0 as usize..entry.name.1 as usize]
}
