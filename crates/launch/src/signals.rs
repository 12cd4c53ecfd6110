//! Good manners as a parent: the signals, the terminal and the exit status belong to the program.
//!
//! While a program runs, Ctrl-C, Ctrl-\ and Ctrl-Z reach it from the terminal, so Sonde only must not die or stop of
//! them; a signal that another process sends to Sonde is passed on. What a program inherits is what Sonde inherited:
//! handlers are used instead of ignoring (exec resets them), and the two dispositions that must change (SIGPIPE, which
//! Rust ignores before `main`, and SIGCHLD, which must not be ignored by who waits for a child) are put back in the
//! child.

use std::mem::zeroed;
use std::ptr::{null, null_mut};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::Duration;

/// Passed on to the program when a process sends them; from the terminal they reach it by themselves.
const PASSED: [i32; 7] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

/// Stop signals of the terminal: whether Sonde stops is decided by whether the program does.
pub(crate) const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The program, once there is one.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// A signal that came before there was one.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Dispositions that Sonde itself inherited.
static INHERITED_PIPE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static INHERITED_CHILD: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);

/// Signals among those passed on that Sonde inherited as ignored, as bits: the program inherits that, but may have set a
/// handler since.
static INHERITED_IGNORED: AtomicU64 = AtomicU64::new(0);

/// Runs before `main`, and so before Rust ignores SIGPIPE.
#[used]
// SAFETY: the section holds pointers to functions without arguments that the C library calls at startup.
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn() = remember;

extern "C" fn remember() {
    INHERITED_PIPE.store(disposition(libc::SIGPIPE), Relaxed);
    INHERITED_CHILD.store(disposition(libc::SIGCHLD), Relaxed);
    // Writing a file that may not be that large is to be an error. Not ignored: programs would inherit that.
    if disposition(libc::SIGXFSZ) == libc::SIG_DFL {
        set(libc::SIGXFSZ, wake_up as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART);
    }
}

pub(crate) fn disposition(signal: i32) -> usize {
    // SAFETY: asks only; the answer is plain data.
    unsafe {
        let mut now: libc::sigaction = zeroed();
        libc::sigaction(signal, null(), &mut now);
        now.sa_sigaction
    }
}

pub(crate) fn set(signal: i32, action: usize, flags: i32) {
    // SAFETY: handlers given here are the functions below, which only use atomics and make system calls.
    unsafe {
        let mut new: libc::sigaction = zeroed();
        new.sa_sigaction = action;
        new.sa_flags = flags;
        libc::sigaction(signal, &new, null_mut());
    }
}

extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid description.
    let from_terminal = unsafe { (*info).si_code } > 0;
    if from_terminal {
        return;
    }
    match PROGRAM.load(Relaxed) {
        0 => EARLY.store(signal, Relaxed),
        // SAFETY: our own child, not yet waited for.
        pid => unsafe {
            libc::kill(pid, signal);
        },
    }
}

extern "C" fn wake_up(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Signals are handled as described above while this lives.
pub(crate) struct Signals {
    changed: Vec<i32>,
}

impl Signals {
    /// Takes over before the program is started.
    pub fn take_over() -> Signals {
        let take = |signal: &i32| disposition(*signal) == libc::SIG_DFL;
        let ignored = |signal: &i32| disposition(*signal) == libc::SIG_IGN;
        let bits = PASSED.iter().filter(|s| ignored(s)).fold(0, |bits, s| bits | 1u64 << s);
        INHERITED_IGNORED.store(bits, Relaxed);
        let passed: Vec<i32> = PASSED.into_iter().filter(|s| take(s) || ignored(s)).collect();
        let stops: Vec<i32> = STOPS.into_iter().filter(take).collect();
        for signal in &passed {
            set(*signal, pass_on as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART);
        }
        for signal in &stops {
            set(*signal, wake_up as *const () as usize, libc::SA_SIGINFO | libc::SA_RESTART);
        }
        // Without SA_RESTART: the end of the program interrupts whatever we wait in.
        set(libc::SIGCHLD, wake_up as *const () as usize, libc::SA_SIGINFO);
        Signals { changed: [passed, stops].concat() }
    }

    /// Tells which process gets the signals.
    pub fn program(&self, pid: i32) {
        PROGRAM.store(pid, Relaxed);
        let early = EARLY.swap(0, Relaxed);
        if early != 0 {
            // SAFETY: our own child.
            unsafe { libc::kill(pid, early) };
        }
    }
}

impl Drop for Signals {
    /// The program is gone: from now on signals mean Sonde again.
    fn drop(&mut self) {
        PROGRAM.store(0, Relaxed);
        for signal in &self.changed {
            set(*signal, if is_ignored(*signal) { libc::SIG_IGN } else { libc::SIG_DFL }, 0);
        }
    }
}

fn is_ignored(signal: i32) -> bool {
    INHERITED_IGNORED.load(Relaxed) & 1 << signal != 0
}

/// Gives a new child the dispositions that Sonde inherited. Async-signal-safe, for use between fork and exec.
pub(crate) fn as_inherited() {
    set(libc::SIGPIPE, INHERITED_PIPE.load(Relaxed), 0);
    set(libc::SIGCHLD, INHERITED_CHILD.load(Relaxed), 0);
    for signal in PASSED.into_iter().filter(|s| is_ignored(*s)) {
        set(signal, libc::SIG_IGN, 0);
    }
}

/// Waits for the program without missing a report of it: SIGCHLD comes only while this thread waits.
pub(crate) struct Waiting {
    before: libc::sigset_t,
}

impl Waiting {
    /// From now on, in this thread and those that it starts.
    pub fn new() -> Waiting {
        // SAFETY: both sets are plain data that the calls fill or read.
        unsafe {
            let mut child: libc::sigset_t = zeroed();
            let mut before: libc::sigset_t = zeroed();
            libc::sigemptyset(&mut child);
            libc::sigaddset(&mut child, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &child, &mut before);
            Waiting { before }
        }
    }

    /// Returns after this time, or as soon as something was reported, also since the last wait, or can be read from `fd`.
    pub fn wait(&self, most: Duration, fd: Option<i32>) {
        let most = libc::timespec { tv_sec: 0, tv_nsec: i64::from(most.subsec_nanos()) };
        let mut read = libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
        // SAFETY: there is one descriptor, or none; time and set are valid.
        unsafe {
            let mut open = self.before;
            libc::sigdelset(&mut open, libc::SIGCHLD);
            libc::ppoll(&mut read, 1, &most, &open);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // SAFETY: the set is what this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
    }
}

/// Ends Sonde by the signal that ended the program, without a second core file.
pub fn die_by(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: settings of this process, then its end.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        set(signal, libc::SIG_DFL, 0);
        let mut only: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut only);
        libc::sigaddset(&mut only, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &only, null_mut());
        libc::raise(signal);
        // A signal that does not end a process cannot have ended the program; what a shell would say of it.
        libc::_exit(128 + signal)
    }
}
