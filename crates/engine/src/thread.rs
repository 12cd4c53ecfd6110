//! The context of a recorded thread: what the copy reaches through gs.

use crate::whole::WholeTable;
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU32};
use sonde_sys::signal::Context;
use sonde_wire::slot;
use sonde_x64::emit::{Layout, Way, Whole};

/// Bytes of the private stack on which translation runs (programs have 16 KB stacks, and less is left of them).
pub const STACK_BYTES: usize = 64 << 10;
/// Room for the floating-point state of a signal frame.
pub const STATE_BYTES: usize = 12 << 10;

/// One thread's context. The copy addresses its fields by their offsets from gs.
#[repr(C, align(64))]
pub struct Thread {
    /// Its own address. The fields up to `origin` are [`sonde_wire::slot::Head`].
    pub me: u64,
    /// Top of the private stack.
    pub stack_top: u64,
    /// The program's r14 while the copy runs.
    pub app_r14: u64,
    /// The program's r15 while the copy runs.
    pub app_r15: u64,
    /// gs base before the burst.
    pub old_gs: u64,
    /// The program's signal mask: when a burst began, or while `mask_kept` says so.
    pub app_mask: u64,
    /// Whose context this is; 0 = free.
    pub tid: AtomicI32,
    /// Whether the thread runs in the copy.
    pub active: AtomicU32,
    /// Who began the burst: see [`sonde_wire::slot`].
    pub origin: u64,
    /// rcx during lookups.
    pub save_rcx: u64,
    /// Registers borrowed by rewritten instructions.
    pub spill: [u64; 3],
    /// Checks left.
    pub checks: u64,
    /// Entry points of the engine, for the copy.
    pub resolve: u64,
    /// See [`Layout::end_direct`].
    pub end_direct: u64,
    /// See [`Layout::end_indirect`]; the pointer for misses must follow.
    pub end_indirect: u64,
    /// See [`sonde_x64::emit::INDIRECT_MISS`].
    pub indirect_miss: u64,
    /// See [`Layout::leave`].
    pub leave: u64,
    /// See [`sonde_x64::emit::Whole::target`].
    pub target: u64,
    /// See [`sonde_x64::emit::Whole::missed`].
    pub missed: u64,
    /// See [`sonde_x64::emit::Whole::missed_return`].
    pub missed_return: u64,
    /// See [`sonde_x64::emit::Whole::none_left`].
    pub none_left: u64,
    /// What the copy asked for: an exit number or a pc.
    pub arg: u64,
    /// The log pointer while the engine runs.
    pub log: u64,
    /// r15 as the copy had it, or is to have it: the log pointer, or where nothing is recorded the program's own.
    pub copy_r15: u64,
    /// Where the copy goes on.
    pub next: u64,
    /// Flags while the engine runs.
    pub flags: u64,
    /// General registers while the engine runs, by hardware number (r14 and r15 are above).
    pub gpr: [u64; 16],
    /// xmm0 to xmm15 while the engine runs.
    pub xmm: [[u64; 2]; 16],
    /// Address of `frame`, for leaving.
    pub frame_at: u64,
    /// Address of the state area, 64-byte aligned.
    pub state_at: u64,
    /// Features to save there.
    pub state_features: u64,
    /// The frame with which the thread goes native.
    pub frame: Context,
    /// Index of its log buffer, or -1.
    pub buffer: i32,
    /// fs base as last logged.
    pub fs_base: u64,
    /// Time stamp of the burst's begin.
    pub began: u64,
    /// CPU time of the thread at the burst's begin, where that is measured: see [`crate::state::Engine::cpu_clock`].
    pub began_cpu: u64,
    /// Superblocks that this burst may still translate.
    pub may_translate: u32,
    /// Random state.
    pub random: u64,
    /// Timer id plus one, 0 if there is none.
    pub timer: i32,
    /// Whether the thread has a timer.
    pub has_timer: u32,
    /// The program's alternate signal stack, while ours is in place.
    pub app_stack: [u64; 3],
    /// Fault signals that the program believes it blocks; really they are not, because we need them.
    pub blocked_faults: u64,
    /// A fault signal that was sent while the program blocks it; signal number 0 if there is none.
    pub held: Pending,
    /// Signals that arrived while they could not be delivered, with their information.
    pub pending: [Pending; 4],
    /// How many. The assembly looks at it right before the thread goes on.
    pub pending_count: AtomicU32,
    /// Whether all signals are blocked by us; the mask that the program has is `app_mask` then.
    pub mask_kept: AtomicU32,
    /// The pc at which the thread resumes after a return from a signal handler.
    pub resume_pc: u64,
    /// The pc of the system call at hand.
    pub syscall_pc: u64,
    /// Its number.
    pub syscall_nr: u64,
    /// Set while the thread is asked to come to the engine and publish its log, because the program ends.
    pub called: AtomicU32,
    /// Set while a child has not yet read its pc from here.
    pub child_waiting: AtomicU32,
    /// The program's pc at which the copy goes on, for signals that come while the engine resumes it.
    pub next_pc: u64,
    /// Whether the thread single-steps to the next clean point.
    pub stepping: u32,
    /// Which version of the code it runs: see [`crate::cache::RECORDING`].
    pub version: u8,
    /// 1 from when a place in the copy was chosen for the thread until it is known to have come out.
    pub inside: AtomicU32,
}

/// A signal to be delivered at the next block boundary.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pending {
    /// Its `siginfo`.
    pub info: [u64; 16],
}

impl Pending {
    /// A signal that this process sends itself.
    pub fn sent(sig: i32) -> Pending {
        let mut info = [0; 16];
        info[0] = sig as u64;
        Pending { info }
    }

    /// The signal.
    pub fn number(&self) -> i32 {
        self.info[0] as i32
    }

    /// Whether an instruction raised it; else somebody sent it.
    pub fn is_raised(&self) -> bool {
        self.info[1] as i32 > 0
    }

    /// Where, if it is a fault.
    pub fn address(&self) -> u64 {
        self.info[2]
    }
}

/// Offsets that the assembly of [`crate::entry`] uses.
pub mod offset {
    use super::*;
    /// See [`Thread::me`].
    pub const ME: usize = offset_of!(Thread, me);
    /// See [`Thread::stack_top`].
    pub const STACK_TOP: usize = offset_of!(Thread, stack_top);
    /// See [`Thread::arg`].
    pub const ARG: usize = offset_of!(Thread, arg);
    /// See [`Thread::log`].
    pub const LOG: usize = offset_of!(Thread, log);
    /// See [`Thread::copy_r15`].
    pub const COPY_R15: usize = offset_of!(Thread, copy_r15);
    /// See [`Thread::version`].
    pub const VERSION: usize = offset_of!(Thread, version);
    /// See [`Thread::next`].
    pub const NEXT: usize = offset_of!(Thread, next);
    /// See [`Thread::flags`].
    pub const FLAGS: usize = offset_of!(Thread, flags);
    /// See [`Thread::gpr`].
    pub const GPR: usize = offset_of!(Thread, gpr);
    /// See [`Thread::xmm`].
    pub const XMM: usize = offset_of!(Thread, xmm);
    /// See [`Thread::frame_at`].
    pub const FRAME_AT: usize = offset_of!(Thread, frame_at);
    /// See [`Thread::state_at`].
    pub const STATE_AT: usize = offset_of!(Thread, state_at);
    /// See [`Thread::state_features`].
    pub const STATE_FEATURES: usize = offset_of!(Thread, state_features);
    /// See [`Thread::app_r14`].
    pub const APP_R14: usize = offset_of!(Thread, app_r14);
    /// See [`Thread::app_r15`].
    pub const APP_R15: usize = offset_of!(Thread, app_r15);
    /// See [`Thread::save_rcx`].
    pub const SAVE_RCX: usize = offset_of!(Thread, save_rcx);
    /// See [`Thread::target`].
    pub const TARGET: usize = offset_of!(Thread, target);
    /// See [`Thread::pending_count`].
    pub const PENDING: usize = offset_of!(Thread, pending_count);
    /// See [`Thread::resume_pc`].
    pub const RESUME_PC: usize = offset_of!(Thread, resume_pc);
}

/// The layout that the emitter needs, with the jump table at `table`.
pub fn layout(table: u32) -> Layout {
    let spill = offset_of!(Thread, spill) as u32;
    Layout {
        app_r14: offset_of!(Thread, app_r14) as u32,
        app_r15: offset_of!(Thread, app_r15) as u32,
        save_rcx: offset_of!(Thread, save_rcx) as u32,
        spill: [spill, spill + 8, spill + 16],
        checks: offset_of!(Thread, checks) as u32,
        resolve: offset_of!(Thread, resolve) as u32,
        end_direct: offset_of!(Thread, end_direct) as u32,
        end_indirect: offset_of!(Thread, end_indirect) as u32,
        leave: offset_of!(Thread, leave) as u32,
        table,
        whole: None,
    }
}

/// What the emitter needs for a table by the whole pc, with the entry points at `entries` and the stubs at `stubs`.
pub fn whole(entries: [u32; Way::COUNT], stubs: u64) -> Whole {
    Whole {
        numbers: WholeTable::NUMBERS,
        entries,
        target: offset_of!(Thread, target) as u32,
        missed: offset_of!(Thread, missed) as u32,
        missed_return: offset_of!(Thread, missed_return) as u32,
        none_left: offset_of!(Thread, none_left) as u32,
        stubs,
    }
}

pub use sonde_wire::slot::{MAX_THREADS, SLOT_BYTES};

const _: () = assert!(offset_of!(Thread, origin) == 56 && offset_of!(Thread, tid) == slot::TID);
// Stubs in the program's own code use these.
const _: () = assert!(
    offset_of!(Thread, save_rcx) == slot::SAVE
        && offset_of!(Thread, checks) == slot::CHECKS
        && offset_of!(Thread, target) == slot::TARGET
        && offset_of!(Thread, app_r14) == slot::APP_R14
);

impl Thread {
    /// The alternate stack on which our handlers run: the program's own may be small, or be in use.
    pub fn signal_stack(&self) -> [u64; 3] {
        [self.me + (20 << 10), 0, 40 << 10]
    }
}

/// The contexts, in one mapping so that a gs base can be recognised as ours.
pub struct Pool {
    /// Start of the mapping.
    pub base: usize,
}

impl Pool {
    /// Maps the address space; pages are used as threads come.
    pub fn new() -> Option<Pool> {
        use sonde_sys::memory::*;
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let base = mmap(0, slot::POOL_BYTES, PROT_READ | PROT_WRITE, flags, -1).ok()?;
        Some(Pool { base })
    }

    /// Whether an address is the start of a context.
    pub fn owns(&self, at: usize) -> bool {
        at >= self.base
            && at < self.base + MAX_THREADS * SLOT_BYTES
            && (at - self.base).is_multiple_of(SLOT_BYTES)
    }

    fn slot(&self, i: usize) -> *mut Thread {
        (self.base + i % MAX_THREADS * SLOT_BYTES) as *mut Thread
    }

    /// The tid stored in slot `i`.
    fn tid(&self, i: usize) -> &AtomicI32 {
        // SAFETY: the slot lies in our mapping, which starts zeroed; the field is only touched atomically.
        unsafe { &(*self.slot(i)).tid }
    }

    /// The context of thread `tid`, if it has one.
    pub fn find(&self, tid: i32) -> Option<*mut Thread> {
        use core::sync::atomic::Ordering::Acquire;
        for i in (0..MAX_THREADS).map(|k| tid as usize + k) {
            match self.tid(i).load(Acquire) {
                t if t == tid => return Some(self.slot(i)),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// The context of thread `tid`, made if there is none; the flag says whether it is new. Slots of threads that are
    /// gone are taken over.
    pub fn find_or_make(&self, pid: i32, tid: i32) -> Option<(*mut Thread, bool)> {
        use core::sync::atomic::Ordering::{AcqRel, Acquire};
        if let Some(found) = self.find(tid) {
            return Some((found, false));
        }
        for i in (0..MAX_THREADS).map(|k| tid as usize + k) {
            let old = self.tid(i).load(Acquire);
            if old != 0 && sonde_sys::process::thread_exists(pid, old) {
                continue;
            }
            if self.tid(i).compare_exchange(old, tid, AcqRel, Acquire).is_ok() {
                return Some((self.slot(i), true));
            }
        }
        None
    }

    /// Calls `f` for every context in use.
    pub fn for_each(&self, mut f: impl FnMut(*mut Thread)) {
        use core::sync::atomic::Ordering::Acquire;
        for i in 0..MAX_THREADS {
            if self.tid(i).load(Acquire) != 0 {
                f(self.slot(i));
            }
        }
    }
}
