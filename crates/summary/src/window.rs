//! What a burst tells of the time that it stands for: the code that the thread was in when its time was up.
//!
//! A burst's time belongs to the instruction at which it began, as that of a sample does. References, values and branches
//! have no beginnings: they share that time out among what the same code did in the burst. The same code is what the
//! thread runs right after the beginning, until it comes round, calls, returns, or has run [`MOST`] instructions; and
//! whenever it runs that again in the burst. What else the burst recorded has no part in its time: a function that
//! computes for a thousand instructions between two that wait for memory would get nearly all of it.

use sonde_event::{Class, Run};

/// Instructions of the code that a burst began in, at most, give or take the last superblock.
const MOST: u64 = 64;

/// The superblocks of the code that a burst began in.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Where the burst began, while more code may be found.
    start: Option<u64>,
    instructions: u64,
    superblocks: Vec<u32>,
}

impl Window {
    /// A burst begins there; none, if the time is not that of any code.
    pub fn restart(&mut self, pc: Option<u64>) {
        self.start = pc;
        self.instructions = 0;
        self.superblocks.clear();
    }

    /// Of these superblocks.
    #[cfg(test)]
    pub fn of(superblocks: &[u32]) -> Window {
        Window { superblocks: superblocks.to_vec(), ..Window::default() }
    }

    /// Whether more code may be found.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.start.is_some()
    }

    /// Whether a pass is through this code.
    #[inline]
    pub fn admits(&mut self, run: &Run<'_>) -> bool {
        if let Some(start) = self.start {
            self.grow(run, start);
        }
        self.has(run.path.superblock)
    }

    /// Whether a superblock is part of it, as far as it is known.
    #[inline]
    pub fn has(&self, superblock: u32) -> bool {
        self.superblocks.contains(&superblock)
    }

    fn grow(&mut self, run: &Run<'_>, start: u64) {
        let again = !self.superblocks.is_empty() && run.insns().iter().any(|insn| insn.pc == start);
        let leaves = |class: Class| matches!(class, Class::Call | Class::Return);
        let left = run.insns().iter().any(|insn| leaves(insn.class));
        if !self.has(run.path.superblock) {
            self.superblocks.push(run.path.superblock);
        }
        self.instructions += run.instructions();
        if again || left || self.instructions >= MOST {
            self.start = None;
        }
    }
}
