//! Faults while the copy runs: the end of a log buffer, and faults of the program itself.
//!
//! During a burst our handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL stand in for the program's. A write past a log
//! buffer gets a new buffer. A fault of the program ends the burst: its registers are put back as they were before the
//! instruction, its handlers are put back, and the instruction runs again natively, so that the handler, or the
//! core file, shows what it would have shown without us.

use crate::entry;
use crate::program_memory::read_program;
use crate::state::{Engine, engine};
use crate::thread::Thread;
use core::sync::atomic::Ordering::{Relaxed, Release};
use sonde_sys::process;
use sonde_sys::signal::{self, Action, Context, Info};
use sonde_wire::Counter;
use sonde_wire::marker::{self, Cause, Kind};
use sonde_x64::emit::Kept;

/// Signals we stand in for.
pub const FAULTS: [i32; 4] = [signal::SIGILL, signal::SIGBUS, signal::SIGFPE, signal::SIGSEGV];

/// The program's actions while ours are in place.
#[derive(Default)]
pub struct FaultActions {
    holders: u32,
    saved: [Action; 4],
}

fn ours() -> Action {
    Action {
        handler: on_fault as *const () as usize,
        flags: signal::SA_SIGINFO | signal::SA_ONSTACK | signal::SA_RESTORER,
        restorer: entry::sonde_restorer as *const () as usize,
        mask: !0,
    }
}

impl Engine {
    /// A burst begins: our handlers are put in place if they are not.
    pub fn hold_faults(&self) {
        if self.is_resident() {
            return;
        }
        let mut faults = self.faults.lock();
        if faults.holders == 0 {
            let ours = ours();
            for (i, sig) in FAULTS.into_iter().enumerate() {
                // SAFETY: the handler can run anywhere.
                if let Ok(old) = unsafe { signal::sigaction(sig, Some(&ours)) } {
                    // Ours may still be there if the program copied it while it stood in.
                    if old.handler != ours.handler {
                        faults.saved[i] = old;
                    }
                }
            }
        }
        faults.holders += 1;
    }

    /// A burst ended: the last one puts the program's handlers back.
    pub fn release_faults(&self) {
        if self.is_resident() {
            return;
        }
        let mut faults = self.faults.lock();
        faults.holders = faults.holders.saturating_sub(1);
        if faults.holders > 0 {
            return;
        }
        let ours = ours();
        for (i, sig) in FAULTS.into_iter().enumerate() {
            // SAFETY: the program's own action.
            if let Ok(old) = unsafe { signal::sigaction(sig, Some(&faults.saved[i])) }
                && old.handler != ours.handler
            {
                // Another thread set a handler meanwhile: that one is the program's.
                // SAFETY: the program's own action.
                let _ = unsafe { signal::sigaction(sig, Some(&old)) };
            }
        }
    }
}

/// Our stand-in.
extern "C" fn on_fault(sig: i32, info: *const Info, uc: *mut Context) {
    let Some(engine) = engine() else { return };
    // SAFETY: the kernel gives valid pointers.
    let (info, uc) = unsafe { (&*info, &mut *uc) };
    let thread = engine.pool.find(process::gettid());
    // SAFETY: the context belongs to this thread, which is here and nowhere else.
    match thread.map(|t| unsafe { &mut *t }) {
        Some(thread) if thread.active.load(Relaxed) != 0 && engine.in_cache(uc.regs.rip) => {
            engine.fault_in_copy(thread, sig, info, uc);
        }
        _ => engine.forward(sig, info, uc),
    }
}

impl Engine {
    /// Handles a fault in the copy; afterwards the thread goes on as `uc` says.
    pub fn fault_in_copy(&self, thread: &mut Thread, sig: i32, info: &Info, uc: &mut Context) {
        let guard = sig == signal::SIGSEGV && info.code > 0 && self.in_guard(thread, info.addr);
        if guard && self.move_record(thread, uc) {
            return;
        }
        self.undo(thread, uc);
        self.end_burst(thread, uc.regs.rip, if guard { Cause::Buffers } else { Cause::Fault });
        if info.code <= 0 {
            // Somebody sent it: running the instruction again would not raise it again.
            // SAFETY: `info` is a siginfo of 128 bytes.
            let raw = unsafe { &*(info as *const Info as *const [u64; 16]) };
            let _ = signal::requeue(self.pid.load(Relaxed), process::gettid(), sig, raw);
        }
        uc.mask = thread.frame.mask;
        uc.stack = thread.app_stack;
        uc.regs.rip = self.native_at(thread, uc.regs.rip);
        // SAFETY: gs held nothing of the program.
        unsafe { process::set_gs_base(thread.old_gs as usize) };
        self.go_native_with(thread, uc)
    }

    /// Goes native as a signal context says. Not by returning from the handler: the kernel would keep our alternate
    /// stack, because the handler runs on it.
    pub fn go_native_with(&self, thread: &mut Thread, uc: &Context) -> ! {
        thread.inside.store(0, Release);
        thread.mask_kept.store(0, Relaxed);
        let size = self.template.lock().map_or(512, |t| t.size as usize + 4);
        thread.frame = *uc;
        thread.frame.fpstate = thread.state_at;
        if uc.fpstate != 0 && uc.fpstate != thread.state_at {
            // SAFETY: the kernel's state area has this size, and ours has room for it.
            unsafe {
                core::ptr::copy_nonoverlapping(uc.fpstate as *const u8, thread.state_at as *mut u8, size)
            };
        }
        // SAFETY: the frame is complete.
        unsafe { entry::sonde_go_native_as_is(thread) }
    }

    /// The record at hand met the end of its buffer: moves it to a new one. False if there is none.
    pub fn move_record(&self, thread: &mut Thread, uc: &mut Context) -> bool {
        let record = uc.regs.r8_15[7];
        let end = self.buffer_at(thread.buffer) + self.control().regions.buffer_len();
        if record > end || record < self.buffer_at(thread.buffer) {
            return false;
        }
        thread.log = record;
        let bytes = (end - record) as usize;
        let mut kept = [0u64; sonde_x64::plan::MAX_RECORD_WORDS];
        let words = (bytes / 8).min(kept.len());
        // SAFETY: the words lie in the writable part of the buffer, which this thread owns.
        unsafe { core::ptr::copy_nonoverlapping(record as *const u64, kept.as_mut_ptr(), words) };
        self.submit(thread);
        if !self.acquire(thread, self.is_resident()) {
            return false;
        }
        // SAFETY: the new buffer is larger than any record.
        unsafe { core::ptr::copy_nonoverlapping(kept.as_ptr(), thread.log as *mut u64, words) };
        uc.regs.r8_15[7] = thread.log;
        // A loop whose copies are all linked comes to the engine nowhere else.
        self.translator.lock().look_at_wanted(self);
        true
    }

    /// Puts the program's registers into `uc` as they were before the instruction at hand, and logs what the
    /// superblock did so far.
    pub fn undo(&self, thread: &mut Thread, uc: &mut Context) {
        let mut translator = self.translator.lock();
        let address = uc.regs.rip;
        let (mut pc, mut done) = (0, 0);
        let mut first_exit = 0;
        let mut recorded = thread.version == crate::cache::RECORDING;
        let mut words = 1;
        // What entries share is left for the pc in its slot.
        if translator.cache.whole.is_some() {
            pc = thread.target;
        }
        if let Some(sb) = translator.cache.at_address(address) {
            let version = sb.version;
            translator.replan(&sb);
            let emitter = &translator.emitters[version as usize & 1];
            recorded = version == crate::cache::RECORDING;
            first_exit = sb.first_exit;
            let at = (address - sb.at) as usize;
            // In the entry of an indirect branch the pc asked for is the true one, whosever entry it is.
            let asked = match emitter.kept_at(at) {
                Kept::InTemp => uc.regs.r8_15[6],
                Kept::InSlot => thread.target,
                Kept::BelowStack => below_stack(uc),
            };
            pc = if at < emitter.body { asked } else { sb.pc };
            if emitter.rcx_is_saved(at) {
                uc.regs.rcx = thread.save_rcx;
            }
            for (i, spot) in emitter.spots.iter().enumerate() {
                if spot.start <= at {
                    (pc, done) = (spot.pc, i as u64);
                    if at >= spot.done {
                        done += 1;
                        pc = translator.plan.insns.get(i + 1).map_or(pc, |n| n.pc);
                    }
                }
            }
            let left = emitter.exit_at(at).and_then(|i| translator.plan.exits.get(i)).copied();
            if let Some(exit) = left {
                let direct = exit.target != 0;
                (pc, done) = (if direct { exit.target } else { asked }, u64::from(exit.insns));
            }
            let exit = translator
                .plan
                .exits
                .iter()
                .find(|e| u64::from(e.insns) >= done)
                .or(translator.plan.exits.last());
            words = exit.map_or(1, |e| e.words);
            self.restore_borrowed(thread, uc, emitter, address - sb.at);
        }
        drop(translator);
        uc.regs.r8_15[6] = thread.app_r14;
        uc.regs.rip = pc;
        if !recorded {
            // r15 is the program's own, and there is no record.
            return;
        }
        let record = uc.regs.r8_15[7];
        uc.regs.r8_15[7] = thread.app_r15;
        thread.log = record;
        let end = if thread.buffer < 0 {
            0
        } else {
            self.buffer_at(thread.buffer) + self.control().regions.buffer_len()
        };
        if done > 0 && record + 8 * (u64::from(words) + 1) <= end {
            // SAFETY: the record lies in the buffer that this thread owns, with room for one more word.
            unsafe {
                let at = record as *mut u64;
                *at = u64::from(marker::header(Kind::Partial, words + 1));
                *at.add(words as usize) = u64::from(first_exit) << 32 | done;
            }
            thread.log = record + 8 * (u64::from(words) + 1);
        } else if done > 0 {
            self.control().count(Counter::LostBytes, 8 * u64::from(words));
        }
    }

    /// Registers that a rewritten instruction borrowed get their content back.
    fn restore_borrowed(
        &self,
        thread: &Thread,
        uc: &mut Context,
        emitter: &sonde_x64::emit::Emitter,
        offset: u64,
    ) {
        for (slot, reg) in emitter.borrowed_at(offset as usize) {
            set_gpr(uc, reg, thread.spill[slot]);
        }
    }

    /// A fault that is not the copy's: the program's own handler gets it.
    fn forward(&self, sig: i32, info: &Info, uc: &mut Context) {
        self.control().count(Counter::ForwardedFaults, 1);
        let index = FAULTS.iter().position(|s| *s == sig).unwrap_or(0);
        let action = self.faults.lock().saved[index];
        if action.handler > signal::SIG_IGN && action.flags & signal::SA_RESETHAND != 0 {
            self.faults.lock().saved[index] = Action::default();
        }
        self.forward_to(&action, sig, info, uc);
    }

    /// Runs the program's action for a signal that found its thread in native code.
    pub fn forward_to(&self, action: &Action, sig: i32, info: &Info, uc: &mut Context) {
        if action.handler == signal::SIG_DFL || action.handler == signal::SIG_IGN {
            // SAFETY: the program's own action; the instruction runs again and meets it.
            let _ = unsafe { signal::sigaction(sig, Some(action)) };
            return;
        }
        let own = if action.flags & signal::SA_NODEFER == 0 { signal::bit(sig) } else { 0 };
        let old = signal::set_mask(uc.mask | action.mask | own);
        // SAFETY: the program installed this address as a handler for this signal.
        let handler: extern "C" fn(i32, *const Info, *mut Context) =
            unsafe { core::mem::transmute(action.handler) };
        handler(sig, info, uc);
        signal::set_mask(old);
    }
}

/// The word that the stack pointer has just left: a return reads it before that, so that it is there.
fn below_stack(uc: &Context) -> u64 {
    let mut word = [0; 8];
    read_program(uc.regs.rsp.wrapping_sub(8), &mut word);
    u64::from_le_bytes(word)
}

/// Sets a general register of a context by its hardware number.
pub fn set_gpr(uc: &mut Context, reg: u8, value: u64) {
    let r = &mut uc.regs;
    match reg {
        0 => r.rax = value,
        1 => r.rcx = value,
        2 => r.rdx = value,
        3 => r.rbx = value,
        4 => r.rsp = value,
        5 => r.rbp = value,
        6 => r.rsi = value,
        7 => r.rdi = value,
        n => r.r8_15[n as usize & 7] = value,
    }
}
