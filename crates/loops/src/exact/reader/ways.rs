//! Where a pass leads: what its exit and the next pc together are, and what that does to the thread's activations.

use super::ExactReader;
use crate::exact::thread::{Frame, Kind, Pending};
use sonde_event::{ExitKind, Run};

/// What a jump is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    #[default]
    Plain,
    /// To the entry of another function.
    Tail,
    /// Behind a call in another function: longjmp.
    Unwind,
}

/// Counts of one exit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExitCount {
    pub count: u64,
    /// Where it went last, and what that was.
    to: u64,
    verdict: Verdict,
}

impl ExactReader {
    /// The thread goes on at `pc`, where its last pass may have left something open.
    #[inline]
    pub(super) fn arrive(&mut self, thread: usize, pc: u64) {
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
        let matches = |f: &Frame| {
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
        let alive = |f: &Frame| slot == 0 || f.slot == 0 || f.slot > slot;
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
        if beyond {
            self.threads[index].burst.returned(pc);
        }
        self.doubts.lost += u64::from(!beyond);
        let (thread, mut ledger) = self.parts(index);
        if beyond { thread.unwind(0, &mut ledger) } else { thread.cut(&mut ledger) }
    }

    /// What the way out of a pass does.
    #[inline]
    pub(super) fn depart(&mut self, index: usize, run: &Run<'_>, exit: u32) {
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
}

/// The address of the last reference: where a call stores its return address, or a return takes it from.
#[inline]
fn last_address(run: &Run<'_>) -> u64 {
    let last = (run.path.refs as usize).checked_sub(1);
    last.and_then(|i| run.references().nth(i)).and_then(|r| r.address).unwrap_or(0)
}
