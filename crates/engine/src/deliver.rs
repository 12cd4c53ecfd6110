//! Delivers signals to the program's handlers while its threads stay in the copy.
//!
//! The program's handlers are kept in a table and ours is installed for all of them. A signal that finds the thread in
//! a state that is the program's own ([`crate::found`]) is delivered at once: the kernel's frame is corrected to show the
//! program's registers, and its handler runs in the copy. A signal that comes in the middle of an instruction of the copy
//! lets the thread single-step to the next clean point first; one that comes while the engine works waits until it is done:
//! the assembly that leaves the engine looks for it ([`crate::entry`]).

use crate::entry;
use crate::found::Found;
use crate::program_memory::{read_program, write_program};
use crate::state::{Engine, engine};
use crate::thread::{Pending, Thread};
use crate::virtual_signals::{ALWAYS_OURS, on_stack, set_real};
use core::sync::atomic::Ordering::{Relaxed, Release};
use sonde_sys::process;
use sonde_sys::signal::{self, Action, Context, Info};
use sonde_wire::Counter;
use sonde_wire::marker::{Cause, Kind};

const TRAP_FLAG: u64 = 0x100;
/// What the kernel clears when a handler begins: trap, direction, resume.
const CLEARED_FLAGS: u64 = TRAP_FLAG | 0x400 | 0x1_0000;
/// Bytes below the stack pointer that belong to the program.
const RED_ZONE: u64 = 128;

/// Our handler for everything.
pub(crate) extern "C" fn on_signal(sig: i32, info: *mut Info, uc: *mut Context) {
    let Some(engine) = engine() else { return };
    let thread = engine.pool.find(process::gettid());
    // SAFETY: the context belongs to this thread, which is here and nowhere else.
    let Some(thread) = thread.map(|t| unsafe { &mut *t }).filter(|t| t.active.load(Relaxed) != 0) else {
        engine.run_handler_natively(sig, info, uc);
        return;
    };
    engine.control().count(Counter::Signals, 1);
    // SAFETY: the kernel gives valid pointers; a siginfo has 128 bytes.
    let (signal, context) = unsafe { (Pending { info: *(info as *const [u64; 16]) }, &mut *uc) };
    engine.signal(thread, &signal, context);
}

/// Signals are pending, and the thread is about to go on in the copy: they come first.
///
/// # Safety
/// `thread` is the calling thread's context, which holds all that the program has.
pub unsafe fn before_next(thread: *mut Thread) -> ! {
    // SAFETY: passed on to the caller; an engine exists, because the copy ran.
    let (thread, engine) = unsafe { (&mut *thread, engine().unwrap_unchecked()) };
    let pc = thread.next_pc;
    engine.deliver_at(thread, pc)
}

/// Signals are pending, and the thread is about to make a system call: they come first.
///
/// # Safety
/// `thread` is the calling thread's context, which holds all that the program has.
pub unsafe fn before_call(thread: *mut Thread) -> ! {
    // SAFETY: as above.
    let (thread, engine) = unsafe { (&mut *thread, engine().unwrap_unchecked()) };
    engine.call_off(thread);
    let pc = thread.syscall_pc;
    engine.deliver_at(thread, pc)
}

/// The second half of [`Engine::deliver_at`].
///
/// # Safety
/// `thread` is the calling thread's context, whose frame shows all that the program has; all signals are blocked.
pub unsafe fn with_fresh_state(thread: *mut Thread) -> ! {
    // SAFETY: as above.
    let (thread, engine) = unsafe { (&mut *thread, engine().unwrap_unchecked()) };
    let mut frame = thread.frame;
    engine.deliver(thread, &mut frame)
}

impl Engine {
    /// Delivers the signal that came while the engine worked. The context holds all that the program has, which goes on at
    /// `pc` later. Not by raising it again: that takes another way through the kernel and, where a thread is traced,
    /// through its tracer, and a program with many signals would get no further.
    pub fn deliver_at(&self, thread: &mut Thread, pc: u64) -> ! {
        thread.inside.store(0, Release);
        self.publish(thread);
        self.refresh_frame(thread);
        self.fill_frame(thread, pc);
        // SAFETY: the state area is there, and was given its shape with the frame; the word says what is in use, of which
        // the kernel always counts the first two.
        unsafe {
            entry::sonde_save_state(thread);
            *((thread.state_at + 512) as *mut u64) |= 3;
        }
        // The kernel sets the state that a handler begins with where a frame has none.
        let mut fresh = thread.frame;
        fresh.flags &= !crate::frame::HAS_XSTATE;
        fresh.fpstate = 0;
        fresh.mask = !0;
        fresh.stack = thread.signal_stack();
        fresh.regs.rip = entry::sonde_deliver_fresh as *const () as u64;
        fresh.regs.rsp = thread.stack_top;
        fresh.regs.rdi = thread.me;
        fresh.regs.rflags = 2;
        // SAFETY: the frame is complete, and lies where the stack does not grow before the kernel has read it.
        unsafe { entry::sonde_return_by(&raw const fresh) }
    }

    /// Delivers the first pending signal; the context shows the program's own state. All signals are blocked.
    fn deliver(&self, thread: &mut Thread, uc: &mut Context) -> ! {
        let n = (thread.pending_count.swap(0, Relaxed) as usize).min(thread.pending.len());
        let pending = thread.pending;
        for signal in pending[..n].iter().skip(1) {
            self.raise_again(thread, signal);
        }
        if thread.mask_kept.swap(0, Relaxed) != 0 {
            uc.mask = self.kept_mask(thread);
        }
        self.run_handler(thread, &pending[0], uc)
    }

    /// Signals that are to meet the thread once it is native.
    pub(crate) fn requeue_pending(&self, thread: &mut Thread) {
        let n = (thread.pending_count.swap(0, Relaxed) as usize).min(thread.pending.len());
        for signal in &thread.pending[..n] {
            self.raise_again(thread, signal);
        }
    }

    fn raise_again(&self, thread: &Thread, signal: &Pending) {
        let tid = thread.tid.load(Relaxed);
        let _ = signal::requeue(self.pid.load(Relaxed), tid, signal.number(), &signal.info);
    }

    fn signal(&self, thread: &mut Thread, signal: &Pending, uc: &mut Context) {
        let (sig, raised) = (signal.number(), signal.is_raised());
        if sig == signal::SIGTRAP && raised && thread.stepping != 0 {
            return self.stepped(thread, uc);
        }
        if raised && ALWAYS_OURS & signal::bit(sig) != 0 && self.in_cache(uc.regs.rip) {
            if sig == signal::SIGSEGV
                && self.in_guard(thread, signal.address())
                && self.move_record(thread, uc)
            {
                return;
            }
            // Natively once more, so that the kernel reports the program's own access, not our look at its operand.
            self.undo(thread, uc);
            self.stop_stepping(thread, uc);
            if thread.pending_count.load(Relaxed) != 0 {
                self.deliver(thread, uc);
            }
            uc.mask |= thread.blocked_faults;
            self.excursion_with(thread, uc);
        }
        // What waits already was first, and all but faults are blocked until it is delivered.
        let waits = thread.pending_count.load(Relaxed) != 0;
        if !waits && self.locate(thread, uc) == Found::Clean {
            self.run_handler(thread, signal, uc);
        }
        self.postpone(thread, signal, uc);
    }

    /// The thread runs an instruction natively that is going to raise a signal, which brings it back; a timer does if it
    /// does not.
    fn excursion_with(&self, thread: &mut Thread, uc: &mut Context) -> ! {
        self.come_back_soon(thread);
        self.publish(thread);
        uc.stack = thread.signal_stack();
        uc.mask &= !ALWAYS_OURS;
        self.go_native_with(thread, uc)
    }

    /// The same from the engine.
    pub fn excursion(&self, thread: &mut Thread, pc: u64) -> ! {
        self.block_all(thread);
        if thread.pending_count.load(Relaxed) != 0 {
            self.deliver_at(thread, pc);
        }
        self.come_back_soon(thread);
        self.publish(thread);
        self.refresh_frame(thread);
        thread.frame.mask &= !ALWAYS_OURS;
        thread.frame.stack = thread.signal_stack();
        self.fill_frame(thread, pc);
        thread.mask_kept.store(0, Relaxed);
        // SAFETY: the frame is complete; gs stays ours.
        unsafe { entry::sonde_go_native(thread) }
    }

    /// Keeps a signal until the thread can take it; no other one comes meanwhile.
    fn postpone(&self, thread: &mut Thread, signal: &Pending, uc: &mut Context) {
        let n = thread.pending_count.load(Relaxed) as usize;
        if thread.mask_kept.swap(1, Relaxed) == 0 {
            thread.app_mask = uc.mask;
        }
        uc.mask |= !crate::trigger::SYNCHRONOUS;
        match thread.pending.get_mut(n) {
            Some(slot) => {
                *slot = *signal;
                thread.pending_count.store(n as u32 + 1, Relaxed);
            }
            None => {
                // Fault signals that somebody sends, one after the other: the kernel keeps this one.
                uc.mask |= signal::bit(signal.number());
                self.raise_again(thread, signal);
            }
        }
        if self.in_cache(uc.regs.rip) {
            thread.stepping = 1;
            uc.regs.rflags |= TRAP_FLAG;
        }
    }

    fn stop_stepping(&self, thread: &mut Thread, uc: &mut Context) {
        if core::mem::take(&mut thread.stepping) != 0 {
            uc.regs.rflags &= !TRAP_FLAG;
        }
    }

    /// One step on the way to a clean point.
    fn stepped(&self, thread: &mut Thread, uc: &mut Context) {
        if !self.in_cache(uc.regs.rip) {
            // The engine was entered: it delivers when it is done.
            return self.stop_stepping(thread, uc);
        }
        if self.locate(thread, uc) == Found::Clean {
            self.stop_stepping(thread, uc);
            self.deliver(thread, uc);
        }
    }

    /// Runs the program's handler in the copy. The context shows the program's own state; all signals are blocked, and none
    /// is pending.
    fn run_handler(&self, thread: &mut Thread, signal: &Pending, uc: &mut Context) -> ! {
        let (sig, pc) = (signal.number(), uc.regs.rip);
        let mut actions = self.actions.lock();
        let action = actions.get(sig);
        let believed_blocked = thread.blocked_faults & signal::bit(sig) != 0;
        if !signal.is_raised() && believed_blocked {
            drop(actions);
            self.hold(thread, signal, uc)
        }
        if !signal.is_raised() && is_ignored(sig, &action) {
            drop(actions);
            self.back_into_copy(thread, uc)
        }
        uc.mask |= thread.blocked_faults;
        // A fault that the program blocks ends it, whatever its handler.
        if action.handler <= signal::SIG_IGN || believed_blocked {
            drop(actions);
            self.default_action(thread, signal, uc)
        }
        if action.flags & signal::SA_RESETHAND != 0 {
            actions.set(sig, Action::default());
            let _ = set_real(sig, &Action::default());
        }
        drop(actions);
        let own = if action.flags & signal::SA_NODEFER == 0 { signal::bit(sig) } else { 0 };
        let mask = uc.mask | action.mask | own;
        let logged = self.has_buffer(thread);
        if thread.version == crate::cache::RECORDING {
            self.mark(thread, Kind::Signal, &[sig as u64, pc], true);
        }
        let Some((frame, info_at)) = self.build_frame(thread, &action, &signal.info, uc) else {
            // No room for a frame: the kernel would end the program, and does.
            self.actions.lock().set(signal::SIGSEGV, Action::default());
            self.default_action(thread, &Pending::sent(signal::SIGSEGV), uc)
        };
        // What the kernel does not set is as it was.
        thread.gpr = gprs(uc);
        (thread.app_r14, thread.app_r15) = (thread.gpr[14], thread.gpr[15]);
        thread.gpr[0] = 0;
        thread.gpr[4] = frame;
        thread.gpr[7] = sig as u64;
        thread.gpr[6] = info_at;
        thread.gpr[2] = frame + 8;
        thread.flags = uc.regs.rflags & !CLEARED_FLAGS;
        thread.xmm = [[0; 2]; 16];
        self.keep_mask(thread, mask);
        if !logged {
            self.leave(thread, action.handler as u64, Cause::Buffers);
        }
        let to = self.go_on(thread, action.handler as u64);
        self.release_mask(thread);
        // SAFETY: the context holds the handler's first state; nothing on this stack is needed any more. A signal that has
        // come since the mask was set is delivered on the way.
        unsafe { resume(thread, to) }
    }

    /// Keeps a fault signal that somebody sent until the program unblocks it. The context shows the program's state.
    fn hold(&self, thread: &mut Thread, signal: &Pending, uc: &mut Context) -> ! {
        thread.held = *signal;
        self.back_into_copy(thread, uc)
    }

    /// Lets the thread go on in the copy where the context, which shows the program's state, says.
    fn back_into_copy(&self, thread: &mut Thread, uc: &mut Context) -> ! {
        uc.mask &= !ALWAYS_OURS;
        uc.stack = thread.signal_stack();
        let pc = uc.regs.rip;
        self.enter_at(thread, uc, pc);
        self.go_native_with(thread, uc)
    }

    /// Builds the frame of a signal handler on the program's stack, as the kernel would have if ours were not there.
    /// Returns the addresses of the frame and of the signal information in it.
    fn build_frame(
        &self,
        thread: &mut Thread,
        action: &Action,
        info: &[u64; 16],
        uc: &Context,
    ) -> Option<(u64, u64)> {
        let size = self.template.lock().map_or(512, |t| u64::from(t.size) + 4);
        let stack = thread.app_stack;
        let usable = action.flags & signal::SA_ONSTACK != 0 && stack[2] != 0;
        let switch = usable && !on_stack(&stack, uc.regs.rsp);
        let top = if switch { stack[0] + stack[2] } else { uc.regs.rsp - RED_ZONE };
        let state = (top - size) & !63;
        let bytes = (size_of::<Context>() + size_of::<[u64; 16]>()) as u64;
        let frame = ((state - bytes - 8) & !15) - 8;
        let info_at = frame + 8 + size_of::<Context>() as u64;
        let mut shown = *uc;
        shown.fpstate = if uc.fpstate == 0 { 0 } else { state };
        let on = on_stack(&stack, uc.regs.rsp);
        shown.stack = if stack[2] == 0 { [0, 2, 0] } else { [stack[0], stack[1] | u64::from(on), stack[2]] };
        if stack[1] & (1 << 31) != 0 && usable {
            thread.app_stack = [0, 2, 0];
        }
        // SAFETY: plain data seen as bytes; the kernel's state area has `size` bytes.
        let (context, details, fp) = unsafe {
            (
                core::slice::from_raw_parts((&raw const shown).cast::<u8>(), size_of::<Context>()),
                core::slice::from_raw_parts(info.as_ptr().cast::<u8>(), 128),
                core::slice::from_raw_parts(
                    uc.fpstate.max(1) as *const u8,
                    if uc.fpstate == 0 { 0 } else { size as usize },
                ),
            )
        };
        let done = write_program(frame, &(action.restorer as u64).to_le_bytes())
            && write_program(frame + 8, context)
            && write_program(info_at, details)
            && (fp.is_empty() || write_program(state, fp));
        done.then_some((frame, info_at))
    }

    /// The program has no handler: it meets the default action natively. Only that signal's action is put back: threads
    /// that are still in the copy until the program is gone need ours for the others.
    fn default_action(&self, thread: &mut Thread, signal: &Pending, uc: &mut Context) -> ! {
        let sig = signal.number();
        self.end_burst(thread, uc.regs.rip, Cause::Fault);
        // SAFETY: the default action; where the program ignores a fault, the kernel does not either.
        let _ = unsafe { signal::sigaction(sig, Some(&Action::default())) };
        // SAFETY: gs held nothing of the program.
        unsafe { process::set_gs_base(thread.old_gs as usize) };
        let mut before = [0u8; 1];
        if !signal.is_raised() {
            self.raise_again(thread, signal);
        } else if sig == signal::SIGTRAP && read_program(uc.regs.rip - 1, &mut before) && before == [0xcc] {
            // A breakpoint reports the pc behind it; it has to run again to meet the default action.
            uc.regs.rip -= 1;
        }
        uc.mask |= thread.blocked_faults;
        uc.stack = thread.app_stack;
        self.go_native_with(thread, uc)
    }

    /// For threads that run natively while our handler is in place.
    fn run_handler_natively(&self, sig: i32, info: *mut Info, uc: *mut Context) {
        let action = self.actions.lock().get(sig);
        // SAFETY: the kernel's pointers.
        let (details, context) = unsafe { (&*info, &mut *uc) };
        self.forward_to(&action, sig, details, context);
    }
}

/// Whether a signal that was sent, not raised, does nothing with this action.
fn is_ignored(sig: i32, action: &Action) -> bool {
    const SIGCHLD: i32 = 17;
    const SIGCONT: i32 = 18;
    const SIGURG: i32 = 23;
    const SIGWINCH: i32 = 28;
    const IGNORED_BY_DEFAULT: u64 =
        signal::bit(SIGCHLD) | signal::bit(SIGCONT) | signal::bit(SIGURG) | signal::bit(SIGWINCH);
    action.handler == signal::SIG_IGN
        || action.handler == signal::SIG_DFL && IGNORED_BY_DEFAULT & signal::bit(sig) != 0
}

/// The general registers of a context by their hardware numbers.
fn gprs(uc: &Context) -> [u64; 16] {
    let r = &uc.regs;
    let mut all = [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, 0, 0, 0, 0, 0, 0, 0, 0];
    all[8..].copy_from_slice(&r.r8_15);
    all
}

/// Goes on in the copy with the state of the context.
///
/// # Safety
/// The context is complete and `to` is a place in the copy.
unsafe fn resume(thread: &mut Thread, to: u64) -> ! {
    // SAFETY: the private stack is free: the thread is not in the engine.
    unsafe {
        core::arch::asm!("mov rsp, {stack}", "jmp {resume}", stack = in(reg) thread.stack_top, in("rdi") thread as *mut Thread,
            in("rax") to, resume = sym entry::sonde_resume, options(noreturn));
    }
}
