//! DAProf beside a stream: per thread a clock, a FIFO and a cache.

use super::cache::ProfileCache;
use super::config::{Calls, DaprofConfig};
use super::fifo::Fifo;
use super::profile::{DaprofLoop, DaprofProfile};
use crate::branch::{Branch, short_backward};
use crate::calls::CallStack;
use crate::error::LoopsError;
use rustc_hash::FxHashMap;
use sonde_event::{Begin, End, Reader, Run};

/// A profiler.
struct Unit {
    clock: u64,
    fifo: Fifo<(Branch, u32)>,
    cache: ProfileCache,
    calls: CallStack,
}

impl Unit {
    fn new(config: DaprofConfig) -> Unit {
        Unit {
            clock: 0,
            fifo: Fifo::new(config.fifo, config.clocks_per_branch),
            cache: ProfileCache::new(config),
            calls: CallStack::default(),
        }
    }

    fn flush(&mut self) {
        let cache = &mut self.cache;
        self.fifo.flush(|(branch, depth)| cache.branch(branch, depth));
    }

    /// Recording is cut.
    fn cut(&mut self) {
        self.flush();
        self.cache.cut();
        self.calls.clear();
    }
}

/// Profiles loops as DAProf does.
pub struct DaprofReader {
    config: DaprofConfig,
    units: Vec<Unit>,
    by_tid: FxHashMap<i32, usize>,
    last: Option<(i32, usize)>,
    branches: u64,
    beyond_threads: u64,
    instructions: u64,
}

impl DaprofReader {
    /// A reader that has seen nothing.
    pub fn new(config: DaprofConfig) -> Result<DaprofReader, LoopsError> {
        config.validate()?;
        Ok(DaprofReader {
            config,
            units: Vec::new(),
            by_tid: FxHashMap::default(),
            last: None,
            branches: 0,
            beyond_threads: 0,
            instructions: 0,
        })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        let entries = self.config.entries * size_of::<super::cache::Entry>();
        let fifo = self.config.fifo * size_of::<(Branch, u32)>();
        let calls: usize = self.units.iter().map(|u| u.calls.memory_bytes()).sum();
        self.units.capacity() * (size_of::<Unit>() + entries + fifo) + calls + self.by_tid.capacity() * 13
    }

    #[inline]
    fn unit(&mut self, tid: i32) -> Option<&mut Unit> {
        let tid = if self.config.per_thread { tid } else { 0 };
        let index = match self.last {
            Some((last, index)) if last == tid => index,
            _ => self.other_unit(tid)?,
        };
        self.units.get_mut(index)
    }

    fn other_unit(&mut self, tid: i32) -> Option<usize> {
        let index = match self.by_tid.get(&tid) {
            Some(index) => *index,
            None if self.units.len() >= self.config.max_threads => return None,
            None => {
                self.units.push(Unit::new(self.config));
                self.by_tid.insert(tid, self.units.len() - 1);
                self.units.len() - 1
            }
        };
        self.last = Some((tid, index));
        Some(index)
    }

    /// What is in the caches, those of all threads together.
    pub fn finish(mut self) -> DaprofProfile {
        let mut profile = DaprofProfile {
            branches: self.branches,
            beyond_threads: self.beyond_threads,
            instructions: self.instructions,
            ..DaprofProfile::default()
        };
        for unit in &mut self.units {
            unit.flush();
            unit.cache.conclude();
            profile.dropped += unit.fifo.dropped;
            profile.replaced += unit.cache.replaced;
            profile.halvings = profile.halvings.max(unit.cache.halvings);
            profile.aliased += unit.cache.aliased;
            profile.cut += unit.cache.cut;
            let valid = unit.cache.entries().iter().filter(|e| e.valid);
            profile.unite(valid.map(|e| DaprofLoop {
                branch: e.pc,
                distance: e.distance,
                offset: e.offset,
                executions: e.executions.into(),
                average: e.average(),
            }));
        }
        profile
    }
}

impl Reader for DaprofReader {
    fn begin(&mut self, begin: &Begin) {
        if let Some(unit) = self.unit(begin.tid) {
            unit.cut();
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        self.instructions += run.instructions();
        let (limit, follow) = (self.config.distance, self.config.calls == Calls::Followed);
        let Some(unit) = self.unit(run.tid) else {
            self.beyond_threads += 1;
            return;
        };
        unit.clock += run.instructions();
        if follow {
            unit.calls.arrive(run.superblock.pc);
        }
        if let Some(branch) = short_backward(run, limit) {
            let Unit { fifo, cache, .. } = unit;
            fifo.drain(unit.clock, |(branch, depth)| cache.branch(branch, depth));
            unit.fifo.push((branch, unit.calls.depth()));
            self.branches += 1;
        } else if follow {
            unit.calls.depart(run);
        }
    }

    fn end(&mut self, end: &End) {
        if let Some(unit) = self.unit(end.tid) {
            // The next burst begins elsewhere; the end of the program is the end of its loops.
            if end.cause != sonde_event::Cause::Exit {
                unit.cut();
            }
        }
    }

    fn gap(&mut self) {
        self.units.iter_mut().for_each(Unit::cut);
    }
}
