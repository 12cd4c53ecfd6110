//! Names for addresses: function, file and line, section and variable, from the files that a program was run from.
//!
//! An address is given as a file and an offset in it (what a mapping says), never as a live address: the program may
//! be long gone, or on another machine. A stripped file degrades: no lines, then no functions, then only the caller's
//! `module+offset`. Debug files apart from the program (`/usr/lib/debug/.build-id/...`) are used where installed. A file
//! that is not the one that ran (another build-id) gives no names rather than wrong ones; a copy of the one that ran is found
//! by its build-id.
//!
//! Duties of the caller: pass the build-id seen at run time, if there was one. Non-goals: unwinding, source text,
//! fetching debug files from the network.
//!
//! ```
//! let mut symbols = sonde_symbol::Symbols::new();
//! let place = symbols.code("/no/such/file", &[], 0x1000);
//! assert_eq!(place.function, None);
//! ```
#![forbid(unsafe_code)]

mod copies;
mod debug_file;
mod layout;
mod module;
mod pieces;
mod plt;
mod raw;
mod shorten;
mod table;
pub mod unwind;

pub use layout::{Layout, Stretch};
pub use pieces::{Piece, PieceKind};
pub use plt::PLT;
pub use shorten::shorten;

use copies::Copies;
use module::Module;
use std::collections::HashMap;
use std::path::PathBuf;

/// What is known about a code address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The function, demangled; the innermost inlined one if the debug information tells.
    pub function: Option<String>,
    /// The function that it was inlined into, if it was.
    pub inlined_into: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}

/// A function that an instruction belongs to: it, or one that was inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The function, demangled.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
}

/// Lines of one source file that a stretch of code was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Source file.
    pub file: String,
    /// First line.
    pub first: u32,
    /// Last line.
    pub last: u32,
    /// Bytes of code.
    pub bytes: u64,
}

/// A function or variable and the addresses that it covers, as the file counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Its name, demangled.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Bytes; up to the next symbol if the table does not say.
    pub size: u64,
}

/// What is known about a data address of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataPlace {
    /// Section, such as `.bss`.
    pub section: Option<String>,
    /// Variable, demangled.
    pub variable: Option<String>,
}

/// Modules, opened when first asked for.
pub struct Symbols {
    modules: HashMap<(String, Vec<u8>), Option<Module>>,
    debug_roots: Vec<PathBuf>,
    copies: Copies,
}

impl Default for Symbols {
    fn default() -> Self {
        Symbols::new()
    }
}

impl Symbols {
    /// With debug files in the usual place.
    pub fn new() -> Symbols {
        Symbols::with_debug_roots(vec![PathBuf::from("/usr/lib/debug")])
    }

    /// With debug files in these places.
    pub fn with_debug_roots(debug_roots: Vec<PathBuf>) -> Symbols {
        Symbols { modules: HashMap::new(), debug_roots, copies: Copies::default() }
    }

    /// Looks for files that are gone or changed in these folders as well: copies of them, by build-id, whatever they are
    /// called. Some thousand files are looked into, a few levels deep.
    pub fn with_copies(mut self, folders: Vec<PathBuf>) -> Symbols {
        self.copies = Copies::new(folders);
        self
    }

    /// Files and folders among those of [`Symbols::with_copies`] that were not looked into: more than some thousand, or too
    /// deep.
    pub fn skipped_copies(&self) -> usize {
        self.copies.skipped()
    }

    fn module(&mut self, file: &str, build_id: &[u8]) -> Option<&Module> {
        let key = (file.to_owned(), build_id.to_owned());
        let (roots, copies) = (&self.debug_roots, &mut self.copies);
        let mut copy = || copies.find(build_id, roots).and_then(|copy| Module::open(&copy, build_id, roots));
        let open = || Module::open(file.as_ref(), build_id, roots).or_else(&mut copy);
        self.modules.entry(key).or_insert_with(open).as_ref()
    }

    /// Whether a file is there, and the one that ran, or a copy of that.
    pub fn is_there(&mut self, file: &str, build_id: &[u8]) -> bool {
        self.module(file, build_id).is_some()
    }

    /// Names the code at an offset of a file.
    pub fn code(&mut self, file: &str, build_id: &[u8], offset: u64) -> Place {
        let Some(module) = self.module(file, build_id) else { return Place::default() };
        module.address_of(offset).map_or_else(Place::default, |address| module.code(address))
    }

    /// The address that a file asks to have at an offset of it; the difference to where that was is the module's bias.
    pub fn address(&mut self, file: &str, build_id: &[u8], offset: u64) -> Option<u64> {
        self.module(file, build_id)?.address_of(offset)
    }

    /// The address, as the file counts, of an offset from where the module's lowest part is mapped.
    pub fn image_address(&mut self, file: &str, build_id: &[u8], offset: u64) -> Option<u64> {
        Some(self.module(file, build_id)?.lowest()?.wrapping_add(offset))
    }

    /// The functions that the instruction at an address (as the file counts) belongs to: the innermost inlined one
    /// first, the one that has a symbol last. Empty if nothing is known.
    pub fn frames(&mut self, file: &str, build_id: &[u8], address: u64) -> Vec<Frame> {
        self.module(file, build_id).map_or_else(Vec::new, |module| module.frames(address))
    }

    /// The source lines behind the code from `lo` to `hi` (addresses as the file counts), most code first.
    pub fn lines(&mut self, file: &str, build_id: &[u8], lo: u64, hi: u64) -> Vec<Lines> {
        self.module(file, build_id).map_or_else(Vec::new, |module| module.lines_of(lo, hi))
    }

    /// What the code from `lo` to `hi` (addresses as the file counts) was made from, piece by piece: bytes, and the frames
    /// as [`Symbols::frames`] has them, each with a source line.
    pub fn sources(&mut self, file: &str, build_id: &[u8], lo: u64, hi: u64) -> Vec<(u64, Vec<Frame>)> {
        self.module(file, build_id).map_or_else(Vec::new, |module| module.sources(lo, hi))
    }

    /// The function that an address (as the file counts) lies in, by the symbol table.
    pub fn function(&mut self, file: &str, build_id: &[u8], address: u64) -> Option<Span> {
        self.module(file, build_id)?.function(address)
    }

    /// First address and bytes of the function that an address (as the file counts) lies in, by the symbol table or, in
    /// stripped files, by the tables for unwinding.
    pub fn extent(&mut self, file: &str, build_id: &[u8], address: u64) -> Option<(u64, u64)> {
        self.module(file, build_id)?.extent(address)
    }

    /// What the code of a module is made of, by address; none of the pieces overlap. Empty if the file is not there, or
    /// tells nothing.
    pub fn pieces(&mut self, file: &str, build_id: &[u8]) -> Vec<Piece> {
        self.module(file, build_id).map_or_else(Vec::new, Module::pieces)
    }

    /// The variable that an address (as the file counts) lies in.
    pub fn variable(&mut self, file: &str, build_id: &[u8], address: u64) -> Option<Span> {
        self.module(file, build_id)?.variable(address)
    }

    /// What lies where in a module's memory: sections, and the variables in them. Empty if the file is not there.
    pub fn layout(&mut self, file: &str, build_id: &[u8]) -> Layout {
        self.module(file, build_id).map_or_else(Layout::default, Module::layout)
    }

    /// Names the data at an address as the file counts (see [`Symbols::address`]).
    pub fn data(&mut self, file: &str, build_id: &[u8], address: u64) -> DataPlace {
        self.module(file, build_id).map_or_else(DataPlace::default, |module| module.data(address))
    }
}
