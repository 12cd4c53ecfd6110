//! System calls of threads that stay in the copy: most are run as they are, a few are watched or taken over.

use crate::cache::RECORDING;
use crate::entry;
use crate::resident::Wanted;
use crate::state::{Engine, engine};
use crate::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use sonde_sys::{process, signal};
use sonde_wire::Counter;
use sonde_wire::marker::{Cause, Kind};

mod number {
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const MUNMAP: u64 = 11;
    pub const SIGACTION: u64 = 13;
    pub const SIGPROCMASK: u64 = 14;
    pub const SIGRETURN: u64 = 15;
    pub const MREMAP: u64 = 25;
    pub const CLONE: u64 = 56;
    pub const FORK: u64 = 57;
    pub const SIGALTSTACK: u64 = 131;
    pub const VFORK: u64 = 58;
    pub const EXECVE: u64 = 59;
    pub const EXIT: u64 = 60;
    pub const PRCTL: u64 = 157;
    pub const ARCH_PRCTL: u64 = 158;
    pub const EXIT_GROUP: u64 = 231;
    pub const SECCOMP: u64 = 317;
    pub const EXECVEAT: u64 = 322;
    pub const RSEQ: u64 = 334;
    pub const CLONE3: u64 = 435;
}

const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_GS: u64 = 0x1004;
const PR_SET_SECCOMP: u64 = 22;
const PROT_EXEC: u64 = 4;

/// Registers that a child keeps on its own stack; see `sonde_clone`.
#[repr(C)]
pub struct Saved {
    xmm: [[u64; 2]; 16],
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    rbp: u64,
    rbx: u64,
    rdx: u64,
    rcx: u64,
    rax: u64,
    flags: u64,
    pc: u64,
}

const RED_ZONE: u64 = 128;

impl Engine {
    /// The copy met a system call at `pc`. Does not return to the caller: the assembly goes on from here, or the
    /// result is the place in the copy to go on at.
    pub fn syscall(&self, thread: &mut Thread, pc: u64) -> u64 {
        if thread.pending_count.load(Relaxed) != 0 {
            self.deliver_at(thread, pc);
        }
        self.control().count(Counter::Syscalls, 1);
        thread.syscall_pc = pc;
        thread.syscall_nr = thread.gpr[0];
        let (nr, args) = (thread.gpr[0], [thread.gpr[7], thread.gpr[6], thread.gpr[2]]);
        match nr {
            number::SIGACTION => {
                thread.gpr[0] = self.virtual_sigaction(args, thread.gpr[10]) as u64;
                return self.go_on(thread, pc + 2);
            }
            number::SIGPROCMASK => {
                self.quiet_at(thread, pc);
                thread.gpr[0] = self.virtual_sigprocmask(thread, args, thread.gpr[10]) as u64;
                return self.go_on(thread, pc + 2);
            }
            number::SIGALTSTACK => {
                thread.gpr[0] = self.virtual_sigaltstack(thread, args) as u64;
                return self.go_on(thread, pc + 2);
            }
            number::SIGRETURN => {
                // The frame is changed on the way, so that the call cannot be interrupted and begun again; the kernel sets
                // the mask with it.
                self.quiet_at(thread, pc);
                self.prepare_sigreturn(thread);
                thread.mask_kept.store(0, Relaxed);
                // Nothing else in the log tells that a handler is over, and what was interrupted goes on.
                if thread.version == RECORDING {
                    self.mark(thread, Kind::Syscall, &[nr, 0, thread.resume_pc], true);
                }
            }
            number::CLONE | number::CLONE3 | number::FORK | number::VFORK => {
                thread.resume_pc = pc + 2;
                thread.child_waiting.store(1, Release);
                // SAFETY: the context holds the program's registers.
                unsafe { entry::sonde_clone(thread) }
            }
            number::EXECVE | number::EXECVEAT | number::EXIT | number::EXIT_GROUP => {
                if matches!(nr, number::EXIT | number::EXIT_GROUP) {
                    self.quiet_at(thread, pc);
                }
                if nr == number::EXIT_GROUP {
                    self.call_in_others(thread);
                }
                if thread.version == RECORDING {
                    self.mark(thread, Kind::End, &[sonde_sys::time::tsc(), Cause::Exit as u64, pc], true);
                }
                self.submit(thread);
                // What the addresses lie in is gone after either of these.
                let replaced = nr != number::EXIT && thread.version == RECORDING;
                if nr == number::EXIT_GROUP || replaced {
                    self.await_reader();
                }
            }
            number::SECCOMP => self.leave_for_good(thread, pc),
            number::PRCTL if args[0] == PR_SET_SECCOMP => self.leave_for_good(thread, pc),
            number::ARCH_PRCTL if args[0] == ARCH_SET_GS => self.leave(thread, pc, Cause::Syscall),
            number::ARCH_PRCTL if args[0] == ARCH_GET_GS => {
                let written = crate::program_memory::write_program(args[1], &thread.old_gs.to_le_bytes());
                thread.gpr[0] = if written { 0 } else { (-14i64) as u64 };
                return self.go_on(thread, pc + 2);
            }
            _ => self.hand_in_if_scarce(thread),
        }
        // SAFETY: the context holds the program's registers.
        unsafe { entry::sonde_syscall(thread) }
    }

    /// The thread restricts which system calls it may make: nothing of ours may make any in it from now on. Our handlers do,
    /// so the program gets its own back where no other thread needs ours.
    fn leave_for_good(&self, thread: &mut Thread, pc: u64) -> ! {
        self.quiet_at(thread, pc);
        if thread.has_timer != 0 {
            sonde_sys::time::Timer::from_id(thread.timer).delete();
            thread.has_timer = 0;
        }
        if self.active.load(Acquire) <= 1 {
            self.restore_actions(true);
        }
        self.leave(thread, pc, Cause::Syscall)
    }

    /// Blocks all signals before the system call at `pc`; what came before is delivered first.
    fn quiet_at(&self, thread: &mut Thread, pc: u64) {
        self.block_all(thread);
        if thread.pending_count.load(Relaxed) != 0 {
            self.deliver_at(thread, pc);
        }
    }

    /// The system call at hand is not made now: a signal comes first.
    pub fn call_off(&self, thread: &mut Thread) {
        if matches!(thread.syscall_nr, number::EXECVE | number::EXECVEAT) {
            self.record_again(thread, thread.syscall_pc);
        }
    }

    /// The log was closed for an exec that did not happen, or not yet.
    fn record_again(&self, thread: &mut Thread, pc: u64) {
        let _ = self.acquire(thread, true);
        let begin = [thread.tid.load(Relaxed) as u64, sonde_sys::time::tsc(), thread.fs_base, pc];
        if thread.version == RECORDING {
            self.mark(thread, Kind::Begin, &begin, true);
        }
    }

    /// Book-keeping after a system call returned (in the parent, for those that made a child).
    fn after_syscall(&self, thread: &mut Thread) -> u64 {
        let pc = thread.syscall_pc + 2;
        let result = thread.gpr[0];
        let ok = !(-4095..0).contains(&(result as i64));
        let nr = thread.syscall_nr;
        let args = [thread.gpr[7], thread.gpr[6], thread.gpr[2], thread.gpr[10]];
        thread.gpr[1] = pc;
        thread.gpr[11] = thread.flags;
        if !matches!(nr, number::EXECVE | number::EXECVEAT) && !self.has_buffer(thread) {
            self.leave(thread, pc, Cause::Buffers);
        }
        match nr {
            number::MMAP if ok => self.code_changed(result, args[1], args[2] & PROT_EXEC != 0),
            number::MPROTECT if ok => self.code_changed(args[0], args[1], args[2] & PROT_EXEC != 0),
            number::MUNMAP | number::MREMAP if ok => self.code_changed(args[0], args[1], false),
            number::ARCH_PRCTL if ok && args[0] == ARCH_SET_FS => {
                thread.fs_base = args[1];
                if thread.version == RECORDING {
                    self.mark(thread, Kind::FsBase, &[args[1]], true);
                }
            }
            number::RSEQ if ok && args[2] & 1 == 0 => {
                let at = args[0].wrapping_add(8).wrapping_sub(process::fs_base() as u64);
                for planner in &mut self.translator.lock().planners {
                    planner.set_rseq_cs(Some(at as i64));
                }
            }
            number::CLONE | number::CLONE3 | number::FORK | number::VFORK if ok => {
                self.wait_for_child(thread, result as i32);
            }
            number::EXECVE | number::EXECVEAT => self.record_again(thread, pc),
            _ => {}
        }
        self.go_on(thread, pc)
    }

    /// A child that shares our memory reads its pc from this context: wait until it has.
    fn wait_for_child(&self, thread: &Thread, child: i32) {
        let pid = self.pid.load(Relaxed);
        let mut spins = 0u32;
        while thread.child_waiting.load(Acquire) != 0 && self.shares_memory(thread) {
            process::yield_now();
            spins += 1;
            if spins > 1000 && !process::thread_exists(pid, child) && !process::process_exists(child) {
                break;
            }
        }
        thread.child_waiting.store(0, Relaxed);
    }

    /// Whether the child-making call at hand shares memory with a child that runs at the same time.
    fn shares_memory(&self, thread: &Thread) -> bool {
        let flags = clone_flags(thread.syscall_nr, thread.gpr[7]);
        flags & CLONE_VM != 0 && flags & CLONE_VFORK == 0
    }

    /// Where in the copy to go on at `pc`; goes native if it cannot be copied.
    pub fn go_on(&self, thread: &mut Thread, pc: u64) -> u64 {
        match self.enter_copy(thread, pc, &mut |_, _, _| {}) {
            Ok(at) => {
                thread.next_pc = pc;
                at
            }
            Err(cause) => self.not_copied(thread, pc, cause),
        }
    }
}

fn clone_flags(nr: u64, first: u64) -> u64 {
    match nr {
        number::CLONE => first,
        number::CLONE3 => {
            let mut flags = [0u8; 8];
            if crate::program_memory::read_program(first, &mut flags) { u64::from_le_bytes(flags) } else { 0 }
        }
        number::VFORK => CLONE_VM | CLONE_VFORK,
        _ => 0,
    }
}

/// After a system call.
///
/// # Safety
/// `thread` is the calling thread's context.
pub unsafe fn after(thread: *mut Thread) -> u64 {
    // SAFETY: passed on to the caller; an engine exists, because the copy ran.
    let (thread, engine) = unsafe { (&mut *thread, engine().unwrap_unchecked()) };
    engine.after_syscall(thread)
}

/// A child starts: returns the context with which it goes on in the copy, or 0 if it runs natively.
///
/// # Safety
/// `saved` holds the child's registers; `parent` is the context of the thread that made it.
pub unsafe fn child(saved: *const Saved, parent: *mut Thread) -> u64 {
    // SAFETY: as above.
    let (saved, parent, engine) = unsafe { (&*saved, &mut *parent, engine().unwrap_unchecked()) };
    let flags = clone_flags(parent.syscall_nr, parent.gpr[7]);
    let (log_to, old_gs) = (saved.pc, parent.old_gs);
    let (own_stack, blocked_faults) = (parent.app_stack, parent.blocked_faults);
    if flags & CLONE_THREAD == 0 {
        parent.child_waiting.store(0, Release);
        engine.control().count(Counter::Children, 1);
        // SAFETY: the program does not use gs.
        unsafe { process::set_gs_base(old_gs as usize) };
        engine.restore_actions(flags & CLONE_VM != 0);
        // SAFETY: the program's own stack.
        unsafe { signal::set_alternate_stack(&own_stack) };
        signal::set_mask(signal::current_mask() | blocked_faults);
        return 0;
    }
    let thread = engine.thread_of(process::gettid());
    parent.child_waiting.store(0, Release);
    let Some(thread) = thread else {
        engine.control().count(Counter::SkippedThreads, 1);
        // SAFETY: the program does not use gs.
        unsafe { process::set_gs_base(old_gs as usize) };
        return 0;
    };
    thread.gpr = [
        saved.rax,
        saved.rcx,
        saved.rdx,
        saved.rbx,
        saved as *const Saved as u64 + size_of::<Saved>() as u64 + RED_ZONE,
        saved.rbp,
        saved.rsi,
        saved.rdi,
        saved.r8,
        saved.r9,
        saved.r10,
        saved.r11,
        saved.r12,
        saved.r13,
        0,
        0,
    ];
    thread.app_r14 = saved.r14;
    thread.app_r15 = saved.r15;
    thread.flags = saved.flags;
    thread.xmm = saved.xmm;
    thread.old_gs = old_gs;
    thread.blocked_faults = blocked_faults;
    // SAFETY: the program does not use gs.
    unsafe { process::set_gs_base(thread.me as usize) };
    if engine.take_in(thread, log_to) == Wanted::No {
        // SAFETY: as above.
        unsafe { process::set_gs_base(old_gs as usize) };
        return 0;
    }
    engine.active.fetch_add(1, AcqRel);
    thread.next = engine.go_on(thread, saved.pc);
    thread.me
}
