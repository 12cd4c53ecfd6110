//! Delivers signals to the program's handlers while its threads stay in the copy.
//!
//! The program's handlers are kept in a table and ours is installed for all of them. A signal that finds the thread in
//! a state that is the program's own (in a system call, or at an instruction that has not begun) is delivered at once:
//! the kernel's frame is corrected to show the program's registers, and its handler runs in the copy. A signal that
//! comes in the middle of an instruction of the copy lets the thread single-step to the next clean point first; one
//! that comes while the engine works waits until it is done.

use crate::entry;
use crate::fault::set_gpr;
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
/// Bytes below the stack pointer that belong to the program.
const RED_ZONE: u64 = 128;

impl Engine {
    /// Signals that came while the engine worked are raised again at the program's pc, natively; the kernel delivers
    /// them before the first instruction, to our handler, which takes the thread back into the copy.
    pub fn deliver_pending(&self, thread: &mut Thread, pc: u64) {
        if thread.pending_count.load(Relaxed) == 0 {
            return;
        }
        thread.inside.store(0, Release);
        self.refresh_frame(thread);
        thread.frame.mask &= !ALWAYS_OURS;
        thread.frame.stack = thread.signal_stack();
        signal::set_mask(!0);
        self.requeue_pending(thread);
        self.publish(thread);
        self.fill_frame(thread, pc);
        // SAFETY: the frame is complete; gs stays ours, because the thread comes back at once.
        unsafe { entry::sonde_go_native(thread) }
    }

    pub(crate) fn requeue_pending(&self, thread: &mut Thread) {
        let n = (thread.pending_count.swap(0, Relaxed) as usize).min(thread.pending.len());
        for pending in &thread.pending[..n] {
            let tid = thread.tid.load(Relaxed);
            let _ = signal::requeue(self.pid.load(Relaxed), tid, pending.info[0] as i32, &pending.info);
        }
    }
}

/// Our handler for everything.
pub extern "C" fn on_signal(sig: i32, info: *mut Info, uc: *mut Context) {
    let Some(engine) = engine() else { return };
    let thread = engine.pool.find(process::gettid());
    // SAFETY: the context belongs to this thread, which is here and nowhere else.
    let Some(thread) = thread.map(|t| unsafe { &mut *t }).filter(|t| t.active.load(Relaxed) != 0) else {
        engine.run_handler_natively(sig, info, uc);
        return;
    };
    engine.control().count(Counter::Signals, 1);
    engine.signal(thread, sig, info, uc);
}

/// Where a signal found a thread.
enum Found {
    /// In a state that is the program's own, or was made so.
    Clean,
    /// In the middle of something; wait.
    Busy,
}

impl Engine {
    fn signal(&self, thread: &mut Thread, sig: i32, info: *mut Info, uc: *mut Context) {
        // SAFETY: the kernel gives valid pointers.
        let (details, context) = unsafe { (&*info, &mut *uc) };
        let rip = context.regs.rip;
        if sig == signal::SIGTRAP && thread.stepping != 0 {
            return self.stepped(thread, context);
        }
        let raised = details.code > 0 && ALWAYS_OURS & signal::bit(sig) != 0;
        if raised && self.in_cache(rip) {
            if sig == signal::SIGSEGV
                && self.in_guard(thread, details.addr)
                && self.move_record(thread, context)
            {
                return;
            }
            // Natively once more, so that the kernel reports the program's own access, not our look at its operand.
            self.undo(thread, context);
            context.mask |= thread.blocked_faults;
            self.excursion_with(thread, context);
        }
        match self.locate(thread, context) {
            Found::Clean => self.run_handler(thread, sig, info, uc),
            Found::Busy => self.postpone(thread, info, context),
        }
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
        self.come_back_soon(thread);
        self.publish(thread);
        self.refresh_frame(thread);
        thread.frame.mask &= !ALWAYS_OURS;
        thread.frame.stack = thread.signal_stack();
        self.fill_frame(thread, pc);
        // SAFETY: the frame is complete; gs stays ours.
        unsafe { entry::sonde_go_native(thread) }
    }

    /// Sees whether the thread is at a clean point, and if so corrects the context to show the program's state.
    fn locate(&self, thread: &mut Thread, uc: &mut Context) -> Found {
        let rip = uc.regs.rip;
        let at = |f: unsafe extern "C" fn()| f as *const () as u64;
        let within = |from: u64, to: u64| from <= rip && rip < to;
        let begin = entry::sonde_syscall as *const () as u64;
        let clone = entry::sonde_clone as *const () as u64;
        let resume = entry::sonde_resume as *const () as u64;
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
        if within(begin, at(entry::sonde_syscall_ready) + 1)
            || within(clone, at(entry::sonde_clone_ready) + 1)
        {
            self.show(thread, uc, thread.syscall_pc);
            return Found::Clean;
        }
        if within(at(entry::sonde_syscall_done), at(entry::sonde_syscall_booked) + 1)
            || rip == at(entry::sonde_clone_done)
        {
            uc.regs.rip = thread.syscall_pc + 2;
            return Found::Clean;
        }
        if within(at(entry::sonde_landing), at(entry::sonde_landing_booked) + 1) {
            uc.regs.rip = thread.resume_pc;
            return Found::Clean;
        }
        if within(resume, at(entry::sonde_resumed)) {
            self.show(thread, uc, thread.next_pc);
            return Found::Clean;
        }
        if self.is_ours(rip) { Found::Busy } else { Found::Clean }
    }

    /// Puts the program's registers, as the context has them, into a signal context.
    fn show(&self, thread: &Thread, uc: &mut Context, pc: u64) {
        for (i, value) in thread.gpr[..14].iter().enumerate() {
            set_gpr(uc, i as u8, *value);
        }
        uc.regs.r8_15[6] = thread.app_r14;
        uc.regs.r8_15[7] = thread.app_r15;
        uc.regs.rflags = thread.flags;
        uc.regs.rip = pc;
    }

    /// Keeps a signal until the thread can take it; no other one comes meanwhile.
    fn postpone(&self, thread: &mut Thread, info: *const Info, uc: &mut Context) {
        let n = thread.pending_count.load(Relaxed) as usize;
        if let Some(slot) = thread.pending.get_mut(n) {
            // SAFETY: a siginfo has 128 bytes.
            *slot = Pending { info: unsafe { *(info as *const [u64; 16]) } };
            thread.pending_count.store(n as u32 + 1, Relaxed);
        }
        if n == 0 {
            thread.app_mask = uc.mask;
        }
        uc.mask |= !crate::trigger::SYNCHRONOUS;
        if self.in_cache(uc.regs.rip) {
            thread.stepping = 1;
            uc.regs.rflags |= TRAP_FLAG;
        }
    }

    /// One step on the way to a clean point.
    fn stepped(&self, thread: &mut Thread, uc: &mut Context) {
        if self.in_cache(uc.regs.rip) {
            let mut probe = *uc;
            probe.regs.rflags &= !TRAP_FLAG;
            if let Found::Clean = self.locate(thread, &mut probe) {
                thread.stepping = 0;
                *uc = probe;
                uc.mask = thread.app_mask;
                // All signals are blocked until the kernel restores that mask, natively at the program's pc.
                self.requeue_pending(thread);
            }
            return;
        }
        // The engine was entered: it delivers when it is done.
        thread.stepping = 0;
        uc.regs.rflags &= !TRAP_FLAG;
    }

    /// Runs the program's handler in the copy. The context shows the program's own state.
    fn run_handler(&self, thread: &mut Thread, sig: i32, info: *mut Info, uc: *mut Context) {
        // SAFETY: the kernel's pointers.
        let (details, context) = unsafe { (&*info, &mut *uc) };
        let pc = context.regs.rip;
        let mut actions = self.actions.lock();
        let action = actions.get(sig);
        if details.code <= 0 && thread.blocked_faults & signal::bit(sig) != 0 {
            drop(actions);
            return self.hold(thread, info, context);
        }
        if details.code <= 0 && is_ignored(sig, &action) {
            drop(actions);
            return self.back_into_copy(thread, context);
        }
        context.mask |= thread.blocked_faults;
        // A fault that the program blocks ends it, whatever its handler.
        let fatal = details.code > 0 && thread.blocked_faults & signal::bit(sig) != 0;
        if action.handler <= signal::SIG_IGN || fatal {
            drop(actions);
            return self.default_action(thread, sig, details, context);
        }
        if action.flags & signal::SA_RESETHAND != 0 {
            actions.set(sig, Action::default());
            let _ = set_real(sig, &Action::default());
        }
        drop(actions);
        let logged = self.has_buffer(thread);
        if thread.version == crate::cache::RECORDING {
            self.mark(thread, Kind::Signal, &[sig as u64, pc], true);
        }
        let Some((frame, info_at)) = self.build_frame(thread, &action, info, context) else {
            // No room for a frame: the kernel would end the program, and does.
            self.actions.lock().set(signal::SIGSEGV, Action::default());
            return self.default_action(thread, signal::SIGSEGV, details, context);
        };
        thread.gpr = [0; 16];
        thread.gpr[4] = frame;
        thread.gpr[7] = sig as u64;
        thread.gpr[6] = info_at;
        thread.gpr[2] = frame + 8;
        thread.flags = 0x202;
        thread.xmm = [[0; 2]; 16];
        let own = if action.flags & signal::SA_NODEFER == 0 { signal::bit(sig) } else { 0 };
        thread.next_pc = action.handler as u64;
        // All signals are blocked here; from now on the mask is the handler's, and a signal that comes is postponed.
        let mask = context.mask | action.mask | own;
        thread.blocked_faults = mask & ALWAYS_OURS;
        signal::set_mask(mask & !ALWAYS_OURS);
        if !logged {
            self.leave(thread, action.handler as u64, Cause::Buffers);
        }
        let to = self.go_on(thread, action.handler as u64);
        // SAFETY: the context holds the handler's first state; nothing on this stack is needed any more.
        unsafe { resume(thread, to) }
    }

    /// Keeps a fault signal that somebody sent until the program unblocks it. The context shows the program's state.
    fn hold(&self, thread: &mut Thread, info: *const Info, uc: &mut Context) {
        // SAFETY: a siginfo has 128 bytes.
        thread.held = Pending { info: unsafe { *(info as *const [u64; 16]) } };
        self.back_into_copy(thread, uc);
    }

    /// Lets the thread go on in the copy where the context, which shows the program's state, says.
    fn back_into_copy(&self, thread: &mut Thread, uc: &mut Context) {
        uc.mask &= !ALWAYS_OURS;
        if !self.is_ours(uc.regs.rip) {
            let pc = uc.regs.rip;
            self.enter_at(thread, uc, pc);
        }
    }

    /// Builds the frame of a signal handler on the program's stack, as the kernel would have if ours were not there.
    /// Returns the addresses of the frame and of the signal information in it.
    fn build_frame(
        &self,
        thread: &mut Thread,
        action: &Action,
        info: *const Info,
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
                core::slice::from_raw_parts(info.cast::<u8>(), 128),
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
    fn default_action(&self, thread: &mut Thread, sig: i32, info: &Info, uc: &mut Context) {
        self.end_burst(thread, uc.regs.rip, Cause::Fault);
        // SAFETY: the default action; where the program ignores a fault, the kernel does not either.
        let _ = unsafe { signal::sigaction(sig, Some(&Action::default())) };
        // SAFETY: gs held nothing of the program.
        unsafe { process::set_gs_base(thread.old_gs as usize) };
        let mut before = [0u8; 1];
        if info.code <= 0 {
            // SAFETY: a siginfo has 128 bytes.
            let raw = unsafe { &*(info as *const Info as *const [u64; 16]) };
            let _ = signal::requeue(self.pid.load(Relaxed), process::gettid(), sig, raw);
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
