//! Follows the stream: which blocks each pass runs through, what is called, returned from, jumped to.

use super::finish;
use super::profile::{Doubts, LoopsProfile};
use super::rounds::Tallies;
use super::thread::{Kind, Ledger, Pending, Thread};
use crate::error::LoopsError;
use crate::graph::{Graph, Split};
use crate::natural::{Forest, NONE, UNKNOWN};
use rustc_hash::{FxHashMap, FxHashSet};
use sonde_event::{Begin, Catalog, Cause, End, ExitKind, Reader, Run, Signal, Superblock, Syscall};

/// What a share is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Instructions recorded: right where everything is recorded.
    #[default]
    Instructions,
    /// Bursts: each burst weighs 1, however many instructions it has, since it stands for the same CPU time.
    Bursts,
}

/// Limits and choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactConfig {
    /// What a share is a share of.
    pub weight: Weight,
    /// Most blocks of code kept (each about 200 bytes).
    pub max_blocks: usize,
    /// Most activations and blocks on one thread's way.
    pub max_depth: usize,
    /// Most threads followed at once.
    pub max_threads: usize,
    /// Most executions of different kinds, in activations that bursts begin or end in, that are kept until all code is
    /// known (each about 80 bytes).
    pub max_claims: usize,
}

impl Default for ExactConfig {
    fn default() -> ExactConfig {
        ExactConfig {
            weight: Weight::Instructions,
            max_blocks: 1 << 21,
            max_depth: 1 << 20,
            max_threads: 4096,
            max_claims: 1 << 18,
        }
    }
}

/// What a jump is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    #[default]
    Plain,
    /// To the entry of another function.
    Tail,
    /// Behind a call in another function: longjmp.
    Unwind,
}

/// Counts of one exit.
#[derive(Clone, Copy, Debug, Default)]
struct ExitCount {
    count: u64,
    /// Where it went last, and what that was.
    to: u64,
    verdict: Verdict,
}

/// A part of [`finish`]'s input.
pub(super) struct Counted {
    pub exits: Vec<(u32, u64, f64)>,
    /// Passes cut short: superblock, instructions, how often, weight.
    pub partials: Vec<(u32, u16, u64, f64)>,
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
    exit_weights: FxHashMap<u64, f64>,
    inclusive_weights: FxHashMap<u32, f64>,
    called_weights: FxHashMap<u32, f64>,
    partials: FxHashMap<(u32, u16), u64>,
    /// Behind calls.
    return_sites: FxHashSet<u64>,
    instructions: u64,
    bursts: u64,
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
const PARTIAL: u64 = 1 << 63;

impl ExactReader {
    /// A reader that has seen nothing.
    pub fn new(config: ExactConfig) -> Result<ExactReader, LoopsError> {
        let least = |what, value: usize, least: usize| {
            if value < least { Err(LoopsError::TooSmall { what, value, least }) } else { Ok(()) }
        };
        least("max_blocks", config.max_blocks, 64)?;
        least("max_depth", config.max_depth, 64)?;
        least("max_threads", config.max_threads, 1)?;
        least("max_claims", config.max_claims, 64)?;
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
            exit_weights: FxHashMap::default(),
            inclusive_weights: FxHashMap::default(),
            called_weights: FxHashMap::default(),
            partials: FxHashMap::default(),
            return_sites: FxHashSet::default(),
            instructions: 0,
            bursts: 0,
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
            + (self.exit_weights.capacity() + self.inclusive_weights.capacity()) * 17
            + self.called_weights.capacity() * 17
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
            self.threads.iter_mut().for_each(|thread| thread.apply(*split));
        }
    }

    /// The thread goes on at `pc`, where its last pass may have left something open.
    #[inline]
    fn arrive(&mut self, thread: usize, pc: u64) {
        let pending = std::mem::replace(&mut self.threads[thread].pending, Pending::Nothing);
        match pending {
            Pending::Nothing => {}
            Pending::Jump(exit) => self.jumped(thread, exit, pc),
            Pending::Call { back, slot } => {
                self.called(pc);
                self.threads[thread].enter(Kind::Called, pc, back, slot);
            }
            Pending::Return { slot } => self.returned(thread, pc, slot),
            Pending::Handler => {
                self.called(pc);
                if let Some(frame) = self.threads[thread].frames.last_mut() {
                    frame.entry = pc;
                }
            }
        }
        if self.threads[thread].frames.is_empty() {
            self.open(thread, pc);
        }
    }

    fn called(&mut self, pc: u64) {
        if self.graph.entries.insert(pc) {
            self.renew();
        }
    }

    /// Begins an activation in the middle.
    fn open(&mut self, thread: usize, pc: u64) {
        let around = self.graph.find(pc).and_then(|node| self.forest.nest(node));
        let opening = around.as_deref().and_then(|a| Some((self.tallies.claims.open(pc, a)?, a)));
        self.doubts.unplaced += u64::from(opening.is_none());
        self.threads[thread].enter_open(self.graph.entry_of(pc), opening, self.graph.nodes.len());
    }

    fn jumped(&mut self, thread: usize, exit: u32, pc: u64) {
        let known = self.exits.get(exit as usize).copied().filter(|e| e.to == pc);
        let verdict = match known {
            Some(exit) => exit.verdict,
            None => {
                let from = self.threads[thread].last_pc;
                let verdict = self.judge(thread, pc);
                // What leaves the activation is no way within the function.
                if verdict == Verdict::Plain && from != 0 && self.graph.jumps.insert((from, pc)) {
                    self.renew();
                }
                if let Some(exit) = self.exits.get_mut(exit as usize) {
                    (exit.to, exit.verdict) = (pc, verdict);
                }
                verdict
            }
        };
        match verdict {
            Verdict::Plain => {}
            Verdict::Tail => self.tail_call(thread, pc),
            Verdict::Unwind => self.long_jump(thread, pc),
        }
    }

    fn judge(&self, thread: usize, pc: u64) -> Verdict {
        let Some(frame) = self.threads[thread].frames.last() else { return Verdict::Plain };
        let function = self.graph.entry_of(pc);
        let from = self.graph.entry_of(self.threads[thread].last_pc);
        // Where recording began in the middle, the entry is a guess, and going there can be a loop.
        let round = from == pc && !matches!(frame.kind, Kind::Called | Kind::Handler);
        if self.graph.entries.contains(&pc) && frame.entry != pc && !round {
            return Verdict::Tail;
        }
        let same = frame.entry == function || from == function;
        if !same && self.return_sites.contains(&pc) { Verdict::Unwind } else { Verdict::Plain }
    }

    fn tail_call(&mut self, thread: usize, pc: u64) {
        let (thread, mut ledger) = self.parts(thread);
        if thread.frames.last().is_some_and(|f| f.entry != pc) {
            thread.restart(pc, &mut ledger);
        }
    }

    fn long_jump(&mut self, thread: usize, pc: u64) {
        let function = self.graph.entry_of(pc);
        let frames = &self.threads[thread].frames;
        let outer = &frames[..frames.len().saturating_sub(1)];
        let keep = outer.iter().rposition(|f| f.entry == function).map_or(0, |i| i + 1);
        self.doubts.unwound += (frames.len() - keep) as u64;
        let (thread, mut ledger) = self.parts(thread);
        thread.unwind(keep, &mut ledger);
    }

    #[inline]
    fn returned(&mut self, index: usize, pc: u64, slot: u64) {
        let (thread, mut ledger) = self.parts(index);
        let Some(top) = thread.frames.last() else { return };
        let matches = |f: &super::thread::Frame| {
            f.kind == Kind::Called && f.back == pc && (slot == 0 || f.slot == 0 || f.slot == slot)
        };
        if matches(top) {
            return thread.unwind(thread.frames.len() - 1, &mut ledger);
        }
        if top.kind == Kind::Handler {
            // To the code that makes the system call which ends the handler.
            return thread.restart(pc, &mut ledger);
        }
        match thread.frames.iter().rposition(matches) {
            Some(at) => {
                let unwound = thread.frames.len() - at - 1;
                thread.unwind(at, &mut ledger);
                self.doubts.unwound += unwound as u64;
            }
            None => self.returned_elsewhere(index, pc, slot),
        }
    }

    /// A return that no recorded call belongs to: to the caller of where recording began, to an exception's landing
    /// pad, used as a jump, or onto another stack.
    #[cold]
    fn returned_elsewhere(&mut self, index: usize, pc: u64, slot: u64) {
        let function = self.graph.entry_of(pc);
        let frames = &self.threads[index].frames;
        let alive = |f: &super::thread::Frame| slot == 0 || f.slot == 0 || f.slot > slot;
        let landing = frames.iter().rposition(|f| function != 0 && f.entry == function && alive(f));
        let is_entry = self.graph.entries.contains(&pc);
        let count = frames.len();
        if let Some(at) = landing.filter(|at| at + 1 < count) {
            self.doubts.unwound += (count - at - 1) as u64;
            let (thread, mut ledger) = self.parts(index);
            return thread.unwind(at + 1, &mut ledger);
        }
        if is_entry && count > 1 {
            return self.tail_call(index, pc);
        }
        let beyond = count == 1;
        self.doubts.lost += u64::from(!beyond);
        let (thread, mut ledger) = self.parts(index);
        if beyond { thread.unwind(0, &mut ledger) } else { thread.cut(&mut ledger) }
    }

    /// What the way out of a pass does.
    #[inline]
    fn depart(&mut self, index: usize, run: &Run<'_>, exit: u32) {
        let target = run.path.target;
        let pending = match run.path.kind {
            ExitKind::Taken | ExitKind::Jump | ExitKind::Fall => {
                let known = self.exits[exit as usize];
                if known.to != target {
                    self.jumped(index, exit, target);
                } else if known.verdict == Verdict::Tail {
                    self.tail_call(index, target);
                }
                Pending::Nothing
            }
            ExitKind::Call => {
                let (back, slot) = self.call_site(index, run, exit);
                if self.exits[exit as usize].count == 1 {
                    self.called(target);
                }
                self.threads[index].enter(Kind::Called, target, back, slot);
                Pending::Nothing
            }
            ExitKind::IndirectCall => {
                let (back, slot) = self.call_site(index, run, exit);
                Pending::Call { back, slot }
            }
            ExitKind::Return => Pending::Return { slot: last_address(run) },
            ExitKind::IndirectJump | ExitKind::Syscall | ExitKind::Native => Pending::Jump(exit),
        };
        self.threads[index].pending = pending;
    }

    #[inline]
    fn call_site(&mut self, index: usize, run: &Run<'_>, exit: u32) -> (u64, u64) {
        let back = run.insns().last().map_or(0, |insn| insn.pc.wrapping_add(u64::from(insn.len)));
        if self.exits[exit as usize].count == 1 {
            self.return_sites.insert(back);
        }
        if self.threads[index].calls_again() {
            self.tallies.of[self.threads[index].last_node as usize].recursive = true;
        }
        (back, last_address(run))
    }

    fn count(&mut self, index: usize, run: &Run<'_>) -> u32 {
        let exit = run.exit().unwrap_or(NONE);
        if exit == NONE {
            *self.partials.entry((run.path.superblock, run.path.insns)).or_default() += 1;
        } else {
            if self.exits.len() <= exit as usize {
                self.exits.resize(exit as usize + 1, ExitCount::default());
            }
            self.exits[exit as usize].count += 1;
        }
        if self.config.weight == Weight::Bursts {
            let partial = PARTIAL | u64::from(run.path.superblock) << 16 | u64::from(run.path.insns);
            let key = if exit == NONE { partial } else { u64::from(exit) };
            *self.threads[index].burst_passes.entry(key).or_default() += 1;
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
        let insns = thread.insns - thread.burst_start;
        thread.burst_start = thread.insns;
        if self.config.weight == Weight::Instructions || insns == 0 {
            return;
        }
        let thread = &mut self.threads[index];
        for (key, n) in thread.burst_passes.drain() {
            *self.exit_weights.entry(key).or_default() += f64::from(n) / insns as f64;
        }
        for (node, n) in thread.burst_inclusive.drain() {
            *self.inclusive_weights.entry(node).or_default() += n as f64 / insns as f64;
        }
        for (node, n) in thread.burst_called.drain() {
            *self.called_weights.entry(node).or_default() += n as f64 / insns as f64;
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
        let weight = |key: u64, n: u64| {
            if weighted { self.exit_weights.get(&key).copied().unwrap_or(0.0) } else { n as f64 }
        };
        let exits = self.exits.iter().enumerate().filter(|(_, e)| e.count > 0);
        let mut partials: Vec<(u32, u16, u64, f64)> = Vec::new();
        for ((superblock, insns), n) in &self.partials {
            let key = PARTIAL | u64::from(*superblock) << 16 | u64::from(*insns);
            partials.push((*superblock, *insns, *n, weight(key, *n)));
        }
        // Sums of floating-point numbers depend on the order.
        partials.sort_unstable_by_key(|p| (p.0, p.1));
        let counted = Counted {
            exits: exits.map(|(i, e)| (i as u32, e.count, weight(i as u64, e.count))).collect(),
            partials,
        };
        let of = |weights: &FxHashMap<u32, f64>, node: u32, insns: u64| {
            if weighted { weights.get(&node).copied().unwrap_or(0.0) } else { insns as f64 }
        };
        let inclusive = |node: u32| {
            let insns = self.tallies.inclusive[node as usize];
            (insns, of(&self.inclusive_weights, node, insns))
        };
        let called = |node: u32| {
            let insns = self.tallies.called[node as usize];
            (insns, of(&self.called_weights, node, insns))
        };
        let measured = finish::Measured { tallies: &self.tallies, inclusive: &inclusive, called: &called };
        let (loops, irregular, misplaced) = finish::loops(&self.graph, &measured, &counted, catalog);
        self.doubts.unplaced += misplaced;
        LoopsProfile {
            loops,
            irregular,
            instructions: self.instructions,
            bursts: self.bursts,
            weight: if weighted { self.bursts as f64 } else { self.instructions as f64 },
            doubts: self.doubts,
        }
    }
}

/// The address of the last reference: where a call stores its return address, or a return takes it from.
#[inline]
fn last_address(run: &Run<'_>) -> u64 {
    let last = (run.path.refs as usize).checked_sub(1);
    last.and_then(|i| run.references().nth(i)).and_then(|r| r.address).unwrap_or(0)
}

impl Reader for ExactReader {
    fn begin(&mut self, begin: &Begin) {
        self.bursts += 1;
        if let Some(index) = self.thread(begin.tid) {
            self.cut(index);
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
        let exit = self.count(index, run);
        self.walk(index, run);
        self.threads[index].last_pc = run.insns().last().map_or(0, |insn| insn.pc);
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
        self.cut(index);
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
