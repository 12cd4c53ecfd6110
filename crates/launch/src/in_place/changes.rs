//! What was changed in a process, and how its threads live with that.

use super::apply::{InPlaceFacts, apply, mappings};
use super::bell::Bell;
use crate::begin::{GETSIGMASK, SETSIGMASK, clone_flags, ptrace, registers, set_registers};
use crate::error::LaunchError;
use crate::fewer_checks::Modules;
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use sonde_checks::Scheme;
use sonde_wire::Control;
use sonde_wire::slot::{APP_R14, CHECKS, MAX_THREADS, SLOT_BYTES, TARGET, TID};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

/// Steps out of a stub, at most: the longest has fewer instructions.
const MOST_STEPS: usize = 64;
/// Checks that a thread gets so that it does not ring while it is led out of a stub.
const SPARE: u64 = 64;

/// Code that was changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Code {
    pub start: u64,
    pub len: u64,
    /// Where the same is as it was.
    pub original: u64,
}

/// The stubs of a file.
pub struct Stubs {
    code: Code,
    start: u64,
    end: u64,
    rings_at: u64,
    /// Instructions that were moved here, in the order of their places: place, and where they were.
    moved: Vec<(u32, u64)>,
    /// The same in the order of where they were.
    by_pc: Vec<(u64, u32)>,
}

impl Stubs {
    /// From what was moved: distance from the begin of the code, and place.
    pub fn new(start: u64, end: u64, code: Code, moved: &[u64], rings_at: u64) -> Stubs {
        let mut by_pc: Vec<(u64, u32)> = moved.iter().map(|m| (code.start + (m >> 32), *m as u32)).collect();
        by_pc.sort_unstable();
        let mut moved: Vec<(u32, u64)> = by_pc.iter().map(|(pc, at)| (*at, *pc)).collect();
        moved.sort_unstable();
        Stubs { code, start, end, rings_at: start + rings_at, moved, by_pc }
    }

    /// The instruction of the program whose copy lies at a place.
    fn original(&self, place: u64) -> Option<u64> {
        let offset = place.checked_sub(self.start)?;
        let found = self.moved.binary_search_by_key(&offset, |(at, _)| u64::from(*at)).ok()?;
        Some(self.moved[found].1)
    }

    /// Where an instruction of the program was moved to.
    fn copy(&self, pc: u64) -> Option<u64> {
        let found = self.by_pc.binary_search_by_key(&pc, |(pc, _)| *pc).ok()?;
        Some(self.start + u64::from(self.by_pc[found].1))
    }
}

/// Changes of a process.
pub struct Changes {
    bell: Bell,
    /// A system call instruction of the program.
    gate: u64,
    stubs: Vec<Stubs>,
    facts: InPlaceFacts,
    pool: u64,
    gap: u64,
}

impl Changes {
    /// Changes a program whose only thread stands at its entry.
    pub fn make(
        pid: i32,
        scheme: Scheme,
        shared: &SharedMemory,
        modules: &mut Modules,
    ) -> Result<Changes, LaunchError> {
        apply(pid, scheme, shared, modules)
    }

    /// As they were made.
    pub fn new(bell: Bell, gate: u64, stubs: Vec<Stubs>, facts: InPlaceFacts, control: &Control) -> Changes {
        let (pool, gap) = (control.pool.load(Relaxed), control.config.gap_checks.max(1));
        Changes { bell, gate, stubs, facts, pool, gap }
    }

    /// What was changed.
    pub fn facts(&self) -> &InPlaceFacts {
        &self.facts
    }

    /// The descriptor that tells who rings.
    pub fn fd(&self) -> i32 {
        self.bell.fd()
    }

    /// The next thread that rang.
    pub fn next_ring(&self) -> Option<i32> {
        self.bell.next()
    }

    /// A context whose checks never come to an end: for child processes, and for threads when there is no other.
    fn endless(&self) -> u64 {
        self.pool + (MAX_THREADS * SLOT_BYTES) as u64
    }

    /// Readies the context of those that are never to ring.
    pub fn prepare(&self, memory: &File) {
        let _ = memory.write_all_at(&i64::MAX.to_le_bytes(), self.endless() + CHECKS as u64);
    }

    /// Gives a thread that stands still a context to count in.
    pub fn arm(&self, tid: i32, slot: Option<u64>, memory: &File) {
        let Ok(mut regs) = registers(tid) else { return };
        let at = slot.unwrap_or(self.endless());
        if slot.is_some() {
            // The engine makes the rest when the first burst begins: the context is not its own address's yet.
            let _ = memory.write_all_at(&0u64.to_le_bytes(), at);
            let _ = memory.write_all_at(&u64::from(tid as u32).to_le_bytes(), at + TID as u64);
            let _ = memory.write_all_at(&self.gap.to_le_bytes(), at + CHECKS as u64);
        }
        regs.gs_base = at;
        let _ = set_registers(tid, &regs);
    }

    /// A child process, which stands still before its first instruction, is let go. If its memory is its own, it gets its code
    /// as it was: nobody leads it out of stubs when it gets signals. Else it counts where nobody looks, until it execs.
    pub fn let_go(&self, pid: i32) {
        let Ok(mut regs) = registers(pid) else { return };
        if regs.gs_base < self.pool || regs.gs_base >= self.endless() {
            return;
        }
        let own = clone_flags(pid).is_some_and(|flags| flags & libc::CLONE_VM as u64 == 0);
        let restored = own && self.stubs_at(regs.rip).is_none() && self.restore(pid).is_ok();
        regs.gs_base = if restored { 0 } else { self.endless() };
        let _ = set_registers(pid, &regs);
    }

    /// The same for a program's only thread, which stands still with a signal that it keeps. Says whether its code is as it was.
    pub fn give_back(&self, tid: i32) -> bool {
        let Ok(regs) = registers(tid) else { return false };
        let counts = (self.pool..=self.endless()).contains(&regs.gs_base);
        if !counts || self.stubs_at(regs.rip).is_some() {
            return false;
        }
        // SAFETY: all bit patterns are valid for plain integers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let known = ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info as usize).is_ok();
        let restored = self.restore(tid).is_ok()
            && set_registers(tid, &libc::user_regs_struct { gs_base: 0, ..regs }).is_ok();
        // The system calls were steps, and those are what it stands still with now.
        if known {
            let _ = ptrace(libc::PTRACE_SETSIGINFO, tid, 0, &raw const info as usize);
        }
        restored
    }

    /// Moves the mappings of the code as it was over what it became.
    fn restore(&self, pid: i32) -> Result<(), LaunchError> {
        let tracee = Tracee::new(pid)?;
        let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        let mappings = mappings(pid);
        let at = |start: u64, len: u64| mappings.iter().find(|m| m.start == start && m.end == start + len);
        // Other code may lie there by now.
        let is_there = |code: &Code| match (at(code.start, code.len), at(code.original, code.len)) {
            (Some(now), Some(was)) => now.name == was.name && now.offset == was.offset,
            _ => false,
        };
        let codes = self.stubs.iter().map(|stubs| stubs.code).filter(is_there);
        undisturbed(pid, || {
            codes.into_iter().try_for_each(|Code { start, len, original }| {
                // What can be executed first: a mapping that cannot would be there if the second failed.
                tracee.syscall(self.gate, libc::SYS_mprotect, [original, len, rights, 0, 0, 0])?;
                tracee.syscall(self.gate, libc::SYS_mremap, [original, len, len, flags, start, 0]).map(drop)
            })
        })
        .unwrap_or_else(|error| Err(LaunchError::Place { what: "the signals of a child", error }))
    }

    fn stubs_at(&self, pc: u64) -> Option<&Stubs> {
        self.stubs.iter().find(|stubs| (stubs.start..stubs.end).contains(&pc))
    }

    /// A thread stands still: if it waits at the bell, it is put where it would go on, with all that is its own. Says whether it
    /// did.
    pub fn answer(&self, tid: i32, memory: &File) -> bool {
        let Ok(mut regs) = registers(tid) else { return false };
        if self.stubs_at(regs.rip).is_none_or(|stubs| regs.rip != stubs.rings_at) {
            return false;
        }
        self.take_from_bell(&mut regs, memory, self.gap);
        if let Some(original) = self.stubs_at(regs.rip).and_then(|stubs| stubs.original(regs.rip)) {
            regs.rip = original;
        }
        let _ = set_registers(tid, &regs);
        true
    }

    /// A thread that rang, and stands at an instruction of the program, goes on where that runs natively; one that stands
    /// in the engine, there.
    pub fn go_on(&self, tid: i32) {
        let Ok(mut regs) = registers(tid) else { return };
        if let Some(copy) = self.stubs.iter().find_map(|stubs| stubs.copy(regs.rip)) {
            regs.rip = copy;
            let _ = set_registers(tid, &regs);
        }
    }

    fn take_from_bell(&self, regs: &mut libc::user_regs_struct, memory: &File, checks: u64) {
        let word = |offset: usize| {
            let mut bytes = [0; 8];
            let _ = memory.read_exact_at(&mut bytes, regs.gs_base + offset as u64);
            u64::from_le_bytes(bytes)
        };
        (regs.rip, regs.r14) = (word(TARGET), word(APP_R14));
        regs.orig_rax = u64::MAX;
        let _ = memory.write_all_at(&checks.to_le_bytes(), regs.gs_base + CHECKS as u64);
    }

    /// A signal is about to be delivered to a thread. If that is in a stub, it is led to where the program would be: handlers
    /// look at the pc, and unwind from it.
    pub fn lead_out(&self, tid: i32, memory: &File) {
        let Ok(mut regs) = registers(tid) else { return };
        let Some(stubs) = self.stubs_at(regs.rip) else { return };
        // SAFETY: all bit patterns are valid for plain integers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let known = ptrace(libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info as usize).is_ok();
        let raised = matches!(info.si_signo, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL)
            && info.si_code > 0;
        if raised {
            // A copy of an instruction: it is the first of its run, whose place is where the program would be.
            if let Some(original) = stubs.original(regs.rip) {
                regs.rip = original;
                let _ = set_registers(tid, &regs);
            }
            return;
        }
        // Also where the program ignores SIGTRAP, whose action the kernel resets then: a handler that runs while a stub has a
        // register in the context would lose it.
        if self.step_out(tid, memory) && known {
            let _ = ptrace(libc::PTRACE_SETSIGINFO, tid, 0, &raw const info as usize);
        }
    }

    /// Runs a thread instruction by instruction until it is out of the stub. Says whether it still is there.
    fn step_out(&self, tid: i32, memory: &File) -> bool {
        let out = || {
            for _ in 0..MOST_STEPS {
                let Ok(mut regs) = registers(tid) else { break };
                let Some(stubs) = self.stubs_at(regs.rip) else { break };
                if regs.rip == stubs.rings_at {
                    self.take_from_bell(&mut regs, memory, SPARE);
                    let _ = set_registers(tid, &regs);
                } else if !step(tid) {
                    return false;
                }
            }
            true
        };
        undisturbed(tid, out).unwrap_or(false)
    }
}

/// Does something with a thread while it gets no signals but the trap of a step.
fn undisturbed<T>(tid: i32, work: impl FnOnce() -> T) -> io::Result<T> {
    let (mut mask, all_but_trap) = (0u64, !(1u64 << (libc::SIGTRAP - 1)));
    ptrace(GETSIGMASK, tid, 8, &raw mut mask as usize)?;
    ptrace(SETSIGMASK, tid, 8, &raw const all_but_trap as usize)?;
    let done = work();
    // A thread that is gone has none.
    let _ = ptrace(SETSIGMASK, tid, 8, &raw const mask as usize);
    Ok(done)
}

/// One instruction. False if the thread ends instead, which is left to be reported.
fn step(tid: i32) -> bool {
    if ptrace(libc::PTRACE_SINGLESTEP, tid, 0, 0).is_err() {
        return false;
    }
    let mut status = 0;
    // SAFETY: information and status are written to locals.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let all = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL;
        let seen = libc::waitid(libc::P_PID, tid as libc::id_t, &mut info, all) == 0;
        let stopped = seen && matches!(info.si_code, libc::CLD_TRAPPED | libc::CLD_STOPPED);
        stopped && libc::waitpid(tid, &mut status, libc::__WALL) == tid && status >> 16 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_found_by_where_they_are_and_by_where_they_were() {
        let moved = [0x10 << 32 | 0x90, 0x13 << 32 | 0x80, 0x40 << 32 | 0x50];
        let code = Code { start: 0x4000, ..Code::default() };
        let stubs = Stubs::new(0x7000, 0x8000, code, &moved, 16);
        assert_eq!([0x7050, 0x7080, 0x7090].map(|at| stubs.original(at)), [0x4040, 0x4013, 0x4010].map(Some));
        assert_eq!([0x4040, 0x4013, 0x4010].map(|pc| stubs.copy(pc)), [0x7050, 0x7080, 0x7090].map(Some));
        assert_eq!((stubs.original(0x7081), stubs.original(0x6000), stubs.copy(0x4011)), (None, None, None));
    }
}
