//! What the emitter is told: where the thread context keeps things, what the copy does besides running the program.

use super::Whole;
use crate::asm::{Gpr, LOG, TEMP};

/// Places of the thread context (offsets from gs) and of the jump table that the copy uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The program's r14.
    pub app_r14: u32,
    /// The program's r15.
    pub app_r15: u32,
    /// Where rcx is kept during lookups and checks.
    pub save_rcx: u32,
    /// Where rewritten instructions keep borrowed registers.
    pub spill: [u32; 3],
    /// Checks left in this burst.
    pub checks: u32,
    /// Pointer to the code that resolves a direct exit; r14d = exit number.
    pub resolve: u32,
    /// Pointer to the code that ends a burst at a direct exit; r14d = exit number.
    pub end_direct: u32,
    /// Pointer to the code that ends a burst at the pc in r14.
    pub end_indirect: u32,
    /// Pointer to the code that handles a system call or an instruction left to the program; r14d = exit number.
    pub leave: u32,
    /// Address (below 2 GiB) of the table of 65,536 entry points by the low bits of the pc.
    pub table: u32,
    /// What indirect branches use instead of `table`, where it can be had.
    pub whole: Option<Whole>,
}

impl Layout {
    /// Where the program's own value of a stolen register lives.
    pub fn home(&self, r: Gpr) -> u32 {
        if r == LOG { self.app_r15 } else { self.app_r14 }
    }
}

/// What else the copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Count checks and end at zero.
    pub checks: bool,
    /// Returns count, too. No cycle needs them: what returns was called (paper 4 has no check there).
    pub returns: bool,
    /// Write the log at all (the checking version of counter mode does not).
    pub record: bool,
}

impl Mode {
    /// The registers that the copy keeps for itself, a bit each: without a log, none is needed to point at it.
    pub fn stolen(&self) -> u16 {
        1 << TEMP | u16::from(self.record) << LOG
    }
}

/// Branches that keep no check although the plan has one there (paper 4 section 4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchecked {
    /// Address at which offset 0 lies.
    pub base: u64,
    /// Offsets of the branches, ascending.
    pub offsets: &'static [u32],
}

impl Unchecked {
    pub(super) fn holds(&self, pc: u64) -> bool {
        let offset = u32::try_from(pc.wrapping_sub(self.base));
        offset.is_ok_and(|offset| self.offsets.binary_search(&offset).is_ok())
    }
}
