//! A thread stands still: judges its state from outside, and lets it go on in the engine if it is in a state for it.

use crate::thread_files::status_of;
use sonde_wire::slot::{BY_SONDE, BY_SONDE_NEW, FAULTED, Head, MAX_THREADS, SLOT_BYTES};
use sonde_wire::{Control, Counter};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

pub const GETSIGMASK: libc::c_uint = 0x420a;
pub const SETSIGMASK: libc::c_uint = 0x420b;
const TRAP_FLAG: u64 = 0x100;
/// Signals that instructions raise: the faults, SIGTRAP, SIGSYS.
pub const SYNCHRONOUS: u64 = FAULTS | 1 << 4 | 1 << 30;
/// SIGILL, SIGBUS, SIGFPE, SIGSEGV: deliverable in the copy.
const FAULTS: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 10;

/// One request.
pub fn ptrace(what: libc::c_uint, tid: i32, addr: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests used here take plain values or pointers to locals of the right size.
    let r = unsafe { libc::ptrace(what, tid, addr as *mut libc::c_void, data as *mut libc::c_void) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub fn registers(tid: i32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all bit patterns are valid for plain integers.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut regs as usize)?;
    Ok(regs)
}

pub fn set_registers(tid: i32, regs: &libc::user_regs_struct) -> io::Result<()> {
    ptrace(libc::PTRACE_SETREGS, tid, 0, ptr::from_ref(regs) as usize)
}

/// The flags of the call that made a process, which stands still before its first instruction, where its registers are
/// still those of the call. None if they cannot be told.
pub fn clone_flags(pid: i32) -> Option<u64> {
    let regs = registers(pid).ok()?;
    match regs.orig_rax as i64 {
        libc::SYS_clone => Some(regs.rdi),
        libc::SYS_fork => Some(0),
        libc::SYS_vfork => Some((libc::CLONE_VM | libc::CLONE_VFORK) as u64),
        libc::SYS_clone3 => {
            let mut flags = [0; 8];
            let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
            memory.read_exact_at(&mut flags, regs.rdi).ok()?;
            Some(u64::from_le_bytes(flags))
        }
        _ => None,
    }
}

/// Whether a thread that stands still is where a probe can be placed and a burst begin: in user code, in no special
/// state, and free to make system calls.
pub fn can_be_placed_in(pid: i32, tid: i32, seccomp: u32) -> bool {
    let Ok(mut regs) = registers(tid) else { return false };
    if is_in_call(pid, tid, &regs) {
        restart(pid, tid, &mut regs);
        return false;
    }
    let status = status_of(pid, tid);
    regs.eflags & TRAP_FLAG == 0
        && regs.gs_base == 0
        && status.seccomp == seccomp
        && status.pending & SYNCHRONOUS == 0
}

/// Whether the thread stands still in a system call that was interrupted, and will be made again by the kernel (its own
/// codes, which programs never see) or failed with EINTR. A call that came to its end leaves its number, too, until the
/// next interrupt: then the thread is behind it, or at the start of a handler, as if nothing had been. But a signal that it
/// sent itself by that call must come before the next instruction.
fn is_in_call(pid: i32, tid: i32, regs: &libc::user_regs_struct) -> bool {
    const KERNELS_OWN: std::ops::RangeInclusive<i64> = -516..=-512;
    let result = regs.rax as i64;
    let interrupted = KERNELS_OWN.contains(&result) || result == EINTR;
    regs.orig_rax as i64 >= 0 && (interrupted || status_of(pid, tid).deliverable != 0)
}

/// The result of a call that was interrupted for good.
const EINTR: i64 = -4;

/// The thread entered a system call that the kernel does not restart (epoll_wait and a few others) between our look
/// and the stop: lets it call again, so that the program does not see EINTR.
fn restart(pid: i32, tid: i32, regs: &mut libc::user_regs_struct) -> bool {
    let interrupted = regs.orig_rax as i64 >= 0 && regs.rax as i64 == EINTR;
    let again = interrupted && status_of(pid, tid).deliverable == 0;
    if again {
        regs.rip -= 2;
        regs.rax = regs.orig_rax;
        regs.orig_rax = u64::MAX;
        let _ = set_registers(tid, regs);
    }
    again
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// A burst begins, or a reason why not was counted.
    Settled,
    /// The thread was in a system call or in code of ours.
    NotThere,
    /// It was in a system call that failed for it, and begins that anew.
    Anew,
}

/// A thread that stands still in a process with a probe.
pub struct Site<'a> {
    pub pid: i32,
    pub tid: i32,
    pub memory: &'a File,
    /// Seccomp state in which the probe's system calls are known to be allowed.
    pub seccomp: u32,
    pub control: &'a Control,
    /// Whether the thread made a page fault since it was asked to stop.
    pub faulted: bool,
    /// Whether a thread of this process exists.
    pub lives: &'a dyn Fn(i32) -> bool,
}

impl Site<'_> {
    /// Lets the thread go on in the engine, if it is in a state for it.
    pub fn begin(&self) -> Begun {
        let Ok(mut regs) = registers(self.tid) else { return Begun::Settled };
        let control = self.control;
        let within = |from: u64, to: u64| from <= regs.rip && regs.rip < to;
        let ours = within(control.probe_start.load(Relaxed), control.probe_end.load(Relaxed))
            || within(control.cache_start.load(Relaxed), control.cache_end.load(Relaxed));
        // In a system call the thread is left alone: the kernel makes it again as if nothing had been.
        if ours || is_in_call(self.pid, self.tid, &regs) {
            let anew = restart(self.pid, self.tid, &mut regs);
            return if anew { Begun::Anew } else { Begun::NotThere };
        }
        if let Some(reason) = self.reason_against(&regs) {
            control.count(reason, 1);
            return Begun::Settled;
        }
        if control.config.burst_checks == 0 {
            control.count(Counter::Triggers, 1);
            return Begun::Settled;
        }
        match self.slot() {
            Some((at, head)) if !head.is_active() => self.enter(at, head, &mut regs),
            Some(_) => {}
            None => control.count(Counter::SkippedThreads, 1),
        }
        Begun::Settled
    }

    fn reason_against(&self, regs: &libc::user_regs_struct) -> Option<Counter> {
        let pool = self.control.pool.load(Relaxed);
        let in_pool = regs.gs_base >= pool && regs.gs_base < pool + (MAX_THREADS * SLOT_BYTES) as u64;
        if regs.gs_base != 0 && !in_pool {
            return Some(Counter::SkippedGs);
        }
        if regs.eflags & TRAP_FLAG != 0 {
            return Some(Counter::SkippedState);
        }
        let status = status_of(self.pid, self.tid);
        if status.seccomp != self.seccomp {
            return Some(Counter::SkippedSeccomp);
        }
        // An instruction has just raised a signal, which belongs to the pc it was raised at.
        (status.pending & SYNCHRONOUS != 0).then_some(Counter::SkippedState)
    }

    /// Fills in the thread's context and sets its registers.
    fn enter(&self, at: u64, mut head: Head, regs: &mut libc::user_regs_struct) {
        let tid = self.tid;
        let mut mask = 0u64;
        if ptrace(GETSIGMASK, tid, 8, &raw mut mask as usize).is_err() {
            return;
        }
        head.origin = if head.tid() == tid && head.me == at { BY_SONDE } else { BY_SONDE_NEW };
        head.origin |= if self.faulted { FAULTED } else { 0 };
        head.me = at;
        head.stack_top = Head::stack_top_of(at);
        (head.app_r14, head.app_r15) = (regs.r14, regs.r15);
        head.old_gs = regs.gs_base;
        head.app_mask = mask;
        head.tid_active = u64::from(tid as u32);
        let (before, blocked) = (*regs, !FAULTS);
        regs.r14 = regs.rip;
        // Whatever the result of its last call looks like, it is not to be made again.
        regs.orig_rax = u64::MAX;
        regs.rip = self.control.begin_at.load(Relaxed);
        regs.gs_base = at;
        // The mask last: if Sonde dies before, the thread runs a burst that a signal can interrupt; the other way round all
        // its signals would stay blocked for ever.
        let ready = self.memory.write_all_at(&head.encode(), at).is_ok() && set_registers(tid, regs).is_ok();
        if ready && ptrace(SETSIGMASK, tid, 8, &raw const blocked as usize).is_err() {
            let _ = set_registers(tid, &before);
        }
    }

    /// The context of the thread: its own, or one that nobody uses.
    pub fn slot(&self) -> Option<(u64, Head)> {
        let (tid, pool) = (self.tid, self.control.pool.load(Relaxed));
        for i in 0..MAX_THREADS {
            let at = pool + ((tid as usize + i) % MAX_THREADS * SLOT_BYTES) as u64;
            let mut bytes = [0; 64];
            self.memory.read_exact_at(&mut bytes, at).ok()?;
            let head = Head::decode(&bytes);
            if head.tid() == tid || head.tid() == 0 || !(self.lives)(head.tid()) {
                return Some((at, head));
            }
        }
        None
    }
}
