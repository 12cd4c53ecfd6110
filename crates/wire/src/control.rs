//! The control page.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// First word of the control page.
pub const MAGIC: u64 = 0x0000_3165_646e_6f53;
/// Most log buffers.
pub const MAX_BUFFERS: usize = 256;
/// Bytes behind each log buffer that the program cannot write; larger than any record.
pub const GUARD: u64 = 4096;

/// When to record.
pub mod policy {
    /// Bursts started by a trigger; native between them.
    pub const BURSTS: u32 = 0;
    /// From the first instruction to the last.
    pub const ALWAYS: u32 = 1;
    /// The deterministic two-version scheme of paper 4.
    pub const COUNTER: u32 = 2;
}

/// Who raises the trigger signal.
pub mod trigger {
    /// Nobody, or somebody outside the program (perf events).
    pub const OUTSIDE: u32 = 0;
    /// A timer on the thread's CPU time, armed by the probe.
    pub const TIMER: u32 = 1;
    /// Nobody: Sonde stops threads and sets their registers; the program sees no signal.
    pub const STOPS: u32 = 2;
}

/// What to do; written by Sonde before the probe starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// One of [`policy`].
    pub policy: u32,
    /// 0 blocks, 1 + addresses, 2 + values.
    pub detail: u32,
    /// Checks per burst (`nInstr0` in counter mode).
    pub burst_checks: u64,
    /// Checks between bursts in counter mode (`nCheck0`).
    pub gap_checks: u64,
    /// One of [`trigger`].
    pub trigger: u32,
    /// Signal that starts a burst.
    pub signal: i32,
    /// CPU time between bursts.
    pub period_ns: u64,
    /// By how much the period varies at random, in thousandths.
    pub jitter: u32,
    /// Process id of Sonde.
    pub sonde: i32,
    /// Bytes of code cache.
    pub cache_bytes: u64,
    /// Seed for the random gaps.
    pub seed: u64,
    /// Whether checks are counted in the program's own code ([`crate::in_place`]), and begin bursts.
    pub in_place: u32,
}

/// What is counted. Nothing is lost silently: each way of not recording something has its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Triggers that reached the probe.
    Triggers,
    /// Bursts begun.
    Bursts,
    /// Bursts that used up their checks.
    EndedByChecks,
    /// Bursts that ended before a system call.
    EndedBySyscall,
    /// Bursts that ended at an instruction the copy does not run.
    EndedByInstruction,
    /// Bursts that ended at code that is not cached (writable, anonymous, unmapped).
    EndedByCode,
    /// Bursts that ended because of a fault of the program.
    EndedByFault,
    /// Bursts that ended because the code cache was full.
    EndedByCacheFull,
    /// Bursts that ended because no log buffer was free.
    EndedByBuffers,
    /// Bursts that ended because Sonde said so or was gone.
    EndedByStop,
    /// Triggers in threads that use gs themselves.
    SkippedGs,
    /// Triggers with a floating-point state we cannot save.
    SkippedState,
    /// Triggers without a free log buffer.
    SkippedBuffers,
    /// Triggers without room for another thread.
    SkippedThreads,
    /// Triggers at code that is not cached.
    SkippedCode,
    /// Superblocks translated.
    Superblocks,
    /// Instructions in them.
    SuperblockInsns,
    /// Blocks in them (runs that end in a branch).
    SuperblockBlocks,
    /// Bytes of copy emitted.
    CodeBytes,
    /// Time spent translating, in time-stamp ticks.
    TranslateTicks,
    /// Time spent between the begin and the end of bursts, in time-stamp ticks: wall time.
    BurstTicks,
    /// Times the whole cache was thrown away.
    Flushes,
    /// Times the program waited for a free buffer.
    Waits,
    /// Threads that got a context.
    Threads,
    /// Signals handled while recording.
    Signals,
    /// System calls run while recording.
    Syscalls,
    /// Words in full or partial buffers, for the reader to compare.
    LogBytes,
    /// Log bytes lost because no buffer could be had.
    LostBytes,
    /// Children started natively.
    Children,
    /// Faults handed to the program's own handler.
    ForwardedFaults,
    /// Triggers in threads under seccomp, where the engine's system calls could end the program.
    SkippedSeccomp,
    /// CPU time of threads between the begin and the end of bursts of a trigger, in nanoseconds. Policies that keep
    /// threads in the copy do not count it.
    BurstCpuNs,
    /// Checks that were left out of copies, by the table of branches without one.
    ChecksLeftOut,
    /// Superblocks of the checking version, from files that the table does not know, while a table is in force.
    NotAnalysed,
    /// Times that the engine took over which loads are wanted.
    Watched,
    /// Superblocks that were given up then, because they record too much or too little.
    Rewatched,
    /// Bursts that ended because too much of their code had to be translated.
    EndedByCold,
    /// Triggers after which Sonde did not say in time that the thread may make system calls.
    SkippedUnanswered,
}

/// Number of counters reserved.
pub const COUNTERS: usize = 64;

/// State of one log buffer.
#[repr(C)]
pub struct Buffer {
    /// One of [`state`].
    pub state: AtomicU32,
    /// Thread that fills or filled it.
    pub tid: AtomicI32,
    /// Bytes of whole records.
    pub used: AtomicU64,
    /// Order in which it was filled.
    pub order: AtomicU64,
}

/// Life of a buffer.
pub mod state {
    /// Free.
    pub const FREE: u32 = 0;
    /// A thread writes to it.
    pub const OWNED: u32 = 1;
    /// Waits for the reader.
    pub const FULL: u32 = 2;
}

/// The control page.
#[repr(C)]
pub struct Control {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// Regions of the file.
    pub regions: Regions,
    /// Configuration.
    pub config: Config,
    /// Set by Sonde: no more bursts.
    pub stop: AtomicU32,
    /// Set by the probe once it is ready.
    pub ready: AtomicU32,
    /// Changes when a buffer became full; the reader waits on it.
    pub full_signal: AtomicU32,
    /// Changes when a buffer became free; the program waits on it.
    pub free_signal: AtomicU32,
    /// Next fill order.
    pub order: AtomicU64,
    /// Descriptor bytes published.
    pub described: AtomicU64,
    /// Descriptor bytes read.
    pub descriptions_read: AtomicU64,
    /// Exit numbers used so far; a new image of the program (exec) goes on from here.
    pub exits_used: AtomicU64,
    /// Counters by [`Counter`].
    pub counters: [AtomicU64; COUNTERS],
    /// Addresses in the program: the code cache.
    pub cache_start: AtomicU64,
    /// End of the code cache.
    pub cache_end: AtomicU64,
    /// Start of the thread contexts.
    pub pool: AtomicU64,
    /// Where a thread that is interrupted from outside enters the engine.
    pub begin_at: AtomicU64,
    /// The probe's own mapping.
    pub probe_start: AtomicU64,
    /// End of the probe's own mapping.
    pub probe_end: AtomicU64,
    /// Adapted burst length; 0 means the configured one.
    pub burst_checks_now: AtomicU64,
    /// Adapted period; 0 means the configured one.
    pub period_now: AtomicU64,
    /// Changes when other loads are wanted; 0 while all are ([`crate::unwatched`]).
    pub unwatched_generation: AtomicU64,
    /// The hash function of the table of loads that are not wanted.
    pub unwatched_function: AtomicU32,
    /// Questions of interrupted threads ([`crate::asks`]); 0 where there is none.
    pub asks: [AtomicU64; crate::asks::PLACES],
    /// Buffer states.
    pub buffers: [Buffer; MAX_BUFFERS],
}

impl Control {
    /// Adds to a counter.
    pub fn count(&self, counter: Counter, by: u64) {
        self.counters[counter as usize].fetch_add(by, core::sync::atomic::Ordering::Relaxed);
    }

    /// Reads a counter.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(core::sync::atomic::Ordering::Relaxed)
    }
}

/// A stretch of the shared file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Offset in the file.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// Bytes of the tables that only some runs have; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// See [`Regions::unchecked`].
    pub unchecked: u64,
    /// See [`Regions::unwatched`].
    pub unwatched: u64,
    /// See [`Regions::in_place`].
    pub in_place: u64,
}

/// Where everything lies in the shared file.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Ring of superblock descriptions.
    pub descriptors: Region,
    /// Table of branches without a check ([`crate::checks`]); empty if all keep theirs.
    pub unchecked: Region,
    /// Table of loads that need not be recorded ([`crate::unwatched`]); empty if all are recorded.
    pub unwatched: Region,
    /// What was changed in the program's code ([`crate::in_place`]); empty if nothing is.
    pub in_place: Region,
    /// First log buffer; the others follow at distance `stride`.
    pub buffers: Region,
    /// Distance between buffers, the guard included.
    pub stride: u64,
    /// Number of buffers.
    pub count: u64,
}

impl Regions {
    /// Lays out a file for `count` buffers of `bytes` each (guard included), a descriptor ring and tables.
    pub fn new(descriptor_bytes: u64, tables: Tables, count: u64, bytes: u64) -> Regions {
        let mut end = (size_of::<Control>() as u64).next_multiple_of(4096);
        let mut region = |bytes: u64| {
            let region = Region { start: end, len: bytes.next_multiple_of(4096) };
            end += region.len;
            region
        };
        let descriptors = region(descriptor_bytes);
        let unchecked = region(tables.unchecked);
        let unwatched = region(tables.unwatched);
        let in_place = region(tables.in_place);
        let stride = bytes.next_multiple_of(4096);
        let buffers = region(stride * count);
        Regions { descriptors, unchecked, unwatched, in_place, buffers, stride, count }
    }

    /// Size of the file.
    pub fn file_len(&self) -> u64 {
        self.buffers.start + self.buffers.len
    }

    /// Offset of buffer `i` in the file.
    pub fn buffer(&self, i: u64) -> u64 {
        self.buffers.start + i * self.stride
    }

    /// Bytes of a buffer that can be written.
    pub fn buffer_len(&self) -> u64 {
        self.stride - GUARD
    }
}

/// Names the whole mapping; a type for documentation's sake.
pub type Shared = [u8];
