//! What code an address belongs to, while the program runs: without it a jump to another function, by which optimizing
//! compilers end a function with a call, looks like any other jump.
//!
//! A module's own files tell (`sonde-symbol`): its symbols, and in stripped files the tables for unwinding. They are read when
//! code of the module is first asked for.

use rustc_hash::FxHashMap;
use sonde_event::maps::Mapping;
use sonde_symbol::{Piece, PieceKind, Symbols};
use std::sync::Arc;

/// What a direct jump is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// It stays in its function.
    Plain,
    /// It goes to the beginning of another one.
    Tail,
    /// Nothing is known of the code.
    Unknown,
}

/// Code mapped from a file.
struct Mapped {
    mapping: Mapping,
    /// What is added to the file's addresses, and what it is made of; none until somebody asks.
    read: Option<(u64, Arc<[Piece]>)>,
}

/// What code lies where.
#[derive(Default)]
pub struct Code {
    /// Newest last.
    mapped: Vec<Mapped>,
    /// By file and build-id.
    files: FxHashMap<(String, Vec<u8>), Arc<[Piece]>>,
}

/// Most mappings of code; programs that load and unload without end would grow this for ever.
const MOST: usize = 1 << 10;

impl Code {
    /// Something was mapped. Whether it is code.
    pub fn mapping(&mut self, mapping: &Mapping) -> bool {
        if !(mapping.is_executable() && mapping.is_file()) {
            return false;
        }
        self.add(mapping.clone(), None);
        true
    }

    fn add(&mut self, mapping: Mapping, read: Option<(u64, Arc<[Piece]>)>) {
        self.mapped.retain(|old| old.mapping.start != mapping.start);
        if self.mapped.len() >= MOST {
            self.mapped.remove(0);
        }
        self.mapped.push(Mapped { mapping, read });
    }

    /// Code that no file tells of.
    #[cfg(test)]
    pub fn made_up(pieces: &[Piece]) -> Code {
        let mut code = Code::default();
        let mapping = Mapping {
            end: u64::MAX,
            permissions: "r-xp".into(),
            name: "/made/up".into(),
            ..Mapping::default()
        };
        code.add(mapping, Some((0, pieces.into())));
        code
    }

    /// The piece of code that an address lies in, as far as is known.
    pub fn piece(&mut self, address: u64) -> Option<Piece> {
        let mapped = self.mapped.iter_mut().rev().find(|m| m.mapping.contains(address))?;
        let files = &mut self.files;
        let (bias, pieces) = mapped.read.get_or_insert_with(|| read(&mapped.mapping, files));
        let inside = address.wrapping_sub(*bias);
        let piece =
            pieces[..pieces.partition_point(|p| p.start <= inside)].last().filter(|p| inside < p.end)?;
        let moved = |at: u64| at.wrapping_add(*bias);
        Some(Piece {
            start: moved(piece.start),
            end: moved(piece.end),
            function: moved(piece.function),
            ..*piece
        })
    }

    /// The beginning of the function that an address lies in; the address itself if that is not known.
    pub fn function(&mut self, address: u64) -> u64 {
        self.piece(address).map_or(address, |piece| piece.function)
    }

    /// What a direct jump from `site` to `target` is.
    pub fn jump(&mut self, site: u64, target: u64, conditional: bool) -> Jump {
        let Some(to) = self.piece(target) else {
            let known = conditional || self.piece(site).is_some();
            return if known { Jump::Plain } else { Jump::Unknown };
        };
        if !self.is_entry(&to, target, conditional) || (to.start..to.end).contains(&site) {
            return Jump::Plain;
        }
        // What stubs have in common lies beside them.
        let from_stub = self.piece(site).is_some_and(|from| from.kind == PieceKind::Stub);
        if from_stub { Jump::Plain } else { Jump::Tail }
    }

    /// Whether a jump to `target`, in this piece, goes to where a function begins. Compilers jump to rarely run parts of the
    /// same function under a condition, and to other functions without one: that has to tell where no name does.
    fn is_entry(&self, to: &Piece, target: u64, conditional: bool) -> bool {
        let whole = match to.kind {
            PieceKind::Function | PieceKind::Start | PieceKind::Stub => true,
            PieceKind::Unnamed => !conditional,
            PieceKind::Part => false,
        };
        whole && to.start == target
    }

    /// Whether an indirect jump to `target` goes to where a function begins, and what piece that is in.
    pub fn target(&mut self, target: u64) -> (Option<Piece>, bool) {
        let piece = self.piece(target);
        (piece, piece.is_some_and(|to| self.is_entry(&to, target, false)))
    }

    /// Whether an address lies in a stub.
    pub fn is_stub(&mut self, address: u64) -> bool {
        self.piece(address).is_some_and(|piece| piece.kind == PieceKind::Stub)
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.files.values().map(|pieces| size_of_val(&pieces[..])).sum::<usize>()
            + self.mapped.capacity() * size_of::<Mapped>()
    }
}

fn read(mapping: &Mapping, files: &mut FxHashMap<(String, Vec<u8>), Arc<[Piece]>>) -> (u64, Arc<[Piece]>) {
    let mut symbols = Symbols::new();
    let (file, build_id) = (mapping.name.as_str(), &mapping.build_id[..]);
    let Some(address) = symbols.address(file, build_id, mapping.offset) else { return (0, Arc::default()) };
    let key = (mapping.name.clone(), mapping.build_id.clone());
    let pieces = files.entry(key).or_insert_with(|| symbols.pieces(file, build_id).into());
    (mapping.start.wrapping_sub(address), Arc::clone(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, end: u64, kind: PieceKind) -> Piece {
        Piece { start, end, kind, function: start }
    }

    #[test]
    fn only_jumps_to_where_functions_begin_leave_one() {
        let mut code = Code::made_up(&[
            piece(100, 200, PieceKind::Function),
            piece(200, 300, PieceKind::Function),
            piece(300, 350, PieceKind::Part),
            piece(400, 450, PieceKind::Unnamed),
            piece(500, 516, PieceKind::Stub),
        ]);
        assert_eq!(code.jump(150, 200, false), Jump::Tail);
        assert_eq!(code.jump(150, 200, true), Jump::Tail);
        assert_eq!(code.jump(150, 210, false), Jump::Plain, "to the middle of another");
        assert_eq!(code.jump(150, 100, false), Jump::Plain, "a loop");
        assert_eq!(code.jump(150, 300, false), Jump::Plain, "to a part of it");
        assert_eq!(code.jump(150, 400, true), Jump::Plain, "probably a part of it");
        assert_eq!(code.jump(150, 400, false), Jump::Tail);
        assert_eq!(code.jump(150, 500, false), Jump::Tail, "through a stub");
        assert_eq!(code.jump(505, 200, false), Jump::Plain, "from a stub");
        assert_eq!(code.jump(1000, 2000, false), Jump::Unknown);
        assert_eq!(code.jump(1000, 2000, true), Jump::Plain);
        assert_eq!(code.function(250), 200);
        assert_eq!(code.function(2000), 2000);
    }
}
