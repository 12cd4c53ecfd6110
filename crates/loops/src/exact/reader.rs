//! Follows the stream: which blocks each pass runs through, and how often.

mod ways;

use super::burst::Samples;
use super::config::{ExactConfig, Weight};
use super::finish;
use super::profile::{Doubts, LoopsProfile};
use super::rounds::Tallies;
use super::thread::{Kind, Ledger, Pending, Thread};
use crate::error::LoopsError;
use crate::graph::{Graph, Split};
use crate::natural::{Forest, NONE, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};
use sonde_event::{Begin, Catalog, Cause, End, Reader, Run, Signal, Superblock, Syscall};
use ways::ExitCount;

/// A part of [`finish`]'s input.
pub(super) struct Counted {
    pub exits: Vec<(u32, u64)>,
    /// Passes cut short: superblock, instructions, how often.
    pub partials: Vec<(u32, u16, u64)>,
}

/// Profiles loops exactly.
pub struct ExactReader {
    config: ExactConfig,
    graph: Graph,
    forest: Forest,
    tallies: Tallies,
    threads: Vec<Thread>,
    by_tid: FxHashMap<i32, u32>,
    free: Vec<u32>,
    last: (i32, u32),
    exits: Vec<ExitCount>,
    /// Empty unless bursts are what shares are shares of.
    samples: Samples,
    partials: FxHashMap<(u32, u16), u64>,
    /// Behind calls.
    return_sites: FxHashSet<u64>,
    instructions: u64,
    bursts: u64,
    /// Instructions of the shortest burst that used up its length: iterations are counted in so many of each, since
    /// slow code has more of the beginnings than of the checks that bursts are as long as (docs/design/loops.md).
    counted_insns: u64,
    /// Instructions at which the loops are to be looked for again; never, if nothing new was seen.
    look_at: u64,
    looked_at: u64,
    doubts: Doubts,
}

/// Instructions per block and altogether before new code is looked at.
const LOOK_PER_BLOCK: u64 = 256;
const LOOK_AFTER: u64 = 50_000;
/// The number of a system call that ends a signal handler.
const RT_SIGRETURN: u64 = 15;

impl ExactReader {
    /// A reader that has seen nothing.
    pub fn new(config: ExactConfig) -> Result<ExactReader, LoopsError> {
        config.check()?;
        Ok(ExactReader {
            config,
            graph: Graph::default(),
            forest: Forest::default(),
            tallies: Tallies::new(config.max_claims),
            threads: Vec::new(),
            by_tid: FxHashMap::default(),
            free: Vec::new(),
            last: (0, NONE),
            exits: Vec::new(),
            samples: Samples::default(),
            partials: FxHashMap::default(),
            return_sites: FxHashSet::default(),
            instructions: 0,
            bursts: 0,
            counted_insns: u64::MAX,
            look_at: u64::MAX,
            looked_at: 0,
            doubts: Doubts::default(),
        })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.graph.memory_bytes()
            + self.tallies.memory_bytes()
            + self.threads.iter().map(Thread::memory_bytes).sum::<usize>()
            + self.exits.capacity() * size_of::<ExitCount>()
            + self.forest.inner.capacity() * 8
            + self.samples.memory_bytes()
            + (self.partials.capacity() + self.return_sites.capacity()) * 17
    }

    fn thread(&mut self, tid: i32) -> Option<usize> {
        if self.last == (tid, self.last.1) && self.last.1 != NONE {
            return Some(self.last.1 as usize);
        }
        let index = match self.by_tid.get(&tid) {
            Some(index) => *index,
            None if self.by_tid.len() >= self.config.max_threads => return None,
            None => {
                let index = self.free.pop().unwrap_or_else(|| {
                    self.threads.push(Thread::new());
                    self.threads.len() as u32 - 1
                });
                self.by_tid.insert(tid, index);
                index
            }
        };
        self.last = (tid, index);
        Some(index as usize)
    }

    /// The thread and what it needs to leave blocks.
    fn parts(&mut self, thread: usize) -> (&mut Thread, Ledger<'_>) {
        let weighted = self.config.weight == Weight::Bursts;
        let ledger = Ledger { forest: &self.forest, tallies: &mut self.tallies, weighted };
        (&mut self.threads[thread], ledger)
    }

    /// Something new was seen: loops are looked for again after a while.
    fn renew(&mut self) {
        if self.look_at == u64::MAX {
            let pause = LOOK_AFTER + LOOK_PER_BLOCK * self.graph.nodes.len() as u64;
            self.look_at = self.looked_at.saturating_add(pause);
        }
    }

    fn look(&mut self) {
        self.forest = self.graph.analyse().0;
        for (tally, id) in self.tallies.of.iter_mut().zip(&self.forest.headed) {
            tally.heads = *id;
        }
        self.looked_at = self.instructions;
        self.look_at = u64::MAX;
    }

    #[cold]
    fn place(&mut self, index: u32, superblock: &Superblock) {
        let splits = self.graph.place(index, superblock);
        self.apply(&splits);
        self.renew();
    }

    /// Makes tallies for new blocks, in the order in which they were made, and cuts those that were cut.
    fn apply(&mut self, splits: &[Split]) {
        let mut cut_off = splits.iter().peekable();
        for node in self.tallies.of.len() as u32..self.graph.nodes.len() as u32 {
            let straight = self.graph.nodes[node as usize].straight;
            match cut_off.next_if(|s| s.upper == node) {
                Some(split) => self.tallies.split(split.lower, straight),
                None => self.tallies.add(straight),
            }
        }
        if self.forest.inner.is_empty() {
            self.forest.inner.resize(self.graph.nodes.len(), UNKNOWN);
        }
        self.forest.grow(self.graph.nodes.len(), splits.iter().map(|s| (s.lower, s.upper)));
        for split in splits {
            self.samples.split(split.lower, split.upper);
            self.threads.iter_mut().for_each(|thread| thread.apply(*split));
        }
    }

    fn count(&mut self, run: &Run<'_>) -> u32 {
        let exit = run.exit().unwrap_or(NONE);
        if exit == NONE {
            *self.partials.entry((run.path.superblock, run.path.insns)).or_default() += 1;
        } else {
            if self.exits.len() <= exit as usize {
                self.exits.resize(exit as usize + 1, ExitCount::default());
            }
            self.exits[exit as usize].count += 1;
        }
        self.instructions += run.instructions();
        exit
    }

    /// The blocks of a pass.
    #[inline]
    fn walk(&mut self, index: usize, run: &Run<'_>) {
        let thread = &mut self.threads[index];
        let weighted = self.config.weight == Weight::Bursts;
        let mut ledger = Ledger { forest: &self.forest, tallies: &mut self.tallies, weighted };
        let before = thread.insns;
        for step in self.graph.steps(run.path.superblock) {
            if step.first >= run.path.insns {
                break;
            }
            thread.insns = before + u64::from(step.first);
            thread.last_node = step.node;
            thread.visit(step.node, &mut ledger);
        }
        thread.insns = before + run.instructions();
    }

    /// Recording of a thread ends.
    fn cut(&mut self, index: usize) {
        let (thread, mut ledger) = self.parts(index);
        thread.cut(&mut ledger);
        let thread = &mut self.threads[index];
        thread.burst_start = thread.insns;
        self.samples.add(&mut thread.burst);
    }

    /// The burst that a thread is in weighs so many times what others do.
    pub fn weigh_burst(&mut self, tid: i32, weight: f64) {
        if let Some(index) = self.thread(tid) {
            self.threads[index].burst.weigh(weight - 1.0);
        }
    }

    /// The profile of all that was read; `catalog` is that of the stream.
    pub fn finish(mut self, catalog: &Catalog) -> LoopsProfile {
        self.look();
        for index in 0..self.threads.len() {
            self.cut(index);
        }
        let splits = self.graph.add_static(catalog);
        self.apply(&splits);
        self.doubts.replaced = self.graph.replaced;
        let weighted = self.config.weight == Weight::Bursts;
        let exits = self.exits.iter().enumerate().filter(|(_, e)| e.count > 0);
        let partials = self.partials.iter().map(|((superblock, insns), n)| (*superblock, *insns, *n));
        let counted = Counted {
            exits: exits.map(|(i, e)| (i as u32, e.count)).collect(),
            partials: partials.collect(),
        };
        let samples = weighted.then_some(&self.samples);
        let measured = finish::Measured { tallies: &self.tallies, samples };
        let (loops, irregular, misplaced) = finish::loops(&self.graph, &measured, &counted, catalog);
        self.doubts.unplaced += misplaced;
        LoopsProfile {
            loops,
            irregular,
            instructions: self.instructions,
            bursts: self.bursts,
            weight: samples.map_or(self.instructions as f64, Samples::weight),
            doubts: self.doubts,
        }
    }
}

impl Reader for ExactReader {
    fn begin(&mut self, begin: &Begin) {
        self.bursts += 1;
        if let Some(index) = self.thread(begin.tid) {
            self.cut(index);
            let began = begin.kernel.is_none().then_some(begin.pc);
            let sampled = self.config.weight == Weight::Bursts;
            self.threads[index].burst.begin(began.filter(|_| sampled));
        }
    }

    fn run(&mut self, run: &Run<'_>) {
        let Some(index) = self.thread(run.tid) else {
            self.doubts.beyond_threads += 1;
            return;
        };
        let superblock = run.path.superblock;
        if self.graph.steps(superblock).is_empty() {
            if run.superblock.insns.is_empty() {
                return;
            }
            if self.graph.nodes.len() >= self.config.max_blocks {
                self.doubts.beyond_blocks += 1;
                self.instructions += run.instructions();
                // The burst goes on: it is still one burst, of which these instructions are a part.
                let (thread, mut ledger) = self.parts(index);
                thread.cut(&mut ledger);
                thread.insns += run.instructions();
                return;
            }
            self.place(superblock, run.superblock);
        }
        let thread = &self.threads[index];
        if thread.pending != Pending::Nothing || thread.frames.is_empty() {
            self.arrive(index, run.superblock.pc);
        }
        self.threads[index].cut_at = None;
        let exit = self.count(run);
        self.walk(index, run);
        let thread = &mut self.threads[index];
        thread.last_pc = run.insns().last().map_or(0, |insn| insn.pc);
        if thread.insns - thread.burst_start >= self.counted_insns && !thread.burst.is_counted {
            thread.end_count();
        }
        if exit == NONE {
            self.threads[index].pending = Pending::Jump(NONE);
            self.threads[index].cut_at = Some(run.path.target);
        } else {
            self.depart(index, run, exit);
        }
        if self.threads[index].depth() > self.config.max_depth {
            self.doubts.overflows += 1;
            let (thread, mut ledger) = self.parts(index);
            thread.cut(&mut ledger);
        }
        if self.instructions >= self.look_at {
            self.look();
        }
    }

    fn end(&mut self, end: &End) {
        let Some(index) = self.thread(end.tid) else { return };
        let fresh = self.instructions - self.looked_at >= 16 * self.graph.nodes.len() as u64;
        if self.look_at != u64::MAX && (fresh || end.cause == Cause::Exit) {
            self.look();
        }
        let insns = self.threads[index].insns - self.threads[index].burst_start;
        self.cut(index);
        if end.cause == Cause::Checks && insns > 0 {
            self.counted_insns = self.counted_insns.min(insns);
        }
        if end.cause == Cause::Exit {
            self.by_tid.remove(&end.tid);
            self.free.push(index as u32);
            self.last = (0, NONE);
        }
    }

    fn syscall(&mut self, syscall: &Syscall) {
        let Some(index) = self.thread(syscall.tid).filter(|_| syscall.number == RT_SIGRETURN) else { return };
        let (thread, mut ledger) = self.parts(index);
        if let Some(at) = thread.frames.iter().rposition(|f| f.kind == Kind::Handler) {
            thread.unwind(at, &mut ledger);
            thread.pending = Pending::Nothing;
            thread.last_pc = 0;
        }
    }

    fn signal(&mut self, signal: &Signal) {
        let Some(index) = self.thread(signal.tid) else { return };
        if self.threads[index].frames.is_empty() {
            return;
        }
        self.arrive(index, signal.pc);
        self.threads[index].enter(Kind::Handler, 0, signal.pc, 0);
        self.threads[index].pending = Pending::Handler;
    }

    fn gap(&mut self) {
        self.doubts.gaps += 1;
        for index in 0..self.threads.len() {
            self.cut(index);
        }
    }
}
