//! Where a signal found a thread, and what the program's registers are there.
//!
//! At a *clean point* all that the program has is known, so that its handler can run right there: in native code, before an
//! instruction of the copy, and where the engine has finished its work and only restores registers. There the registers
//! are in between; what counts is in the context, but for the upper halves of vector registers and the like, which the
//! engine never touches.

use crate::entry;
use crate::fault::set_gpr;
use crate::frame::HAS_XSTATE;
use crate::state::Engine;
use crate::thread::Thread;
use sonde_sys::signal::Context;

/// Where the low halves of the vector registers lie in the kernel's floating-point state.
const XMM_AT: u64 = 160;
/// Where it says which parts are not in their initial state.
const IN_USE_AT: u64 = 512;
const SSE: u64 = 2;

/// Where a signal found a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// In a state that is the program's own, or was made so.
    Clean,
    /// In the middle of something; wait.
    Busy,
}

impl Engine {
    /// Sees whether the thread is at a clean point, and if so corrects the context to show the program's state.
    pub fn locate(&self, thread: &mut Thread, uc: &mut Context) -> Found {
        let rip = uc.regs.rip;
        let at = |f: unsafe extern "C" fn()| f as *const () as u64;
        let within = |from: unsafe extern "C" fn(), to: u64| at(from) <= rip && rip < to;
        if self.in_cache(rip) {
            let mut translator = self.translator.lock();
            let Some(sb) = translator.cache.at_address(rip) else { return Found::Busy };
            let clean = translator.replan(&sb).is_clean((rip - sb.at) as usize);
            drop(translator);
            if !clean {
                return Found::Busy;
            }
            self.undo(thread, uc);
            return Found::Clean;
        }
        if within(entry::sonde_syscall_sure, at(entry::sonde_syscall_ready) + 1)
            || within(entry::sonde_clone_sure, at(entry::sonde_clone_ready) + 1)
        {
            let done = [at(entry::sonde_syscall_done), at(entry::sonde_clone_done)];
            let restarted = rip == done[0] - SYSCALL_BYTES && uc.regs.rcx == done[0]
                || rip == done[1] - SYSCALL_BYTES && uc.regs.rcx == done[1];
            self.call_off(thread);
            self.show(thread, uc, thread.syscall_pc);
            if restarted {
                // The kernel was in the call already: these two are what the instruction leaves there.
                uc.regs.rcx = thread.syscall_pc + SYSCALL_BYTES;
                uc.regs.r8_15[3] = thread.flags;
            }
            return Found::Clean;
        }
        if within(entry::sonde_landing, at(entry::sonde_landing_booked) + 1) {
            uc.regs.rip = thread.resume_pc;
            return Found::Clean;
        }
        if within(entry::sonde_resume_sure, at(entry::sonde_resumed)) {
            self.show(thread, uc, thread.next_pc);
            return Found::Clean;
        }
        // Behind a system call, too: what the engine has to learn from it comes first.
        if self.is_ours(rip) { Found::Busy } else { Found::Clean }
    }

    /// Puts the program's registers, as the context has them, into a signal frame.
    fn show(&self, thread: &Thread, uc: &mut Context, pc: u64) {
        for (i, value) in thread.gpr[..14].iter().enumerate() {
            set_gpr(uc, i as u8, *value);
        }
        uc.regs.r8_15[6] = thread.app_r14;
        uc.regs.r8_15[7] = thread.app_r15;
        uc.regs.rflags = thread.flags;
        uc.regs.rip = pc;
        if uc.fpstate == 0 {
            return;
        }
        // SAFETY: the kernel's frame, which is ours until it is used: a legacy area of 512 bytes, followed by the header of
        // the extended state if the flags say so.
        unsafe {
            ((uc.fpstate + XMM_AT) as *mut [[u64; 2]; 16]).write_unaligned(thread.xmm);
            if uc.flags & HAS_XSTATE != 0 {
                let in_use = (uc.fpstate + IN_USE_AT) as *mut u64;
                in_use.write_unaligned(in_use.read_unaligned() | SSE);
            }
        }
    }
}

/// Length of the instruction.
const SYSCALL_BYTES: u64 = 2;
