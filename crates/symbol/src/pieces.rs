//! What a module's code is made of: functions, parts of functions that lie elsewhere, stubs. Whoever follows a thread has
//! to know which jumps go from one function to another, and not only what to call them at the end.

use crate::plt;
use crate::table::Table;
use crate::unwind::Frame;
use std::collections::HashMap;

/// What a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// A function that has a symbol.
    Function,
    /// Where the program begins.
    Start,
    /// What the tables for unwinding have and no symbol names: a function, or a part of one that needs no stack frame.
    Unnamed,
    /// A part of a function that lies elsewhere, as compilers put what is hardly ever run.
    Part,
    /// A stub through which the module calls others.
    Stub,
}

/// A piece of code, as the file counts addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// What it is.
    pub kind: PieceKind,
    /// First address of the function that it is a part of, as far as that is known; its own otherwise.
    pub function: u64,
}

/// What compilers put between the name of a function and the number of a part of it.
const COLD: &str = ".cold";

/// All pieces in order, none of which overlap.
pub(crate) fn of(functions: &Table, frames: &[Frame], start: Option<u64>) -> Vec<Piece> {
    let mut all = named(functions, frames);
    if let Some(piece) = all.iter_mut().find(|p| Some(p.start) == start && p.kind == PieceKind::Function) {
        piece.kind = PieceKind::Start;
    }
    let mut unnamed: Vec<Piece> = Vec::new();
    for frame in frames.iter().filter(|frame| frame.size > 0) {
        let (start, end) = (frame.start, frame.start.saturating_add(frame.size));
        let before = all.partition_point(|p| p.start <= start);
        let inside = before > 0 && start < all[before - 1].end;
        let next = all.get(before).map_or(u64::MAX, |p| p.start);
        if !inside {
            let kind = if frame.is_part { PieceKind::Part } else { PieceKind::Unnamed };
            unnamed.push(Piece { start, end: end.min(next), kind, function: start });
        }
    }
    all.extend(unnamed);
    all.sort_unstable_by_key(|p| p.start);
    all.dedup_by_key(|p| p.start);
    for i in 1..all.len() {
        all[i - 1].end = all[i - 1].end.min(all[i].start);
    }
    all
}

fn named(functions: &Table, frames: &[Frame]) -> Vec<Piece> {
    let parts = || functions.named_spans().filter(|(name, ..)| name.contains(COLD));
    let wanted: HashMap<&str, ()> =
        parts().filter_map(|(name, ..)| Some((name.split_once(COLD)?.0, ()))).collect();
    let whole = functions.named_spans().filter(|(name, ..)| wanted.contains_key(name));
    let whole: HashMap<&str, u64> = whole.map(|(name, start, _)| (name, start)).collect();
    let piece = |(name, start, end): (&str, u64, u64)| {
        let part = name.split_once(COLD).map(|(of, _)| whole.get(of).copied().unwrap_or(start));
        let kind = if name == plt::PLT || name.ends_with(plt::SUFFIX) {
            PieceKind::Stub
        } else if part.is_some() {
            PieceKind::Part
        } else {
            PieceKind::Function
        };
        Piece { start, end: end_of(frames, start, end), kind, function: part.unwrap_or(start) }
    };
    functions.named_spans().map(piece).collect()
}

/// A symbol without a size would reach to the next one, over functions that have none.
fn end_of(frames: &[Frame], start: u64, end: u64) -> u64 {
    let at = frames.partition_point(|frame| frame.start < start);
    let own = frames.get(at).filter(|frame| frame.start == start && frame.size > 0);
    own.map_or(end, |frame| end.min(start.saturating_add(frame.size)))
}
