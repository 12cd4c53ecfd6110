//! What to record, and when.

use sonde_checks::Scheme;
use sonde_event::Detail;
use std::time::Duration;

/// When to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Bursts of `checks` checks, about every `period` of a thread's CPU time.
    Bursts {
        /// CPU time between bursts.
        period: Duration,
        /// Checks per burst.
        checks: u64,
    },
    /// Everything, from the first instruction to the last.
    Always,
    /// `gap` checks without recording, then `checks` with it, counted in the code (paper 4).
    Counter {
        /// nCheck0.
        gap: u64,
        /// nInstr0.
        checks: u64,
    },
}

/// What starts a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The best this machine allows.
    Auto,
    /// Threads stopped for a moment through ptrace.
    Stops,
    /// Perf events on the CPU clock.
    Perf,
    /// Timers on the CPU time of each thread.
    Timer,
}

/// How the probe gets into the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// Through ptrace if that is allowed, else by the dynamic loader.
    Auto,
    /// Placed through ptrace before the first instruction.
    Ptrace,
    /// Mapped by the dynamic loader (LD_PRELOAD).
    Preload,
}

/// Everything that can be chosen for a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When to record.
    pub policy: Policy,
    /// Which checks counter mode keeps (paper 4 section 4).
    pub scheme: Scheme,
    /// Whether counter mode counts checks in the program's own code, which is changed for that, instead of in a copy.
    pub in_place: bool,
    /// What to record.
    pub detail: Detail,
    /// What starts a burst.
    pub trigger: Trigger,
    /// How the probe gets in.
    pub loader: Loader,
    /// Whether only loads are recorded, and of those not the ones that the reader does not want any more
    /// ([`sonde_event::Reader::unwatched`]). Everything else has neither address nor value.
    pub live_masks: bool,
    /// By how much the period varies at random, in thousandths of it.
    pub random_gap: u32,
    /// Limit on the memory of the probe: code cache, log buffers, descriptions.
    pub max_memory: u64,
    /// Seed of the random gaps.
    pub seed: u64,
    /// The share of the program's own CPU time that profiling may cost, all in all; bursts get rarer where it costs more.
    pub max_overhead: Option<f64>,
    /// Whether child processes are recorded too; needs the stops trigger.
    pub follow: bool,
    /// Most child processes that are recorded at a time. Each has a probe with its own memory.
    pub most_processes: usize,
}

/// Default CPU time between bursts: what it costs grows with their number, and the error of a share falls with its square
/// root only (bench/results/overhead.md).
pub const DEFAULT_PERIOD: Duration = Duration::from_millis(20);

/// Default share of the program's CPU time that profiling may cost (bench/results/overhead.md).
pub const DEFAULT_MAX_OVERHEAD: f64 = 0.025;

/// Default limit on the memory of the probe.
pub const DEFAULT_MEMORY: u64 = 256 << 20;

/// Default limit on followed processes.
pub const MOST_PROCESSES: usize = 256;

impl Default for Options {
    fn default() -> Self {
        Options {
            policy: Policy::Bursts { period: DEFAULT_PERIOD, checks: 1000 },
            scheme: Scheme::default(),
            in_place: false,
            detail: Detail::Values,
            trigger: Trigger::Auto,
            loader: Loader::Auto,
            live_masks: false,
            random_gap: 500,
            max_memory: DEFAULT_MEMORY,
            seed: 1,
            max_overhead: None,
            follow: false,
            most_processes: MOST_PROCESSES,
        }
    }
}
