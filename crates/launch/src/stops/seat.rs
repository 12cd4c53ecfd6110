//! Where Sonde waits for the moment in which it asks a thread: on the thread's own processor.
//!
//! A thread that runs on another processor stops some microseconds after it was asked, and if it enters the kernel meanwhile,
//! when it comes out again. So of code behind a system call the first microseconds are never seen, and what comes before the
//! next call is taken for the kernel's: two halves of 5 us between calls had 10 and 90 % of the samples. A thread that shares
//! its processor with Sonde has lost it at the interrupt that woke Sonde, and stands still exactly there.
//!
//! Only for that moment: elsewhere Sonde goes where there is room, so that whoever waits for it does not wait for others.
//! Never beside a thread of a real-time class, which would not let Sonde go on.

use std::mem::{size_of, zeroed};

/// Attempts to come to sit beside a thread that is due.
const MOST_TRIES: u8 = 3;

/// Sonde's place.
#[derive(Default)]
pub struct Seat {
    /// Processors that Sonde may use, while it is bound to one of them.
    all: Option<libc::cpu_set_t>,
    tries: u8,
}

impl Seat {
    /// Whether Sonde woke up on this processor, or will not come to. If not it is bound to it, and has to sleep before it looks
    /// again.
    pub fn is_at(&mut self, processor: usize) -> bool {
        // SAFETY: takes nothing.
        let here = unsafe { libc::sched_getcpu() };
        if here == processor as i32 && self.all.is_some() {
            return true;
        }
        self.tries += 1;
        self.tries > MOST_TRIES || !self.bind(processor)
    }

    fn bind(&mut self, processor: usize) -> bool {
        let Some(all) = self.all.or_else(allowed) else { return false };
        // SAFETY: a set of bits, all of which may be clear; the processor is one that sets have room for.
        let (only, is_allowed) = unsafe {
            let mut only: libc::cpu_set_t = zeroed();
            if processor >= 8 * size_of::<libc::cpu_set_t>() {
                return false;
            }
            libc::CPU_SET(processor, &mut only);
            (only, libc::CPU_ISSET(processor, &all))
        };
        let bound = is_allowed && set(&only);
        if bound {
            self.all = Some(all);
        }
        bound
    }

    /// The thread was asked, or is not to be.
    pub fn leave(&mut self) {
        self.tries = 0;
        if let Some(all) = self.all.take() {
            set(&all);
        }
    }
}

fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is written to a local of the size that is told.
    unsafe {
        let mut all: libc::cpu_set_t = zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut all) == 0).then_some(all)
    }
}

fn set(processors: &libc::cpu_set_t) -> bool {
    // SAFETY: of this thread alone; the set is read.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), processors) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_taken_and_given_back() {
        let count = |set: &libc::cpu_set_t| {
            // SAFETY: the set is read.
            unsafe { libc::CPU_COUNT(set) }
        };
        let before = count(&allowed().unwrap());
        // SAFETY: takes nothing.
        let here = unsafe { libc::sched_getcpu() } as usize;
        let mut seat = Seat::default();
        assert!(!seat.is_at(here), "it woke up here by chance");
        assert_eq!(count(&allowed().unwrap()), 1);
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(seat.is_at(here));
        seat.leave();
        assert_eq!(count(&allowed().unwrap()), before);
        assert!(seat.is_at(usize::MAX), "there is no such processor");
    }
}
