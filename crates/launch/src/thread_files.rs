//! What the kernel tells about a thread in `/proc`: CPU time, signals that wait, seccomp, whether it runs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// Opens the file with the CPU time of a thread.
pub fn open_cpu(pid: i32, tid: i32) -> io::Result<File> {
    File::open(format!("/proc/{pid}/task/{tid}/schedstat"))
}

/// CPU time of a thread so far, from its open schedstat file.
pub fn cpu_ns(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let n = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..n]).ok()?.split(' ').next()?.parse().ok()
}

/// What decides whether a thread can be interrupted.
#[derive(Clone, Copy, Default)]
pub struct Status {
    /// Mode of seccomp.
    pub seccomp: u8,
    /// Signals for this thread that wait.
    pub pending: u64,
    /// Signals, for it or its process, that wait and are not blocked.
    pub deliverable: u64,
    /// Whether SIGTRAP is ignored.
    pub ignores_trap: bool,
}

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim)
}

/// Asks for the status of a thread.
pub fn status_of(pid: i32, tid: i32) -> Status {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let mask = |name: &str| field(&text, name).and_then(|v| u64::from_str_radix(v, 16).ok()).unwrap_or(0);
    let pending = mask("SigPnd:");
    Status {
        seccomp: field(&text, "Seccomp:").and_then(|v| v.parse().ok()).unwrap_or(0),
        pending,
        deliverable: (pending | mask("ShdPnd:")) & !mask("SigBlk:"),
        ignores_trap: mask("SigIgn:") & 1 << (libc::SIGTRAP - 1) != 0,
    }
}

/// The process that a thread belongs to, and the parent of that.
pub fn family_of(tid: i32) -> Option<(i32, i32)> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let number = |name: &str| field(&text, name).and_then(|v| v.parse().ok());
    Some((number("Tgid:")?, number("PPid:")?))
}

/// Whether a thread is on a processor, or ready for one, rather than asleep in a system call.
pub fn is_running(pid: i32, tid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(text) => text.starts_with("running"),
        // Forbidden where tracing is; everybody may read the state.
        Err(_) => {
            let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
        }
    }
}
