//! Threads, waiting, and the segment bases.

use crate::{Errno, syscall};
use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// This thread's id.
pub fn gettid() -> i32 {
    // SAFETY: no arguments.
    unsafe { syscall(186, [0; 6]) }.unwrap_or(0) as i32
}

/// This process's id.
pub fn getpid() -> i32 {
    // SAFETY: no arguments.
    unsafe { syscall(39, [0; 6]) }.unwrap_or(0) as i32
}

/// Whether a thread of this process exists.
pub fn thread_exists(pid: i32, tid: i32) -> bool {
    // SAFETY: signal 0 only checks.
    let sent = unsafe { syscall(234, [pid as usize, tid as usize, 0, 0, 0, 0]) };
    sent != Err(Errno::ESRCH)
}

/// Sends a signal to a thread of this process.
pub fn send(pid: i32, tid: i32, sig: i32) {
    // SAFETY: sending a signal touches no memory of ours.
    let _ = unsafe { syscall(234, [pid as usize, tid as usize, sig as usize, 0, 0, 0]) };
}

/// Whether a process exists.
pub fn process_exists(pid: i32) -> bool {
    // SAFETY: signal 0 only checks.
    let sent = unsafe { syscall(62, [pid as usize, 0, 0, 0, 0, 0]) };
    sent != Err(Errno::ESRCH)
}

/// Waits while `*word == expected`, at most `limit`. Spurious returns happen.
pub fn futex_wait(word: &AtomicU32, expected: u32, limit: Duration) {
    let spec = [limit.as_secs(), u64::from(limit.subsec_nanos())];
    // SAFETY: the word and the time are valid for reads; FUTEX_WAIT = 0 on shared memory.
    let _ =
        unsafe { syscall(202, [word.as_ptr() as usize, 0, expected as usize, spec.as_ptr() as usize, 0, 0]) };
}

/// Wakes all waiters.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE = 1 only uses the address as a name.
    let _ = unsafe { syscall(202, [word.as_ptr() as usize, 1, i32::MAX as usize, 0, 0, 0]) };
}

/// Gives the processor away.
pub fn yield_now() {
    // SAFETY: no arguments.
    let _ = unsafe { syscall(24, [0; 6]) };
}

const ARCH_SET_GS: usize = 0x1001;
const ARCH_GET_FS: usize = 0x1003;
const ARCH_GET_GS: usize = 0x1004;

fn arch_get(what: usize) -> usize {
    let mut base = 0usize;
    // SAFETY: the kernel writes one word to `base`.
    let _ = unsafe { syscall(158, [what, &raw mut base as usize, 0, 0, 0, 0]) };
    base
}

/// The base of fs.
pub fn fs_base() -> usize {
    arch_get(ARCH_GET_FS)
}

/// The base of gs.
pub fn gs_base() -> usize {
    arch_get(ARCH_GET_GS)
}

/// Sets the base of gs.
///
/// # Safety
/// No code that relies on the old base may run in this thread afterwards.
pub unsafe fn set_gs_base(base: usize) {
    // SAFETY: passed on to the caller.
    let _ = unsafe { syscall(158, [ARCH_SET_GS, base, 0, 0, 0, 0]) };
}
