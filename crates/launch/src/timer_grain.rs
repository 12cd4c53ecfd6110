//! Measures how fine timers on CPU time really are: the kernel looks at them once per tick.

use crate::examine::LONGEST;
use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Asked of the timer; no tick is finer.
const ASKED: Duration = Duration::from_micros(500);
const SIGNAL: i32 = libc::SIGURG;

static FIRED: AtomicU64 = AtomicU64::new(0);

extern "C" fn fired(_: i32) {
    FIRED.fetch_add(1, Relaxed);
}

fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The mean CPU time between two expirations of a timer that is asked for more.
pub fn measure() -> io::Result<Duration> {
    FIRED.store(0, Relaxed);
    // SAFETY: the handler only counts; everything is undone before returning.
    unsafe {
        let mut old: libc::sigaction = zeroed();
        let mut new: libc::sigaction = zeroed();
        new.sa_sigaction = fired as *const () as usize;
        new.sa_flags = libc::SA_RESTART;
        libc::sigaction(SIGNAL, &new, &mut old);
        let spent = run_timer();
        libc::sigaction(SIGNAL, &old, null_mut());
        match FIRED.load(Relaxed) {
            0 => Err(spent.err().unwrap_or_else(|| io::Error::other("a timer was set, but never fired"))),
            times => spent.map(|spent| spent / times as u32),
        }
    }
}

/// Sets a timer on this thread's CPU time and works for a while; returns how long.
///
/// # Safety
/// The signal must have a handler.
unsafe fn run_timer() -> io::Result<Duration> {
    // SAFETY: plain data, filled in below.
    let mut event: libc::sigevent = unsafe { zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = SIGNAL;
    // SAFETY: no arguments.
    event.sigev_notify_thread_id = unsafe { libc::gettid() };
    let step = libc::timespec { tv_sec: 0, tv_nsec: ASKED.as_nanos() as i64 };
    let every = libc::itimerspec { it_interval: step, it_value: step };
    let mut timer: libc::timer_t = null_mut();
    // SAFETY: all pointers lead to locals; the timer is deleted before they are gone.
    unsafe {
        if libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &mut event, &mut timer) != 0
            || libc::timer_settime(timer, 0, &every, null_mut()) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    let start = thread_time();
    while thread_time() - start < LONGEST {
        std::hint::spin_loop();
    }
    // SAFETY: our own timer.
    unsafe { libc::timer_delete(timer) };
    Ok(thread_time() - start)
}
