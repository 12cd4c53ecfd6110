//! CPU-time timers and clocks.

use crate::{Errno, syscall};

/// Monotonic nanoseconds.
pub fn monotonic_ns() -> u64 {
    clock(1)
}

/// CPU nanoseconds of this thread.
pub fn thread_cpu_ns() -> u64 {
    clock(3)
}

fn clock(id: usize) -> u64 {
    let mut t = [0u64; 2];
    // SAFETY: the kernel writes two words.
    let _ = unsafe { syscall(228, [id, t.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    t[0] * 1_000_000_000 + t[1]
}

/// Reads the time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: rdtsc is available to user code on every x86-64 Linux (PR_SET_TSC is not used by us).
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A POSIX timer on the user CPU time of one thread, which sends it a signal.
#[derive(Clone, Copy, Debug)]
pub struct Timer(i32);

impl Timer {
    /// Creates it for thread `tid` of this process.
    ///
    /// The clock is the thread's *user* time (CPUCLOCK_VIRT): it expires in a tick that interrupted user code, so the
    /// signal never makes a system call fail with EINTR, as a timer on all CPU time could.
    pub fn for_thread(tid: i32, signal: i32) -> Result<Timer, Errno> {
        let mut event = [0u64; 8];
        const SIGEV_THREAD_ID: u64 = 4;
        // The signal's value tells whose it is.
        event[0] = tid as u32 as u64;
        event[1] = signal as u32 as u64 | SIGEV_THREAD_ID << 32;
        event[2] = tid as u32 as u64;
        let mut id = 0i32;
        let clock = (!tid << 3) | 4 | 1;
        // SAFETY: the event is a sigevent of 64 bytes, the kernel writes one i32.
        unsafe {
            syscall(222, [clock as isize as usize, event.as_ptr() as usize, &raw mut id as usize, 0, 0, 0])
        }?;
        Ok(Timer(id))
    }

    /// The kernel's number for it.
    pub fn id(self) -> i32 {
        self.0
    }

    /// The timer with this number.
    pub fn from_id(id: i32) -> Timer {
        Timer(id)
    }

    /// Fires after `ns` of user time (0 disarms), and then again each `again` of it, if that is not 0.
    pub fn arm(self, ns: u64, again: u64) -> Result<(), Errno> {
        const SECOND: u64 = 1_000_000_000;
        let spec = [again / SECOND, again % SECOND, ns / SECOND, ns % SECOND];
        // SAFETY: the specification is 32 bytes.
        unsafe { syscall(223, [self.0 as usize, 0, spec.as_ptr() as usize, 0, 0, 0]) }.map(|_| ())
    }

    /// Removes it.
    pub fn delete(self) {
        // SAFETY: only the kernel's object is concerned.
        let _ = unsafe { syscall(226, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}
