//! From native code into the copy: the signal handler of the trigger, and what the copy asks the engine for.

use crate::cache::{CHECKING, ExitInfo, RECORDING, Superblock};
use crate::entry::{self, why};
use crate::random;
use crate::state::{Engine, engine};
use crate::thread::Thread;
use crate::translate::Translator;
use core::sync::atomic::Ordering::{Relaxed, Release};
use sonde_sys::process;
use sonde_sys::signal::{self, Action, Context, SI_TIMER};
use sonde_sys::time::{Timer, tsc};
use sonde_wire::Counter;
use sonde_wire::control::{policy, trigger};
use sonde_wire::marker::{Cause, Kind};
use sonde_wire::slot;

/// Signals that stay deliverable in the copy: the ones that an instruction raises.
pub const SYNCHRONOUS: u64 = signal::bit(signal::SIGILL)
    | signal::bit(signal::SIGTRAP)
    | signal::bit(signal::SIGBUS)
    | signal::bit(signal::SIGFPE)
    | signal::bit(signal::SIGSEGV)
    | signal::bit(signal::SIGSYS);

/// Faults, which must reach us even where the program blocks them: the end of a log buffer is one. A program's own
/// SIGTRAP and SIGSYS can wait: nothing in the copy raises them.
const FAULTS: u64 = signal::bit(signal::SIGILL)
    | signal::bit(signal::SIGBUS)
    | signal::bit(signal::SIGFPE)
    | signal::bit(signal::SIGSEGV);

const TRAP_FLAG: u64 = 0x100;
/// User time, at least, after which a timer comes again that was not set anew.
const AGAIN_NS: u64 = 250_000_000;

/// Installs the handler of the trigger signal and returns the action that was there.
///
/// # Safety
/// The engine has been started and the program does not use that signal.
pub unsafe fn install(engine: &Engine) -> Option<Action> {
    let action = Action {
        handler: on_trigger as *const () as usize,
        flags: signal::SA_SIGINFO | signal::SA_ONSTACK | signal::SA_RESTART | signal::SA_RESTORER,
        restorer: entry::sonde_restorer as *const () as usize,
        mask: !0,
    };
    // SAFETY: the handler is one, and runs anywhere.
    unsafe { signal::sigaction(engine.control().config.signal, Some(&action)) }.ok()
}

/// The trigger: decides whether a burst begins here, and if so lets the thread go on in the copy.
extern "C" fn on_trigger(sig: i32, info: *mut signal::Info, uc: *mut Context) {
    let Some(engine) = engine() else { return };
    // SAFETY: the kernel gives a valid block.
    let ours = unsafe { (*info).code } == SI_TIMER;
    if engine.is_resident() && !ours {
        // The program sent it to itself.
        crate::deliver::on_signal(sig, info, uc);
        return;
    }
    // SAFETY: the kernel gives a valid block.
    if !engine.is_resident() && !engine.may_make_calls(unsafe { &*info }) {
        return;
    }
    engine.control().count(Counter::Triggers, 1);
    // SAFETY: the kernel gives a valid context.
    let uc = unsafe { &mut *uc };
    let tid = process::gettid();
    let Some(thread) = engine.thread_of(tid) else {
        engine.control().count(Counter::SkippedThreads, 1);
        return;
    };
    let armed = engine.arm(thread, tid);
    if engine.is_resident() && thread.active.load(Relaxed) != 0 {
        engine.end_excursion(thread, uc);
        return;
    }
    // A thread's first signal only arms its timer.
    let first = engine.control().config.trigger == trigger::TIMER && !armed;
    if first || engine.control().stop.load(Relaxed) != 0 || thread.active.load(Relaxed) != 0 {
        return;
    }
    if let Err(counter) = engine.interrupt(thread, uc) {
        engine.control().count(counter, 1);
        if engine.is_resident() {
            engine.come_back_soon(thread);
        }
    }
}

impl Engine {
    /// The context of a thread, made if needed.
    pub fn thread_of(&self, tid: i32) -> Option<&'static mut Thread> {
        let (thread, new) = self.pool.find_or_make(self.pid.load(Relaxed), tid)?;
        // SAFETY: the context belongs to this thread alone, which holds no other reference while it is here.
        let thread = unsafe { &mut *thread };
        if new {
            if thread.has_timer != 0 {
                // Of the thread that had this context before; the kernel keeps it until the process ends.
                Timer::from_id(thread.timer).delete();
            }
            if thread.me == 0 {
                thread.buffer = -1;
            }
            self.init_thread(thread);
            self.control().count(Counter::Threads, 1);
        }
        Some(thread)
    }

    /// Arms the thread's timer for the next burst, where the probe drives it. Says whether it had one already.
    pub fn arm(&self, thread: &mut Thread, tid: i32) -> bool {
        let had = thread.has_timer != 0;
        let config = &self.control().config;
        if config.trigger != trigger::TIMER || self.control().stop.load(Relaxed) != 0 {
            return had;
        }
        if !process::process_exists(config.sonde) {
            // Nobody reads any more: the program goes on as if we were not there.
            self.control().stop.store(1, Relaxed);
            return had;
        }
        if thread.has_timer == 0 {
            let Ok(timer) = Timer::for_thread(tid, config.signal) else { return had };
            thread.timer = timer.id();
            thread.has_timer = 1;
        }
        let now = self.control().period_now.load(Relaxed);
        let period = if now == 0 { config.period_ns } else { now };
        let (state, r) = random::next(thread.random);
        thread.random = state;
        // Set anew each time, since a periodic timer can keep a slow fork from ever ending; but where nobody answers in
        // time, it cannot be (`ask.rs`), and comes again by itself, later.
        let again = period.saturating_mul(8).max(AGAIN_NS);
        let _ = Timer::from_id(thread.timer).arm(random::vary(period, config.jitter, r).max(1000), again);
        had
    }

    /// Lets an interrupted thread enter the engine, or says why not. Cheap, and on the program's stack: the rest happens
    /// in [`Engine::begin`] on ours.
    fn interrupt(&self, thread: &mut Thread, uc: &mut Context) -> Result<(), Counter> {
        let pc = uc.regs.rip;
        if self.is_ours(pc) {
            return Err(Counter::SkippedCode);
        }
        if uc.regs.rflags & TRAP_FLAG != 0 {
            return Err(Counter::SkippedState);
        }
        let gs = process::gs_base();
        if gs != 0 && !self.pool.owns(gs) {
            return Err(Counter::SkippedGs);
        }
        if self.control().config.burst_checks == 0 && !self.is_resident() {
            return Ok(());
        }
        self.keep_frame(thread, uc)?;
        thread.old_gs = gs as u64;
        // SAFETY: gs is not used by the program, as checked above.
        unsafe { process::set_gs_base(thread.me as usize) };
        thread.origin = slot::BY_SIGNAL;
        thread.app_mask = uc.mask;
        uc.mask = !FAULTS;
        self.enter_at(thread, uc, pc);
        uc.regs.rip = entry::sonde_begin as *const () as u64;
        Ok(())
    }

    /// The thread is on our stack, its registers are in its context, all signals but faults are blocked: begins a burst
    /// at `pc` and returns where its copy is, or lets the thread go native again.
    fn begin(&self, thread: &mut Thread, pc: u64) -> u64 {
        if thread.origin & !slot::FAULTED == slot::BY_SONDE_NEW {
            let known = thread.resolve != 0;
            self.init_thread(thread);
            if !known {
                thread.buffer = -1;
            }
            self.control().count(Counter::Threads, 1);
        }
        if thread.origin != slot::BY_SIGNAL {
            self.control().count(Counter::Triggers, 1);
            if let Some(template) = *self.template.lock() {
                self.use_template(thread, &template);
            }
        }
        thread.frame.mask = thread.app_mask;
        // SAFETY: the stack lies in the context and lives as long as it.
        thread.app_stack = unsafe { signal::set_alternate_stack(&thread.signal_stack()) };
        thread.frame.stack = thread.app_stack;
        if let Err(counter) = self.start_burst(thread, pc) {
            self.control().count(counter, 1);
            if self.is_resident() {
                self.come_back_soon(thread);
            }
            self.go_native(thread, pc);
        }
        if self.is_resident() {
            let mask = thread.app_mask;
            self.keep_mask(thread, mask);
            let at = self.go_on(thread, pc);
            self.release_mask(thread);
            return at;
        }
        match self.enter_copy(thread, pc, &mut |_, _, _| {}) {
            Ok(at) => at,
            Err(cause) => self.leave(thread, pc, cause),
        }
    }

    /// Rewrites a signal context so that the thread goes on in the copy at `pc`.
    pub fn enter_at(&self, thread: &mut Thread, uc: &mut Context, pc: u64) {
        thread.app_r14 = uc.regs.r8_15[6];
        thread.app_r15 = uc.regs.r8_15[7];
        thread.save_rcx = uc.regs.rcx;
        uc.regs.r8_15[6] = pc;
        uc.regs.rip = entry::sonde_arrive as *const () as u64;
    }

    /// Whether a pc lies in the copy or the probe.
    pub fn is_ours(&self, pc: u64) -> bool {
        (self.probe.0..self.probe.1).contains(&pc) || self.in_cache(pc)
    }

    /// Whether a pc lies in the copy.
    pub fn in_cache(&self, pc: u64) -> bool {
        (self.cache.0..self.cache.1).contains(&pc)
    }
}

/// The copy asks for something; see [`why`]. Returns where in the copy to go on.
///
/// # Safety
/// `thread` is the context of the calling thread, whose registers it holds.
pub unsafe fn entered(thread: *mut Thread, arg: u64, reason: u64) -> u64 {
    let Some(engine) = engine() else {
        // The copy cannot run without an engine.
        loop {
            core::hint::spin_loop();
        }
    };
    // SAFETY: the assembly passes the context of this thread, which nobody else touches while it is here.
    let thread = unsafe { &mut *thread };
    if reason == why::BEGIN {
        return engine.begin(thread, arg);
    }
    if reason != why::ARRIVE && thread.version == RECORDING {
        thread.log = thread.copy_r15;
    } else if reason != why::ARRIVE {
        thread.app_r15 = thread.copy_r15;
    }
    // Whatever becomes of the thread, the reader finds what it has logged.
    engine.publish(thread);
    thread.called.store(0, Release);
    if matches!(reason, why::MISS | why::ARRIVE) && !engine.has_buffer(thread) {
        return engine.not_copied(thread, arg, Cause::Buffers);
    }
    // The number of an exit means something as long as the thread counts as inside.
    let exit = if matches!(reason, why::MISS | why::ARRIVE | why::END_INDIRECT) {
        None
    } else {
        engine.translator.lock().cache.exit(arg as u32)
    };
    let pc = exit.map_or(arg, |e| e.target);
    match reason {
        why::END_DIRECT | why::END_INDIRECT => engine.checks_used_up(thread, pc),
        why::LEAVE => {
            thread.inside.store(0, Release);
            let syscall = exit.is_some_and(|e| e.kind == 6);
            engine.not_copied(thread, pc, if syscall { Cause::Syscall } else { Cause::Instruction })
        }
        _ => engine.resolve(thread, pc, exit.as_ref()),
    }
}

impl Engine {
    /// The thread goes on at `pc`, where `exit` led to, or an indirect branch.
    fn resolve(&self, thread: &mut Thread, pc: u64, exit: Option<&ExitInfo>) -> u64 {
        let mut link = |translator: &mut Translator, sb: &Superblock, still: bool| match exit {
            Some(exit) if still => translator.cache.link(exit, sb),
            Some(_) => {}
            None => translator.cache.remember_indirect(sb),
        };
        match self.enter_copy(thread, pc, &mut link) {
            Ok(at) => {
                thread.next_pc = pc;
                at
            }
            Err(cause) => self.not_copied(thread, pc, cause),
        }
    }

    fn checks_used_up(&self, thread: &mut Thread, pc: u64) -> u64 {
        if self.control().config.policy == policy::COUNTER {
            return self.switch_version(thread, pc);
        }
        self.leave(thread, pc, Cause::Checks)
    }

    /// Counter mode (paper 4 section 2): from the checking version to the recording one, or back.
    fn switch_version(&self, thread: &mut Thread, pc: u64) -> u64 {
        let config = &self.control().config;
        let now = tsc();
        if thread.version == CHECKING {
            thread.version = RECORDING;
            thread.checks = config.burst_checks.max(1);
            thread.began = now;
            let begin = [thread.tid.load(Relaxed) as u64, now, thread.fs_base, pc];
            self.mark(thread, Kind::Begin, &begin, true);
            self.control().count(Counter::Bursts, 1);
        } else {
            thread.version = CHECKING;
            thread.checks = config.gap_checks.max(1);
            self.mark(thread, Kind::End, &[now, Cause::Checks as u64, pc], true);
            self.control().count(Counter::EndedByChecks, 1);
            self.control().count(Counter::BurstTicks, now.wrapping_sub(thread.began));
        }
        self.go_on(thread, pc)
    }

    /// The thread cannot go on in the copy at `pc`.
    pub fn not_copied(&self, thread: &mut Thread, pc: u64, cause: Cause) -> u64 {
        if self.is_resident() {
            if cause == Cause::Syscall {
                return self.syscall(thread, pc);
            }
            if cause == Cause::Instruction && self.raises(pc) {
                self.excursion(thread, pc);
            }
            self.come_back_soon(thread);
        }
        self.leave(thread, pc, cause)
    }

    /// A thread that was expected to come back by a signal did not: it is taken back where it is.
    fn end_excursion(&self, thread: &mut Thread, uc: &mut Context) {
        if !self.is_ours(uc.regs.rip) && uc.regs.rflags & TRAP_FLAG == 0 {
            let pc = uc.regs.rip;
            self.enter_at(thread, uc, pc);
        }
    }

    /// Whether the instruction at `pc`, which was just decoded, always raises a signal: int3, int1, int n, ud2, hlt.
    fn raises(&self, pc: u64) -> bool {
        // SAFETY: the planner read it.
        let bytes = unsafe { [*(pc as *const u8), *(pc as *const u8).wrapping_add(1)] };
        matches!(bytes, [0xcc | 0xf1 | 0xcd | 0xf4, _] | [0x0f, 0x0b])
    }

    /// A thread that has to go native for a while gets a trigger to be taken in again.
    pub fn come_back_soon(&self, thread: &mut Thread) {
        if thread.has_timer == 0
            && let Ok(timer) = Timer::for_thread(thread.tid.load(Relaxed), self.control().config.signal)
        {
            thread.timer = timer.id();
            thread.has_timer = 1;
        }
        let _ = Timer::from_id(thread.timer).arm(100_000, 0);
    }
}
