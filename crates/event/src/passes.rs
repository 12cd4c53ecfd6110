//! Many passes at once: what a reader gets that can look at them together.

use crate::catalog::{Catalog, PathSize};
use crate::reader::Run;

/// A pass in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassAt {
    /// The exit taken.
    pub exit: u32,
    /// Where its record begins.
    pub at: u32,
}

/// How often some passes took an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The exit.
    pub exit: u32,
    /// How many of the passes took it.
    pub times: u32,
    /// The first of them.
    pub first: u32,
}

/// Passes of one thread that follow each other without anything between.
#[derive(Clone, Copy)]
pub struct Passes<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) words: &'a [u64],
    pub(crate) list: &'a [PassAt],
    pub(crate) taken: &'a [Taken],
    pub(crate) tid: i32,
    pub(crate) fs_base: u64,
    /// Where the last one led.
    pub(crate) next_pc: Option<u64>,
}

impl<'a> Passes<'a> {
    /// The passes.
    #[inline]
    pub fn list(&self) -> &'a [PassAt] {
        self.list
    }

    /// The exits that they took, each once, with how often: what only depends on the exit is said by these alone. There are far
    /// fewer of them than passes.
    #[inline]
    pub fn taken(&self) -> &'a [Taken] {
        self.taken
    }

    /// The log that they are in; there may be more in it.
    #[inline]
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Where the record behind the last one begins.
    pub fn end(&self) -> usize {
        self.list.last().map_or(0, |pass| pass.at as usize + usize::from(self.size(pass.exit).words))
    }

    /// The thread.
    #[inline]
    pub fn tid(&self) -> i32 {
        self.tid
    }

    /// Its fs base.
    #[inline]
    pub fn fs_base(&self) -> u64 {
        self.fs_base
    }

    /// The size of a pass by an exit.
    #[inline]
    pub fn size(&self, exit: u32) -> PathSize {
        self.catalog.size(exit)
    }

    /// The superblock that an exit is of.
    #[inline]
    pub fn superblock(&self, exit: u32) -> Option<u32> {
        self.catalog.path(exit).map(|path| path.superblock)
    }

    /// Where a pass led, if that is known yet; passes are counted from 0.
    #[inline]
    pub fn next_pc(&self, index: usize) -> Option<u64> {
        let path = self.catalog.path(self.list.get(index)?.exit)?;
        match (path.target, self.list.get(index + 1)) {
            (0, Some(next)) => Some(self.catalog.superblock_of_exit(next.exit)?.pc),
            (0, None) => self.next_pc,
            (target, _) => Some(target),
        }
    }

    /// One pass by itself.
    #[inline]
    pub fn run(&self, index: usize) -> Option<Run<'a>> {
        let pass = self.list.get(index)?;
        let path = self.catalog.path(pass.exit)?;
        let at = pass.at as usize;
        Some(Run {
            superblock: self.catalog.superblock(path.superblock)?,
            path,
            words: self.words.get(at..at + usize::from(path.words))?,
            tid: self.tid,
            fs_base: self.fs_base,
            next_pc: self.next_pc(index),
        })
    }

    /// One after the other.
    pub fn runs(&self) -> impl Iterator<Item = Run<'a>> + '_ {
        (0..self.list.len()).filter_map(|index| self.run(index))
    }
}
