//! How a burst begins and ends, whoever asked for it.

use crate::cache::RECORDING;
use crate::code_map::Check;
use crate::entry;
use crate::state::Engine;
use crate::thread::Thread;
use crate::translate::code_at;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use sonde_sys::process;
use sonde_sys::time::tsc;
use sonde_wire::Counter;
use sonde_wire::control::{policy, trigger};
use sonde_wire::marker::{BEHIND_CALL, Cause, IN_FAULT, Kind};
use sonde_wire::slot;

/// Superblocks that a burst may translate, besides one for each 64 checks. In a program that runs ever new code, such as a
/// compiler, bursts of the default length translated for a millisecond each, a tenth of the time between them. What is
/// copied stays, so that the next burst there gets further.
const LEAST_COLD: u32 = 32;

/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

impl Engine {
    /// A burst of a thread begins at `pc`, or a reason why not.
    pub fn start_burst(&self, thread: &mut Thread, pc: u64) -> Result<(), Counter> {
        if !self.prepare_log(thread, self.is_resident()) {
            return Err(Counter::SkippedBuffers);
        }
        if !self.has_fresh_cache() {
            return Err(Counter::SkippedCode);
        }
        if !self.is_copyable(pc) {
            self.mark_unseen(thread, pc);
            return Err(Counter::SkippedCode);
        }
        let now = self.control().burst_checks_now.load(Relaxed);
        thread.checks = if now == 0 { self.control().config.burst_checks } else { now }.max(1);
        thread.may_translate =
            u32::try_from(thread.checks / 64).unwrap_or(u32::MAX).saturating_add(LEAST_COLD);
        thread.version = RECORDING;
        if !self.mark_begin(thread, pc) {
            return Err(Counter::SkippedBuffers);
        }
        self.active.fetch_add(1, AcqRel);
        self.hold_faults();
        thread.active.store(1, Relaxed);
        self.control().count(Counter::Bursts, 1);
        Ok(())
    }

    /// Logs that a burst begins at `pc`, and what it stands for. No if there is no room.
    fn mark_begin(&self, thread: &mut Thread, pc: u64) -> bool {
        thread.fs_base = process::fs_base() as u64;
        thread.began = tsc();
        let before = core::mem::replace(&mut thread.began_cpu, self.cpu_clock());
        let tid = thread.tid.load(Relaxed) as u64 | self.in_kernel(thread, pc);
        let begin = [tid, thread.began, thread.fs_base, pc];
        let marked = self.mark(thread, Kind::Begin, &begin, self.is_resident());
        if marked {
            self.mark_time(thread, before);
        }
        marked
    }

    /// The time of a thread is up in code that is never recorded: a burst without an instruction tells where that was.
    fn mark_unseen(&self, thread: &mut Thread, pc: u64) {
        if !self.is_resident() && self.mark_begin(thread, pc) {
            self.mark(thread, Kind::End, &[thread.began, Cause::Code as u64, pc], false);
        }
    }

    /// Whether the thread was in the kernel when the burst was asked for, as a flag for its begin.
    fn in_kernel(&self, thread: &Thread, pc: u64) -> u64 {
        if self.is_behind_call(pc) {
            BEHIND_CALL
        } else if thread.origin & slot::FAULTED != 0 && self.touches_memory(pc) {
            // The kernel comes back to the instruction that made the fault; one without memory operands made none.
            IN_FAULT
        } else {
            0
        }
    }

    /// What a burst stands for goes with it: whoever reads does so later, when the pace may be another one. It is the time
    /// since the last one of this thread, which can be many times what was asked for: triggers are as coarse as the
    /// kernel's tick, and on a busy machine Sonde comes late. The signals of other triggers do not, unless their pace
    /// changes, and count user time only, which this clock does not.
    fn mark_time(&self, thread: &mut Thread, before: u64) {
        let config = &self.control().config;
        let by_sonde = config.policy == policy::BURSTS && config.trigger == trigger::STOPS;
        let pace = match self.control().period_now.load(Relaxed) {
            0 if by_sonde => config.period_ns,
            now => now,
        };
        if pace != 0 {
            let since = thread.began_cpu.wrapping_sub(before);
            self.mark(thread, Kind::Pace, &[if before != 0 { since } else { pace }], self.is_resident());
        }
    }

    /// CPU time of this thread, for what bursts of a trigger cost: a time stamp also runs while others have the
    /// processor. It takes a system call (0.2 to 0.5 us), too much for the short bursts of counter mode, and one that a
    /// program under seccomp may not make, which only bursts of a trigger keep away from: 0 in resident modes.
    pub fn cpu_clock(&self) -> u64 {
        if self.is_resident() { 0 } else { sonde_sys::time::thread_cpu_ns() }
    }

    /// Makes sure that the cache holds no stale copy; no if others would have to leave it first.
    fn has_fresh_cache(&self) -> bool {
        if self.is_resident() {
            // Other threads are in the copy all the time, and changes of mappings are seen as they are made.
            return true;
        }
        let mut translator = self.translator.lock();
        let full = self.flush_wanted.load(Acquire) != 0;
        let changed = translator.code.refresh() == Check::Changed;
        if changed || full {
            if self.active.load(Acquire) != 0 {
                // Somebody runs in the copy: no new burst until it is empty.
                self.flush_wanted.store(1, Relaxed);
                return false;
            }
            translator.flush(self);
            self.flush_wanted.store(0, Relaxed);
        }
        true
    }

    /// Whether code is of a kind that is copied.
    fn is_copyable(&self, pc: u64) -> bool {
        self.translator.lock().code.find(pc).is_some_and(|range| range.cacheable)
    }

    /// Whether the instruction before `pc` is a system call: the burst was asked for while the kernel worked in it, since
    /// that a thread is stopped between the two in any other way is as rare as one instruction is among all.
    fn is_behind_call(&self, pc: u64) -> bool {
        let mut translator = self.translator.lock();
        code_at(&mut translator.code, pc.wrapping_sub(SYSCALL.len() as u64))
            .is_some_and(|bytes| bytes.starts_with(&SYSCALL))
    }

    fn touches_memory(&self, pc: u64) -> bool {
        let mut translator = self.translator.lock();
        code_at(&mut translator.code, pc).is_some_and(|bytes| sonde_x64::memory::is_touched_by(bytes, pc))
    }

    /// The thread goes native at `pc`; everything it has is in its context.
    pub fn leave(&self, thread: &mut Thread, pc: u64, cause: Cause) -> ! {
        if self.is_resident() {
            // The kernel lets signals in again together with the registers.
            self.refresh_frame(thread);
            self.requeue_pending(thread);
        }
        self.end_burst(thread, pc, cause);
        self.go_native(thread, pc)
    }

    /// Lets the kernel restore the program's registers, mask and alternate stack.
    pub fn go_native(&self, thread: &mut Thread, pc: u64) -> ! {
        thread.inside.store(0, Release);
        thread.mask_kept.store(0, Relaxed);
        let pc = self.native_at(thread, pc);
        self.fill_frame(thread, pc);
        // SAFETY: gs held nothing of the program.
        unsafe { process::set_gs_base(thread.old_gs as usize) };
        // SAFETY: the frame is complete.
        unsafe { entry::sonde_go_native(thread) }
    }

    /// Where the thread goes on natively at `pc`; if checks are counted there, their number begins anew.
    pub fn native_at(&self, thread: &mut Thread, pc: u64) -> u64 {
        let config = &self.control().config;
        if config.in_place == 0 {
            return pc;
        }
        thread.checks = config.gap_checks.max(1);
        let code = &mut self.translator.lock().code;
        if code.find(pc).is_some() { code.in_place.runs_at(pc) } else { pc }
    }

    /// Books the end of a burst. The mask and registers are the caller's business.
    pub fn end_burst(&self, thread: &mut Thread, pc: u64, cause: Cause) {
        let now = tsc();
        if thread.version == RECORDING {
            self.mark(thread, Kind::End, &[now, cause as u64, pc], false);
        }
        if self.is_resident() {
            // It may never come back, and others would wait for its buffer for ever.
            self.submit(thread);
        } else {
            self.publish(thread);
        }
        self.control().count(Counter::BurstTicks, now.wrapping_sub(thread.began));
        self.control().count(Counter::BurstCpuNs, self.cpu_clock().saturating_sub(thread.began_cpu));
        self.control().count(ended_by(cause), 1);
        if cause == Cause::CacheFull {
            self.flush_wanted.store(1, Relaxed);
        }
        self.release_faults();
        thread.active.store(0, Relaxed);
        self.active.fetch_sub(1, AcqRel);
    }
}

/// The counter of a cause.
pub fn ended_by(cause: Cause) -> Counter {
    match cause {
        Cause::Checks => Counter::EndedByChecks,
        Cause::Syscall => Counter::EndedBySyscall,
        Cause::Instruction => Counter::EndedByInstruction,
        Cause::Code => Counter::EndedByCode,
        Cause::Fault => Counter::EndedByFault,
        Cause::CacheFull => Counter::EndedByCacheFull,
        Cause::Buffers => Counter::EndedByBuffers,
        Cause::Stop | Cause::Exit => Counter::EndedByStop,
        Cause::Cold => Counter::EndedByCold,
    }
}
