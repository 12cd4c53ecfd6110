//! A program that stops (job control, or `kill -STOP`): Sonde stops like it, so that whoever started it sees that, and must not
//! stay so when somebody who knows only the program lets it go on.
//!
//! What reports to a stopped process waits. So a process of ours, which does nothing else, looks after Sonde meanwhile, and
//! wakes it when a report has come: the program goes on, or was killed.

use crate::children::next_report;
use crate::signals::{STOPS, disposition, set};
use std::ffi::CString;
use std::mem::zeroed;
use std::ptr::null_mut;

/// Stops Sonde as the program stopped; returns when continued, and continues the program if nobody did.
pub(crate) fn stop_like(pid: i32, signal: i32) {
    let terminal = STOPS.contains(&signal);
    let before = disposition(signal);
    let watcher = Watcher::start();
    // Reports that were waited for already would wake us at once. From here on one that comes is not missed: it is seen by
    // the next line, or by the watcher.
    take_reported();
    if is_quiet() {
        // SAFETY: stops this process.
        unsafe {
            if terminal {
                set(signal, libc::SIG_DFL, 0);
            }
            libc::raise(if terminal { signal } else { libc::SIGSTOP });
            if terminal && before != libc::SIG_DFL {
                set(signal, before, libc::SA_SIGINFO | libc::SA_RESTART);
            }
        }
    }
    drop(watcher);
    if is_quiet() && is_stopped(pid) {
        // SAFETY: our own child.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }
}

/// Whether no process of ours has anything to report.
fn is_quiet() -> bool {
    next_report(-1, libc::WSTOPPED | libc::__WALL).is_none()
}

fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A process that is stopped while we trace it shows as `t`.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// Takes a SIGCHLD that is pending. What it tells is found without it.
fn take_reported() {
    // SAFETY: the set is plain data, the time a local.
    unsafe {
        let mut child: libc::sigset_t = zeroed();
        libc::sigemptyset(&mut child);
        libc::sigaddset(&mut child, libc::SIGCHLD);
        libc::sigtimedwait(&child, null_mut(), &libc::timespec { tv_sec: 0, tv_nsec: 0 });
    }
}

/// The process that wakes us.
struct Watcher(i32);

impl Watcher {
    /// None if the system has no room for it: then only who continues Sonde continues the program.
    fn start() -> Option<Watcher> {
        let sonde = std::process::id() as i32;
        let status = CString::new(format!("/proc/{sonde}/status")).ok()?;
        // SAFETY: the child makes nothing but system calls, and ends.
        match unsafe { libc::fork() } {
            0 => {
                watch(sonde, &status);
                // SAFETY: ends the child without running anything of its parent's.
                unsafe { libc::_exit(0) }
            }
            pid => (pid > 0).then_some(Watcher(pid)),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // SAFETY: our own child, not waited for yet.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, null_mut(), 0);
        }
    }
}

/// Looks after a process until it runs, or is gone. Async-signal-safe: it runs in a child of a process with threads.
fn watch(sonde: i32, status: &CString) {
    const EACH: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: system calls on locals. In a group of its own, so that what stops Sonde's does not stop this one.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, null_mut());
        libc::setpgid(0, 0);
        while libc::getppid() == sonde {
            libc::nanosleep(&EACH, null_mut());
            let mut text = [0u8; 4096];
            let file = libc::open(status.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            let got = libc::read(file, text.as_mut_ptr().cast(), text.len());
            libc::close(file);
            if is_to_be_woken(&text[..usize::try_from(got).unwrap_or(0)]) {
                libc::kill(sonde, libc::SIGCONT);
                return;
            }
        }
    }
}

/// Whether what `/proc/PID/status` says is of a process that is stopped and has a report of a child waiting.
fn is_to_be_woken(status: &[u8]) -> bool {
    let field = |name: &[u8]| {
        let lines = status.split(|byte| *byte == b'\n');
        lines.filter_map(|line| line.strip_prefix(name)).next().unwrap_or_default().trim_ascii()
    };
    let bits = |digits: &[u8]| {
        digits
            .iter()
            .fold(0u64, |bits, digit| bits << 4 | u64::from(char::from(*digit).to_digit(16).unwrap_or(0)))
    };
    let pending = bits(field(b"ShdPnd:")) | bits(field(b"SigPnd:"));
    field(b"State:").starts_with(b"T") && pending & 1 << (libc::SIGCHLD - 1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_woken_by_a_report() {
        let status = |state: &str, pending: &str| {
            format!(
                "Name:\tsonde\nState:\t{state}\nSigPnd:\t0000000000000000\nShdPnd:\t{pending}\nSigBlk:\t0000000000010000\n"
            )
        };
        let woken = |state, pending| is_to_be_woken(status(state, pending).as_bytes());
        assert!(woken("T (stopped)", "0000000000010000"));
        assert!(!woken("T (stopped)", "0000000000000000"));
        assert!(!woken("T (stopped)", "0000000000020000"));
        assert!(!woken("S (sleeping)", "0000000000010000"));
        assert!(!is_to_be_woken(b""));
    }
}
