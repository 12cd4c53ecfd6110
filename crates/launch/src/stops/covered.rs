//! What is known of a thread that is stopped for bursts.

use super::moment::Moment;
use super::unfinished::Unfinished;
use crate::begin::ptrace;
use std::fs::File;

/// A thread under our control.
pub struct Covered {
    pub pid: i32,
    pub cpu: File,
    pub due_ns: u64,
    pub asked: bool,
    /// What tells whether it was in its own code when it was asked.
    pub moment: Moment,
    /// CPU time that it had used when it last went on with a signal.
    pub signalled_ns: u64,
    /// Signals that came while it was due.
    pub spared: u8,
    /// Stops in a row that let a system call of it begin anew.
    begun_anew: u32,
    /// What it still has to do of a system call that a stop cut short.
    pub unfinished: Option<Unfinished>,
}

/// After so many stops in a row that let a system call begin anew, a thread gets ever more time: the call must come to its end
/// all the same (fallocate on tmpfs, on older kernels).
const MOST_ANEW: u32 = 4;

/// Longer than 256 periods it never gets: what it does then would not be seen.
const MOST_DOUBLED: u32 = 8;

/// CPU time in which a thread that goes on with a signal is through with the beginning of its handler.
const HANDLER_NS: u64 = 20_000;
/// After so many signals a thread is stopped at the beginning of a handler, rather than not at all.
pub const MOST_SPARED: u8 = 8;

impl Covered {
    /// A thread that is due when it has used so much CPU time.
    pub fn new(pid: i32, cpu: File, due_ns: u64) -> Covered {
        Covered {
            pid,
            cpu,
            due_ns,
            asked: false,
            moment: Moment::default(),
            signalled_ns: 0,
            spared: 0,
            begun_anew: 0,
            unfinished: None,
        }
    }

    /// It was in a system call, or in code of ours: it is due again earlier.
    pub fn miss(&mut self, period_ns: u64) {
        self.begun_anew = 0;
        self.due_ns = self.due_ns.saturating_sub(period_ns / 2);
    }

    /// It was in a system call that begins anew: the same, but later if that is so again and again.
    pub fn miss_again(&mut self, period_ns: u64) {
        let before = self.begun_anew;
        self.miss(period_ns);
        self.begun_anew = before + 1;
        if let Some(more) = before.checked_sub(MOST_ANEW) {
            self.due_ns = self.due_ns.saturating_add(period_ns << more.min(MOST_DOUBLED));
        }
    }

    /// It stood where a burst can begin.
    pub fn meet(&mut self) {
        self.begun_anew = 0;
    }

    /// Where it makes the rest of a call: it has entered or left that, and goes on; or it is at the end, which whatever else
    /// it reports is, too.
    pub fn is_finishing(&mut self, tid: i32, at_call: bool) -> bool {
        let Some(call) = &mut self.unfinished else { return false };
        let more = at_call && call.step(tid);
        if !more {
            call.end(tid);
            self.unfinished = None;
        }
        if at_call {
            let on = if more { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
            let _ = ptrace(on, tid, 0, 0);
        }
        at_call
    }

    /// Whether it has just gone on with a signal: it would stop at the beginning of the handler, and handlers would seem to
    /// take more time than they do.
    pub fn is_to_be_spared(&self, cpu: u64) -> bool {
        self.spared < MOST_SPARED && cpu < self.signalled_ns.saturating_add(HANDLER_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_begins_anew_gets_time_to_end() {
        let mut thread = Covered::new(1, File::open("/dev/null").unwrap(), 0);
        let (period, needs) = (20_000_000, 1_000_000_000);
        let mut stops = 0;
        // Each time it uses what it is given, and is asked for the next time as usual.
        while thread.due_ns < needs {
            thread.due_ns = period;
            thread.miss_again(period);
            stops += 1;
            assert!(stops < 20, "{}", thread.due_ns);
        }
        assert!(stops > MOST_ANEW);
        thread.meet();
        thread.due_ns = period;
        thread.miss(period);
        assert_eq!(thread.due_ns, period / 2);
    }
}
