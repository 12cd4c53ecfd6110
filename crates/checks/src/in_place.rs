//! Checks in the program's own code: which of its branches and instructions become jumps to a piece of code that counts.
//!
//! The paper rewrites programs ahead of time, so that all code but the checks runs as it was. Here the same is done to the
//! program in memory: a branch that needs a check is led through a *stub* (its displacement changes, nothing else), and where
//! there is no such branch, a run of whole instructions of at least five bytes is replaced by a jump to a stub that counts
//! and runs them. What is not changed: return addresses, calls, returns, indirect branches, the stack, all registers.
//!
//! # Which checks
//! Entries that may be reached from anywhere count in their own first instructions, others at direct calls. Jumps back and
//! indirect jumps count if they lie on a cycle of the function, or of the parts it was laid out in. In the schemes with `EC`
//! they count only if that cycle meets no other check (of what it calls, of an indirect jump), and of the set C only those
//! functions count that leave the module without meeting another check. So there are fewer than in a copy of the program,
//! where each branch is looked at alone; every cycle still meets one (`proofs.rs`).
//!
//! # What is left alone
//! A change is made only in functions that the tables for unwinding delimit (files without `.eh_frame` stay as they are),
//! that decode from begin to end without a contradiction, and where no branch, table, constant, symbol or landing pad leads
//! into the run. In a run only the first instruction can fault, or an indirect jump at its end; it holds no call and no
//! system call. Functions where something is reached by nothing that is known (it may be data), or whose table of
//! exceptions cannot be read, have only branches and single instructions changed. Nothing is changed in functions whose
//! bytes or addresses somebody compares, or that run when nothing is set up: `special.rs`. What cannot be done is counted.
//!
//! The caller's duties: a thread's context is behind gs before it runs changed code; the stubs lie within 2 GiB of the
//! module; a burst that begins at an instruction that was moved goes on at its copy, or with the bytes that were there.

mod bodies;
mod flow;
mod image;
mod jumps;
mod pads;
#[cfg(test)]
mod proofs;
mod sites;
mod special;
mod starts;
mod stubs;

use crate::module::{Module, ModuleError};
use crate::plan::Scheme;
use bodies::Bodies;
use std::path::Path;
pub use stubs::{BELL, RINGS_AT};

/// Where a thread's context holds what stubs use, from gs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Checks left until a burst.
    pub checks: i32,
    /// The program's r14.
    pub app_r14: i32,
    /// A register while a check is counted without flags.
    pub save: i32,
    /// Where a thread without checks goes on.
    pub target: i32,
}

/// A change of the program's code: four bytes at `field` lead to a place in the stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Address of the four bytes in the module, which are relative to their end.
    pub field: u64,
    /// Whether the byte before them becomes that of a jump; else they belong to a branch.
    pub jump: bool,
    /// Where in the stubs it leads to.
    pub to: u32,
}

/// What is to be done to a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPlace {
    /// Changes, in the order of addresses; none overlaps another.
    pub edits: Vec<Edit>,
    /// The stubs, as if they lay at address 0 of the module.
    pub stubs: Vec<u8>,
    /// Where in the stubs four bytes lie that are relative to their place: what the stubs are moved by is subtracted.
    pub relative: Vec<u32>,
    /// Instructions that have a copy in the stubs: address, where the copy is.
    pub moved: Vec<(u64, u32)>,
    /// Function entries and back-edges that got their check.
    pub placed: usize,
    /// Those that should have one, and could not get it.
    pub missed: usize,
    /// Which these are, in no order.
    pub misses: Vec<Miss>,
    /// Functions that were left alone: their code is not understood, or must stay as it is.
    pub opaque: usize,
    /// Whether it uses gs itself, where stubs find what they count: then no code of the program may be changed.
    pub uses_gs: bool,
    /// Functions where only branches and single instructions are changed: there may be ways into them that are not known.
    pub guarded: usize,
}

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// The entry of a function that may be called from anywhere.
    Entry,
    /// A direct call.
    Call,
    /// A jump back.
    BackEdge,
    /// An indirect jump that may lead back.
    Jump,
}

/// A check that could not be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The branch, or the function.
    pub at: u64,
    /// What it would count.
    pub what: What,
}

impl InPlace {
    /// Plans the checks of a module.
    pub fn new(path: &Path, module: &Module, scheme: Scheme, layout: Layout) -> Result<InPlace, ModuleError> {
        let bytes = Module::read(path)?;
        let file = Module::parse(path, &bytes)?;
        let bodies = Bodies::of(&file);
        Ok(sites::choose(&bodies, module, scheme, layout))
    }
}
