//! How often each load ran, for one addition per pass: paths are counted, and taken apart into loads at the end.

use crate::hash::PcMap;
use crate::loads::{Class, Kinds};
use sonde_event::{Catalog, Run, Superblock};
use sonde_x64::memory::Value;
use std::collections::BTreeMap;

/// Counts passes by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathCounts {
    /// By exit number.
    whole: Vec<u64>,
    /// Passes that were cut short: by superblock and references made.
    cut: BTreeMap<(u32, u16), u64>,
}

/// Executions of one load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Executed {
    pub count: u64,
    /// Of them, those that were masked at the source.
    pub masked: u64,
    pub size: u16,
}

/// What all passes come to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Executions {
    pub by_pc: PcMap<Executed>,
    pub loads: u64,
    pub profiled: u64,
    pub returns: u64,
    pub without_value: u64,
    pub masked: u64,
    /// Passes of superblocks that the catalog does not have.
    pub unplaced: u64,
}

impl PathCounts {
    #[inline]
    pub fn add(&mut self, run: &Run<'_>) {
        match run.exit() {
            Some(exit) => {
                let exit = exit as usize;
                if self.whole.len() <= exit {
                    self.whole.resize(exit + 1, 0);
                }
                self.whole[exit] += 1;
            }
            None => *self.cut.entry((run.path.superblock, run.path.refs)).or_insert(0) += 1,
        }
    }

    pub fn memory_bytes(&self) -> usize {
        // A node of a B-tree is at least half full.
        self.whole.capacity() * 8 + self.cut.len() * 2 * (8 + size_of::<(u32, u16)>())
    }

    /// Takes the paths apart.
    pub fn executions(&self, catalog: &Catalog, kinds: Kinds) -> Executions {
        let mut all = Executions::default();
        for (exit, count) in self.whole.iter().enumerate().filter(|(_, count)| **count > 0) {
            match catalog.path(exit as u32).and_then(|p| Some((catalog.superblock(p.superblock)?, p.refs))) {
                Some((superblock, refs)) => all.add(superblock, refs, *count, kinds),
                None => all.unplaced += count,
            }
        }
        for ((superblock, refs), count) in &self.cut {
            match catalog.superblock(*superblock) {
                Some(superblock) => all.add(superblock, *refs, *count, kinds),
                None => all.unplaced += count,
            }
        }
        all
    }
}

impl Executions {
    fn add(&mut self, superblock: &Superblock, refs: u16, count: u64, kinds: Kinds) {
        for reference in superblock.refs.iter().take(refs as usize) {
            let class = kinds.class(reference);
            self.loads += if class == Class::Other { 0 } else { count };
            match class {
                Class::Other => {}
                Class::Return => self.returns += count,
                Class::Unknown => self.without_value += count,
                Class::Profiled => {
                    self.profiled += count;
                    let pc = superblock.insns.get(reference.insn as usize).map_or(0, |insn| insn.pc);
                    let load = self.by_pc.entry(pc).or_default();
                    load.count += count;
                    let masked = if reference.value == Value::Unrecorded { count } else { 0 };
                    load.masked += masked;
                    self.masked += masked;
                    load.size = load.size.max(reference.size);
                }
            }
        }
    }
}
