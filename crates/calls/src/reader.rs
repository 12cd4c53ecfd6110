//! The reader: follows every thread, weighs bursts, keeps the counts.

use crate::contexts::{Contexts, ROOT};
use crate::kept::{Kept, Tally};
use crate::profile::{Backward, CallProfile, Invoked, Pair, Region};
use crate::steps::Steps;
use crate::thread::Thread;
use rustc_hash::FxHashMap;
use sonde_event::maps::Mapping;
use sonde_event::{Begin, End, Passes, Reader, Run, Signal, Syscall, Taken};

/// Bounds on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most contexts.
    pub contexts: usize,
    /// Most call pairs, and most functions.
    pub pairs: usize,
    /// Most passes of one burst that wait for its end; a longer burst is weighed in parts.
    pub passes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { contexts: 1 << 16, pairs: 1 << 16, passes: 1 << 18 }
    }
}

/// The system call by which a signal handler returns.
const SIGRETURN: u64 = 15;

/// What a thread did in a burst, until the burst's weight is known.
#[derive(Clone, Copy)]
enum Deed {
    Passed(u32),
    CutShort {
        pc: u64,
        insns: u32,
    },
    Interrupted,
    /// A handler ended; where the program went on.
    Resumed(u64),
}

impl Deed {
    /// The exit of a pass.
    fn exit(&self) -> Option<u32> {
        if let Deed::Passed(exit) = self { Some(*exit) } else { None }
    }
}

#[derive(Default)]
struct Burst {
    thread: Thread,
    deeds: Vec<Deed>,
    instructions: u64,
    /// What it stands for, if it is not what all do.
    weight: Option<u64>,
    /// The instruction that it began at, which has its time, until that is counted.
    began: Option<u64>,
    /// The same for the region that the instruction lies in.
    in_region: bool,
}

/// Follows calls and returns.
pub struct CallsReader {
    limits: Limits,
    /// What a burst stands for: the context and the region that it began in have all of it; calls and backward branches weigh
    /// the same share of it as one of the burst's instructions. None: every instruction weighs 1.
    burst_weight: Option<u64>,
    /// Bursts of all threads but the one that was read last.
    others: FxHashMap<i32, Burst>,
    current: Option<(i32, Burst)>,
    steps: Vec<Option<Box<Steps>>>,
    paths: Vec<Tally>,
    /// By exit: the instructions of a pass that only goes on where it is, which most do; 0 for others.
    straight: Vec<u16>,
    /// By the branch that ends a region: the time of bursts that began in it.
    sampled: FxHashMap<u64, u64>,
    kept: Kept,
    odd_bytes: usize,
}

impl CallsReader {
    /// Nothing seen yet. `burst_weight` is what each burst stands for, if bursts are to weigh the same.
    pub fn new(limits: Limits, burst_weight: Option<u64>) -> CallsReader {
        CallsReader {
            limits,
            burst_weight,
            others: FxHashMap::default(),
            current: None,
            steps: Vec::new(),
            paths: Vec::new(),
            straight: Vec::new(),
            sampled: FxHashMap::default(),
            kept: Kept::new(limits.contexts, limits.pairs, burst_weight.is_some()),
            odd_bytes: 0,
        }
    }

    /// What the burst stands for that a thread is in.
    pub fn weigh_burst(&mut self, tid: i32, weight: u64) {
        self.turn_to(tid).weight = Some(weight);
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        let bursts = self.others.values().chain(self.current.as_ref().map(|current| &current.1));
        let deeds: usize = bursts.map(|b| b.deeds.capacity() * size_of::<Deed>()).sum();
        deeds
            + self.kept.memory_bytes()
            + self.odd_bytes
            + self.steps.capacity() * size_of::<Option<Box<Steps>>>()
            + self.paths.capacity() * size_of::<Tally>()
            + self.straight.capacity() * 2
    }

    fn know(&mut self, exit: usize, run: &Run<'_>) {
        if exit >= self.steps.len() {
            self.steps.resize((exit + 1).next_power_of_two(), None);
            self.paths.resize(self.steps.len(), Tally::default());
            self.straight.resize(self.steps.len(), 0);
        }
        if self.steps[exit].is_none() {
            let steps = Steps::of(run.superblock, run.path, &mut self.kept.code);
            self.odd_bytes +=
                size_of::<Steps>() + size_of_val(&steps.branches[..]) + size_of_val(&steps.turns[..]);
            self.straight[exit] = if steps.is_straight() { run.path.insns } else { 0 };
            self.steps[exit] = Some(Box::new(steps));
        }
    }

    /// Makes the burst of a thread the current one.
    #[inline]
    fn turn_to(&mut self, tid: i32) -> &mut Burst {
        if self.current.as_ref().is_none_or(|current| current.0 != tid) {
            let burst = self.others.remove(&tid).unwrap_or_default();
            if let Some((older, burst)) = self.current.replace((tid, burst)) {
                self.others.insert(older, burst);
            }
        }
        &mut self.current.get_or_insert_with(|| (tid, Burst::default())).1
    }

    fn note(&mut self, tid: i32, deed: Deed, instructions: u64) {
        if self.burst_weight.is_none() {
            self.turn_to(tid);
            self.go_through(deed, 1);
            return self.make_room();
        }
        let burst = self.turn_to(tid);
        burst.instructions += instructions;
        burst.deeds.push(deed);
        if burst.deeds.len() >= self.limits.passes {
            self.kept.totals.split_bursts += 1;
            self.settle(tid);
        }
    }

    /// Passes by an exit, each of this weight.
    #[inline]
    fn count(&mut self, exit: u32, times: u64, weight: u64) {
        if let Some(taken) = self.paths.get_mut(exit as usize) {
            taken.count += times;
            taken.weight += times * weight;
        }
    }

    /// Where passes of the current thread led, each of this weight.
    fn follow(&mut self, exits: impl Iterator<Item = u32>, weight: u64) {
        let Some((_, Burst { thread, .. })) = &mut self.current else { return };
        // Instructions of passes that stayed in the context.
        let mut straight = 0;
        for exit in exits {
            let insns = self.straight.get(exit as usize).copied().unwrap_or(0);
            if insns != 0 && thread.goes_on() {
                straight += u64::from(insns);
                continue;
            }
            let Some(Some(steps)) = self.steps.get(exit as usize) else { continue };
            self.kept.contexts.executed(thread.context, std::mem::take(&mut straight), weight);
            self.kept.pass(thread, steps, weight);
        }
        self.kept.contexts.executed(thread.context, straight, weight);
    }

    /// What the current thread did.
    #[inline]
    fn go_through(&mut self, deed: Deed, weight: u64) {
        if let Deed::Passed(exit) = deed {
            self.count(exit, 1, weight);
            return self.follow(std::iter::once(exit), weight);
        }
        let Some((_, Burst { thread, .. })) = &mut self.current else { return };
        match deed {
            Deed::Passed(_) => {}
            Deed::CutShort { pc, insns } => self.kept.cut_short(thread, pc, insns, weight),
            Deed::Interrupted => thread.interrupt(),
            Deed::Resumed(pc) => {
                // A burst may have begun in the handler.
                if !thread.resume() {
                    self.kept.begin_around(thread, pc);
                }
            }
        }
    }

    /// Goes through what a thread did since the last time, now that it can be weighed.
    fn settle(&mut self, tid: i32) {
        let burst = self.turn_to(tid);
        let instructions = std::mem::take(&mut burst.instructions);
        let mut deeds = std::mem::take(&mut burst.deeds);
        let own = burst.weight;
        let time = self.burst_weight.map(|all| own.unwrap_or(all));
        let weight = time.map_or(1, |time| (time / instructions.max(1)).max(1));
        self.sample_region(&deeds, time);
        let mut rest = &deeds[..];
        while !rest.is_empty() {
            let passed = rest.iter().map_while(Deed::exit);
            let passes = passed.clone().count();
            passed.clone().for_each(|exit| self.count(exit, 1, weight));
            self.follow(passed, weight);
            if let Some(deed) = rest.get(passes) {
                self.go_through(*deed, weight);
            }
            rest = rest.get(passes + 1..).unwrap_or(&[]);
        }
        deeds.clear();
        self.turn_to(tid).deeds = deeds;
        self.make_room();
    }

    /// Drops light contexts where heavier ones may come.
    #[inline]
    fn make_room(&mut self) {
        if self.kept.contexts.wants_room() {
            let number = self.kept.contexts.make_room();
            let current = self.current.as_mut().map(|(_, burst)| burst);
            let contexts = &mut self.kept.contexts;
            for burst in self.others.values_mut().chain(current) {
                burst.thread.renumber(&number);
                burst
                    .thread
                    .revive(Contexts::is_beyond, |from, function| contexts.enter(from, function, false));
            }
        }
    }

    /// The first branch behind the beginning of a burst ends the region that has the burst's time.
    fn sample_region(&mut self, deeds: &[Deed], time: Option<u64>) {
        let Some((_, burst)) = &mut self.current else { return };
        let Some(time) = time.filter(|_| burst.in_region) else { return };
        let first =
            |exit: u32| self.steps.get(exit as usize)?.as_ref()?.branches.first().map(|branch| branch.pc);
        if let Some(branch) = deeds.iter().filter_map(Deed::exit).find_map(first) {
            burst.in_region = false;
            *self.sampled.entry(branch).or_default() += time;
        }
    }

    /// The burst of a thread is over: the context that it began in has its time. Who called that shows when it returns.
    fn close(&mut self, tid: i32) {
        self.settle(tid);
        let Some(all) = self.burst_weight else { return };
        let burst = self.turn_to(tid);
        let time = burst.weight.unwrap_or(all);
        let (Some(pc), beyond) = (burst.began.take(), burst.thread.take_beyond()) else { return };
        let mut context = ROOT;
        for pc in beyond.into_iter().rev().chain([pc]) {
            let function = self.kept.code.function(pc);
            context = self.kept.contexts.enter(context, function, true);
        }
        self.kept.contexts.sampled(context, time);
        self.kept.totals.weight += time;
    }

    fn close_all(&mut self) {
        let current = self.current.as_ref().map(|current| current.0);
        let threads: Vec<i32> = self.others.keys().copied().chain(current).collect();
        threads.into_iter().for_each(|tid| self.close(tid));
    }

    /// What was seen.
    pub fn finish(mut self) -> CallProfile {
        self.close_all();
        let weighted = self.burst_weight.is_some();
        let mut profile = self.kept.totals;
        let mut regions: FxHashMap<u64, Region> = FxHashMap::default();
        let mut backward: FxHashMap<u64, Backward> = FxHashMap::default();
        for (steps, taken) in self.steps.iter().zip(&self.paths) {
            let Some(steps) = steps else { continue };
            profile.instructions += taken.count * u64::from(steps.insns);
            profile.weight += if weighted { 0 } else { taken.weight * u64::from(steps.insns) };
            for branch in &steps.branches {
                let region = regions.entry(branch.pc).or_insert_with(|| Region::at(branch.pc));
                region.count += taken.count;
                region.instructions += taken.count * u64::from(branch.insns);
                region.weight += if weighted { 0 } else { taken.weight * u64::from(branch.insns) };
                if branch.backward {
                    let back = backward.entry(branch.pc).or_insert_with(|| Backward::at(branch.pc));
                    back.count += taken.count;
                    back.weight += taken.weight;
                }
            }
        }
        for (pc, carried) in &self.kept.carried {
            let region = regions.entry(*pc).or_insert_with(|| Region::at(*pc));
            region.instructions += carried.count;
            region.weight += if weighted { 0 } else { carried.weight };
        }
        for (pc, time) in &self.sampled {
            regions.entry(*pc).or_insert_with(|| Region::at(*pc)).weight += time;
        }
        profile.regions = regions.into_values().filter(|r| r.instructions > 0).collect();
        profile.backward = backward.into_values().filter(|b| b.count > 0).collect();
        let invoked =
            |(entry, t): (&u64, &Tally)| Invoked { entry: *entry, count: t.count, weight: t.weight };
        profile.functions = self.kept.functions.iter().map(invoked).collect();
        let pair = |(key, t): (&(u64, u64), &Tally)| Pair {
            site: key.0,
            callee: key.1,
            count: t.count,
            weight: t.weight,
        };
        profile.pairs = self.kept.pairs.iter().map(pair).collect();
        profile.not_kept.contexts = self.kept.contexts.not_kept;
        profile.contexts = self.kept.contexts.into_nodes();
        profile.sort();
        profile
    }
}

impl Reader for CallsReader {
    fn begin(&mut self, begin: &Begin) {
        self.close(begin.tid);
        let function = self.kept.code.function(begin.pc);
        let context = self.kept.contexts.enter(ROOT, function, true);
        let burst = self.turn_to(begin.tid);
        (burst.thread, burst.weight) = (Thread::at(context, function), None);
        burst.began = begin.kernel.is_none().then_some(begin.pc);
        burst.in_region = burst.began.is_some();
        self.kept.totals.bursts += 1;
    }

    fn run(&mut self, run: &Run<'_>) {
        match run.exit() {
            Some(exit) => {
                self.know(exit as usize, run);
                self.note(run.tid, Deed::Passed(exit), run.instructions());
            }
            None => {
                let (pc, insns) = (run.superblock.pc, run.path.insns.into());
                self.note(run.tid, Deed::CutShort { pc, insns }, run.instructions());
            }
        }
    }

    fn passes(&mut self, passes: &Passes<'_>) {
        for taken in passes.taken() {
            if self.steps.get(taken.exit as usize).is_none_or(Option::is_none)
                && let Some(run) = passes.run(taken.first as usize)
            {
                self.know(taken.exit as usize, &run);
            }
        }
        let exits = passes.list().iter().map(|pass| pass.exit);
        let weighted = self.burst_weight.is_some();
        let burst = self.turn_to(passes.tid());
        if !weighted {
            passes.taken().iter().for_each(|taken| self.count(taken.exit, taken.times.into(), 1));
            self.follow(exits, 1);
            return self.make_room();
        }
        let instructions = |taken: &Taken| u64::from(taken.times) * u64::from(passes.size(taken.exit).insns);
        burst.instructions += passes.taken().iter().map(instructions).sum::<u64>();
        burst.deeds.extend(exits.map(Deed::Passed));
        if burst.deeds.len() >= self.limits.passes {
            self.kept.totals.split_bursts += 1;
            self.settle(passes.tid());
        }
    }

    fn end(&mut self, end: &End) {
        self.close(end.tid);
        // A thread that is gone must not be kept for ever.
        self.current = None;
    }

    fn syscall(&mut self, syscall: &Syscall) {
        if syscall.number == SIGRETURN {
            self.note(syscall.tid, Deed::Resumed(syscall.pc), 0);
        }
    }

    fn signal(&mut self, signal: &Signal) {
        self.note(signal.tid, Deed::Interrupted, 0);
    }

    fn mapping(&mut self, mapping: &Mapping) {
        if self.kept.code.mapping(mapping) {
            self.kept.forget_targets();
        }
    }

    fn gap(&mut self) {
        self.close_all();
        self.others.clear();
        self.current = None;
        self.kept.totals.gaps += 1;
    }
}
