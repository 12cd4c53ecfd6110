//! Policies that keep threads in the copy from their first instruction to their last.

use crate::entry;
use crate::state::Engine;
use crate::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use sonde_sys::process;
use sonde_sys::signal;
use sonde_wire::Counter;
use sonde_wire::marker::Kind;

/// Whether a thread is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is.
    Yes,
    /// It is not, or cannot be.
    No,
}

/// Takes the calling process over from `pc` on, if the policy asks for it: returns where its thread has to go on and
/// its log pointer. None if the policy lets it run natively.
pub fn adopt(engine: &'static Engine, pc: u64) -> Option<(u64, u64)> {
    if !engine.is_resident() {
        return None;
    }
    engine.take_actions();
    engine.translator.lock().look_at_code();
    let thread = engine.thread_of(process::gettid())?;
    thread.gpr = [0; 16];
    (thread.app_r14, thread.app_r15, thread.save_rcx, thread.old_gs) = (0, 0, 0, 0);
    if engine.take_in(thread, pc) == Wanted::No {
        return None;
    }
    engine.active.fetch_add(1, AcqRel);
    // SAFETY: the program has not run yet, so that it does not use gs.
    unsafe { process::set_gs_base(thread.me as usize) };
    Some((entry::sonde_arrive as *const () as u64, thread.log))
}

impl Engine {
    /// Prepares a thread to be recorded from `pc` on: log, frame, begin marker.
    pub fn take_in(&self, thread: &mut Thread, pc: u64) -> Wanted {
        let Some(template) = *self.template.lock() else { return Wanted::No };
        self.use_template(thread, &template);
        if !self.prepare_log(thread, true) {
            return Wanted::No;
        }
        thread.fs_base = process::fs_base() as u64;
        thread.began = sonde_sys::time::tsc();
        let config = &self.control().config;
        let counter = config.policy == sonde_wire::control::policy::COUNTER;
        thread.version = if counter { crate::cache::CHECKING } else { crate::cache::RECORDING };
        thread.checks = if counter { config.gap_checks } else { config.burst_checks }.max(1);
        let begin = [thread.tid.load(Relaxed) as u64, thread.began, thread.fs_base, pc];
        if !counter && !self.mark(thread, Kind::Begin, &begin, true) {
            return Wanted::No;
        }
        // SAFETY: the stack lies in the context and lives as long as it.
        thread.app_stack = unsafe { signal::set_alternate_stack(&thread.signal_stack()) };
        thread.active.store(1, Relaxed);
        self.control().count(Counter::Bursts, u64::from(!counter));
        Wanted::Yes
    }

    /// The program changed mappings that may hold code: copies of it are forgotten. `executable`: whether there may be code
    /// where none was.
    pub fn code_changed(&self, at: u64, len: u64, executable: bool) {
        let mut translator = self.translator.lock();
        let end = at.saturating_add(len);
        if !executable && !translator.code.holds_any(at, end) {
            // Most calls are about data; the list of mappings need not be read for those.
            return;
        }
        let affected = translator.code.overlaps(at, end);
        if translator.look_at_code() || affected {
            translator.forget(self);
        }
    }

    /// The program ends: lets the other threads hand over what they logged. Those that are in the engine or in system calls have done so; those in the
    /// copy come to the engine at the next exit of the superblock that they are in, since no copy leads to another any more.
    /// Not by a signal: the program may wait for it, or see it pending.
    pub fn call_in_others(&self, thread: &Thread) {
        let (pid, me) = (self.pid.load(Relaxed), thread.tid.load(Relaxed));
        let others = |f: &mut dyn FnMut(&Thread)| {
            self.pool.for_each(|other| {
                // SAFETY: contexts are never unmapped; only atomic fields are touched.
                let other = unsafe { &*other };
                let tid = other.tid.load(Relaxed);
                let inside = other.active.load(Relaxed) != 0 && other.inside.load(Acquire) != 0;
                if tid != me && inside && process::thread_exists(pid, tid) {
                    f(other);
                }
            });
        };
        let mut any = false;
        others(&mut |other| {
            other.called.store(1, Release);
            any = true;
        });
        if !any {
            return;
        }
        self.translator.lock().cache.lead_out();
        // A thread that does not get the processor does not answer; the program's end must not wait for it for long.
        for _ in 0..200 {
            let mut waiting = false;
            others(&mut |other| waiting |= other.called.load(Acquire) != 0);
            if !waiting {
                break;
            }
            process::yield_now();
        }
    }
}
