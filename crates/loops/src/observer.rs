//! What an observer of backward branches would report without the limits of hardware: all loops, exact averages, calls
//! followed. Between it and DAProf lies what small caches and narrow fields cost; between it and natural loops what
//! backward branches do not tell.

use crate::branch::{Branch, short_backward};
use crate::calls::CallStack;
use crate::daprof::MAX_CURRENT;
use rustc_hash::FxHashMap;
use sonde_event::{Begin, Cause, End, Reader, Run};

/// Most branches kept; what is beyond is counted.
const MOST_LOOPS: usize = 1 << 20;
/// Most loops that a thread can be in; deeper recursion gives up the outermost.
const MOST_ACTIVE: usize = 1 << 12;

/// A loop as its backward branch shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedLoop {
    /// Pc of the branch.
    pub branch: u64,
    /// Bytes from its target to it.
    pub distance: u32,
    /// Executions.
    pub executions: u64,
    /// Times taken.
    pub iterations: u64,
    /// The same with at most 1023 per execution, as 10 bits hold.
    pub in_ten_bits: u64,
}

impl ObservedLoop {
    /// Iterations per execution.
    pub fn average(&self) -> f64 {
        self.iterations as f64 / self.executions.max(1) as f64
    }

    /// Iterations per execution, as far as 10 bits hold them.
    pub fn average_in_ten_bits(&self) -> f64 {
        self.in_ten_bits as f64 / self.executions.max(1) as f64
    }
}

/// All that was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserverProfile {
    /// Loops by their branch.
    pub loops: Vec<ObservedLoop>,
    /// Instructions executed.
    pub instructions: u64,
    /// Executions that were active when recording was cut.
    pub cut: u64,
    /// Executions of loops beyond the most that are kept, or of recursion too deep.
    pub beyond: u64,
}

impl ObserverProfile {
    /// The loop with this branch.
    pub fn get(&self, branch: u64) -> Option<&ObservedLoop> {
        self.loops.binary_search_by_key(&branch, |l| l.branch).ok().map(|i| &self.loops[i])
    }
}

/// A loop that a thread is in.
struct Active {
    branch: Branch,
    depth: u32,
    current: u64,
}

impl Active {
    fn holds(&self, pc: u64) -> bool {
        (self.branch.pc - u64::from(self.branch.distance)..=self.branch.pc).contains(&pc)
    }
}

#[derive(Default)]
struct Thread {
    calls: CallStack,
    /// Outermost first, so by depth of calls.
    active: Vec<Active>,
}

/// Observes backward branches.
pub struct ObserverReader {
    limit: u32,
    threads: FxHashMap<i32, Thread>,
    loops: FxHashMap<u64, ObservedLoop>,
    profile: ObserverProfile,
}

impl ObserverReader {
    /// An observer of branches to less than `limit` bytes before (1024 for DAProf).
    pub fn new(limit: u32) -> ObserverReader {
        ObserverReader {
            limit,
            threads: FxHashMap::default(),
            loops: FxHashMap::default(),
            profile: ObserverProfile::default(),
        }
    }

    /// A branch ends loops of deeper calls, and those of its own depth that do not hold it (lines 23 to 27 of figure 2).
    fn branch(&mut self, tid: i32, branch: Branch) {
        let thread = self.threads.entry(tid).or_default();
        let depth = thread.calls.depth();
        let over = |a: &Active| a.depth > depth || (a.depth == depth && !a.holds(branch.pc));
        let first = thread.active.partition_point(|a| a.depth < depth);
        let mut ended: Vec<Active> = Vec::new();
        if thread.active[first..].iter().any(over) {
            let (gone, stay) = thread.active.drain(first..).partition(over);
            ended = gone;
            thread.active.extend::<Vec<Active>>(stay);
        }
        match thread.active[first..].iter_mut().find(|a| a.branch == branch) {
            Some(same) => same.current += 1,
            None => {
                if thread.active.len() == MOST_ACTIVE {
                    thread.active.remove(0);
                    self.profile.beyond += 1;
                }
                thread.active.push(Active { branch, depth, current: 1 });
            }
        }
        ended.iter().for_each(|active| self.ended(active));
    }

    fn ended(&mut self, active: &Active) {
        let Branch { pc, distance } = active.branch;
        if self.loops.len() == MOST_LOOPS && !self.loops.contains_key(&pc) {
            self.profile.beyond += 1;
            return;
        }
        let new = ObservedLoop { branch: pc, distance, ..ObservedLoop::default() };
        let l = self.loops.entry(pc).or_insert(new);
        l.executions += 1;
        l.iterations += active.current;
        l.in_ten_bits += active.current.min(MAX_CURRENT.into());
    }

    fn cut(&mut self, tid: i32) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.profile.cut += thread.active.len() as u64;
        }
    }

    /// What was observed; loops that the program ended in are over.
    pub fn finish(mut self) -> ObserverProfile {
        for thread in std::mem::take(&mut self.threads).into_values() {
            thread.active.iter().for_each(|active| self.ended(active));
        }
        self.profile.loops = self.loops.into_values().collect();
        self.profile.loops.sort_unstable_by_key(|l| l.branch);
        self.profile
    }
}

impl Reader for ObserverReader {
    fn begin(&mut self, begin: &Begin) {
        self.cut(begin.tid);
    }

    fn run(&mut self, run: &Run<'_>) {
        self.profile.instructions += run.instructions();
        let calls = &mut self.threads.entry(run.tid).or_default().calls;
        calls.arrive(run.superblock.pc);
        match short_backward(run, self.limit) {
            Some(branch) => self.branch(run.tid, branch),
            None => calls.depart(run),
        }
    }

    fn end(&mut self, end: &End) {
        if end.cause != Cause::Exit {
            self.cut(end.tid);
        }
    }

    fn gap(&mut self) {
        let all: Vec<i32> = self.threads.keys().copied().collect();
        all.into_iter().for_each(|tid| self.cut(tid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pc: u64, distance: u32) -> Branch {
        Branch { pc, distance }
    }

    fn seen(profile: &ObserverProfile, branch: u64) -> (u64, u64, u64) {
        let l = profile.get(branch).expect("the loop");
        (l.executions, l.iterations, l.in_ten_bits)
    }

    #[test]
    fn nested_loops_and_long_ones() {
        let mut observer = ObserverReader::new(1024);
        for _ in 0..3 {
            for _ in 0..5 {
                (0..7).for_each(|_| observer.branch(1, at(0xff0, 8)));
                observer.branch(1, at(0x1000, 40));
            }
            (0..2000).for_each(|_| observer.branch(1, at(0x2000, 8)));
        }
        let profile = observer.finish();
        assert_eq!(seen(&profile, 0xff0), (15, 105, 105));
        assert_eq!(seen(&profile, 0x1000), (3, 15, 15));
        assert_eq!(seen(&profile, 0x2000), (3, 6000, 3 * 1023));
    }

    #[test]
    fn threads_do_not_interfere() {
        let mut observer = ObserverReader::new(1024);
        for _ in 0..4 {
            observer.branch(1, at(0x1000, 8));
            observer.branch(2, at(0x2000, 8));
        }
        let profile = observer.finish();
        assert_eq!((seen(&profile, 0x1000), seen(&profile, 0x2000)), ((1, 4, 4), (1, 4, 4)));
    }

    #[test]
    fn what_was_cut_is_counted_and_not_in_the_averages() {
        let mut observer = ObserverReader::new(1024);
        observer.branch(1, at(0x1000, 8));
        observer.gap();
        let profile = observer.finish();
        assert_eq!((profile.cut, profile.loops.len()), (1, 0));
    }
}
