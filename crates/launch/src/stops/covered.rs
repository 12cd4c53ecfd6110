//! What is known of a thread that is stopped for bursts.

use super::unfinished::Unfinished;
use std::fs::File;

/// A thread under our control.
pub struct Covered {
    pub pid: i32,
    pub cpu: File,
    pub due_ns: u64,
    pub asked: bool,
    /// CPU time that it had used when it last went on with a signal.
    pub signalled_ns: u64,
    /// Signals that came while it was due.
    pub spared: u8,
    /// What it still has to do of a system call that a stop cut short.
    pub unfinished: Option<Unfinished>,
}

/// CPU time in which a thread that goes on with a signal is through with the beginning of its handler.
const HANDLER_NS: u64 = 20_000;
/// After so many signals a thread is stopped at the beginning of a handler, rather than not at all.
pub const MOST_SPARED: u8 = 8;

impl Covered {
    /// A thread that is due when it has used so much CPU time.
    pub fn new(pid: i32, cpu: File, due_ns: u64) -> Covered {
        Covered { pid, cpu, due_ns, asked: false, signalled_ns: 0, spared: 0, unfinished: None }
    }

    /// Whether it has just gone on with a signal: it would stop at the beginning of the handler, and handlers would seem to
    /// take more time than they do.
    pub fn is_to_be_spared(&self, cpu: u64) -> bool {
        self.spared < MOST_SPARED && cpu < self.signalled_ns.saturating_add(HANDLER_NS)
    }
}
