//! What a burst tells of the time that it stands for: the code that the thread was in when its time was up.
//!
//! A burst's time belongs to the instruction at which it began, as that of a sample does. References, values and branches
//! have no beginnings: they share that time out among what the same code did in the burst. The same code are the superblocks
//! that hold the instruction, whenever the burst comes through one of them. So what lies before the instruction is part of
//! it, too, such as the load that it waited for, and a loop tells of all its rounds. What else the burst recorded has no
//! part in its time: a function that computes for a thousand instructions between two that wait for memory would get nearly
//! all of it.

use sonde_event::Run;
use std::collections::HashMap;

/// The superblocks of the code that a burst began in.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Where the burst began; none if its time is not that of any code.
    start: Option<u64>,
    /// Superblocks that were met, and whether they hold that instruction.
    met: HashMap<u32, bool>,
}

impl Window {
    /// A burst begins there; none, if the time is not that of any code.
    pub fn restart(&mut self, pc: Option<u64>) {
        self.start = pc;
        self.met.clear();
    }

    /// Of these superblocks.
    #[cfg(test)]
    pub fn of(superblocks: &[u32]) -> Window {
        Window { start: Some(0), met: superblocks.iter().map(|superblock| (*superblock, true)).collect() }
    }

    /// Whether a pass is through this code.
    #[inline]
    pub fn admits(&mut self, run: &Run<'_>) -> bool {
        let Some(start) = self.start else { return false };
        let holds = || run.superblock.insns.iter().any(|insn| insn.pc == start);
        *self.met.entry(run.path.superblock).or_insert_with(holds)
    }

    /// Whether passes through a superblock are to be looked at: it is part of it, or not known yet.
    #[inline]
    pub fn wants(&self, superblock: u32) -> bool {
        self.start.is_some() && self.met.get(&superblock).is_none_or(|holds| *holds)
    }

    /// Whether a superblock is part of it, as far as it was met.
    #[inline]
    pub fn has(&self, superblock: u32) -> bool {
        self.met.get(&superblock).is_some_and(|holds| *holds)
    }
}
