//! Where a thread really was when its time was up.
//!
//! A stop takes effect when the kernel goes back to the thread's code. A thread that was in a page fault then stands at the
//! instruction that made it, and one that waited for a processor where it had lost the last one, which for a thread that
//! makes many faults is mostly behind one of them, too. Such a stop tells of the kernel's time, not of the instruction's.
//!
//! So what the kernel counts is compared before the request and after the stop: a fault came to its end between the two if
//! there is one more; the thread had no processor if it got one. Those that make many faults are asked again then, at
//! another moment; a machine can be so busy that this never ends, so a few times only, and then the thread's faults since
//! the last burst decide. Others are taken as they are: what took the processor from them came at any moment.

use crate::thread_files::{cpu_ns, faults_of, slices};
use std::fs::File;

/// Requests in a row that find a thread without a processor, before it is taken as it is.
const MOST_WITHOUT: u8 = 4;
/// What a fault takes of the kernel's time, at least, in nanoseconds.
const FAULT_NS: u64 = 1000;

/// What was counted when a thread was asked, and when it last began a burst.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    faults: Option<u64>,
    slices: Option<u64>,
    begun: Option<(u64, u64)>,
    without: u8,
}

/// What a stop tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// The instruction that the thread stands at.
    Code,
    /// A page fault, if that instruction can have made one.
    Fault,
    /// Nothing: the thread had no processor.
    Nothing,
}

impl Moment {
    /// The thread is about to be asked: the last thing before the request.
    pub fn ask(&mut self, pid: i32, tid: i32, cpu: &File) {
        self.slices = slices(cpu);
        self.faults = faults_of(pid, tid);
    }

    /// Whether the thread makes so many faults that a stop in one of them is to be told from others.
    pub fn makes_faults(&self, pid: i32, tid: i32, cpu: u64) -> bool {
        let Some((before, since)) = self.begun else { return false };
        faults_of(pid, tid)
            .is_some_and(|faults| is_much(faults.saturating_sub(before), cpu.saturating_sub(since)))
    }

    /// The thread stands still.
    pub fn stop(&mut self, pid: i32, tid: i32, cpu: &File) -> Tells {
        let now = (faults_of(pid, tid), slices(cpu), cpu_ns(cpu));
        let (Some(faults), Some(slices), Some(cpu)) = now else { return Tells::Code };
        let tells = self.judge(faults, slices, cpu);
        if tells != Tells::Nothing {
            self.begun = Some((faults, cpu));
            self.without = 0;
        }
        tells
    }

    fn judge(&mut self, faults: u64, slices: u64, cpu: u64) -> Tells {
        let is_more = |asked: Option<u64>, now: u64| asked.is_some_and(|asked| now > asked);
        if !is_more(self.slices, slices) {
            return if is_more(self.faults, faults) { Tells::Fault } else { Tells::Code };
        }
        let (before, since) = self.begun.unwrap_or((faults, cpu));
        let (more, all) = (faults.saturating_sub(before), cpu.saturating_sub(since));
        if !is_much(more, all) {
            return Tells::Code;
        }
        self.without += 1;
        if self.without <= MOST_WITHOUT {
            return Tells::Nothing;
        }
        // More often than not it was in one.
        if more.saturating_mul(FAULT_NS) > all / 4 { Tells::Fault } else { Tells::Code }
    }
}

/// Whether so many faults are a part of so much CPU time that matters.
fn is_much(faults: u64, cpu: u64) -> bool {
    faults.saturating_mul(FAULT_NS) > cpu / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(faults: u64, slices: u64) -> Moment {
        Moment { faults: Some(faults), slices: Some(slices), ..Moment::default() }
    }

    #[test]
    fn a_fault_that_ends_before_the_stop_is_what_the_thread_was_in() {
        assert_eq!(asked(10, 5).judge(10, 5, 1000), Tells::Code);
        assert_eq!(asked(10, 5).judge(11, 5, 1000), Tells::Fault);
        assert_eq!(Moment::default().judge(11, 5, 1000), Tells::Code, "nothing is known");
    }

    #[test]
    fn a_thread_that_makes_faults_and_has_no_processor_is_asked_again_a_few_times() {
        let mut moment = Moment { begun: Some((0, 0)), ..asked(10, 5) };
        assert_eq!(moment.judge(10, 6, 20_000_000), Tells::Code, "it makes few faults");
        for _ in 0..MOST_WITHOUT {
            assert_eq!(moment.judge(3_000, 6, 20_000_000), Tells::Nothing);
        }
        assert_eq!(moment.judge(3_000, 6, 20_000_000), Tells::Code);
        assert_eq!(moment.judge(20_000, 6, 20_000_000), Tells::Fault, "it does little else");
    }
}
