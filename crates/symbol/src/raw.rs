//! Symbol tables as they lie in a file, each read as a whole: large programs have some hundred thousand symbols, and one
//! read per name took most of the time of a short run's report.

use object::{Object, ObjectSection, ReadRef};

/// Bytes of an entry (`Elf64_Sym`).
const ENTRY: usize = 24;

/// What a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Data (`STT_OBJECT`).
    Variable = 1,
    /// Code (`STT_FUNC`).
    Function = 2,
}

/// A symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'data> {
    pub address: u64,
    pub size: u64,
    pub name: &'data str,
}

/// A table: the full one or the dynamic one.
#[derive(Clone, Copy, Default)]
pub struct RawSymbols<'data> {
    entries: &'data [u8],
    strings: &'data [u8],
}

impl<'data> RawSymbols<'data> {
    /// Everything that the linker kept; empty in stripped files.
    pub fn full<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        Self::of(file, ".symtab", ".strtab")
    }

    /// What other modules can see, all that stripped libraries have.
    pub fn dynamic<R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        Self::of(file, ".dynsym", ".dynstr")
    }

    fn of<R: ReadRef<'data>>(file: &object::File<'data, R>, entries: &str, strings: &str) -> Self {
        // Files that are not of 64 bits and little-endian are none that ran here.
        if !file.is_64() || !file.is_little_endian() {
            return Self::default();
        }
        let data = |name| file.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or(&[]);
        RawSymbols { entries: data(entries), strings: data(strings) }
    }

    fn entry(&self, index: usize) -> Option<&'data [u8; ENTRY]> {
        self.entries.get(index.checked_mul(ENTRY)?..)?.first_chunk()
    }

    /// Symbol number `index`, if it has a name; it may be defined by another file.
    pub fn get(&self, index: usize) -> Option<Symbol<'data>> {
        let entry = self.entry(index)?;
        let long = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap_or_default());
        let name = self.strings.get(u32::from_le_bytes(*entry.first_chunk()?) as usize..)?;
        let name = &name[..name.iter().position(|b| *b == 0)?];
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
        Some(Symbol { address: long(8), size: long(16), name })
    }

    /// The symbols of a kind that are defined here.
    pub fn defined(self, kind: Kind) -> impl Iterator<Item = Symbol<'data>> {
        let is = move |index: &usize| {
            self.entry(*index).is_some_and(|entry| {
                entry[4] & 15 == kind as u8 && is_section(u16::from_le_bytes([entry[6], entry[7]]))
            })
        };
        (0..self.entries.len() / ENTRY).filter(is).filter_map(move |index| self.get(index))
    }
}

/// Whether a number stands for a section, or for one whose number is too large to be here: not for what is undefined,
/// absolute or common.
fn is_section(number: u16) -> bool {
    use object::elf::{SHN_LORESERVE, SHN_UNDEF, SHN_XINDEX};
    let special = number == SHN_UNDEF.0 || number >= SHN_LORESERVE;
    !special || number == SHN_XINDEX.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{ObjectSymbol, SymbolKind};

    #[test]
    fn symbols_are_those_that_the_object_crate_finds() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        for (kind, theirs) in [(Kind::Function, SymbolKind::Text), (Kind::Variable, SymbolKind::Data)] {
            let is = |s: &object::Symbol<'_, '_>| s.kind() == theirs && s.is_definition();
            let expected: Vec<_> =
                file.symbols().filter(is).map(|s| (s.address(), s.size(), s.name().unwrap())).collect();
            let found: Vec<_> =
                RawSymbols::full(&file).defined(kind).map(|s| (s.address, s.size, s.name)).collect();
            assert!(found.len() > 10);
            assert_eq!(found, expected);
        }
        let name = file.dynamic_symbols().next().and_then(|s| s.name().ok().map(ToOwned::to_owned));
        assert_eq!(RawSymbols::dynamic(&file).get(1).map(|s| s.name.to_owned()), name);
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let entries =
            [1, 0, 0, 0, 2, 0, 1, 0].into_iter().chain([7; 16]).chain([1, 0, 0, 0]).collect::<Vec<u8>>();
        let table = RawSymbols { entries: &entries, strings: b"\0main\0" };
        assert_eq!(table.get(0).map(|s| s.name), Some("main"));
        assert_eq!((table.get(1), table.get(usize::MAX)), (None, None));
        assert_eq!(RawSymbols { strings: b"\0main", ..table }.get(0), None, "its name does not end");
        assert_eq!(RawSymbols { strings: b"", ..table }.get(0), None);
        assert_eq!(table.defined(Kind::Function).count(), 1);
        assert_eq!(table.defined(Kind::Variable).count(), 0);
    }
}
