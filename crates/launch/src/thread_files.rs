//! What the kernel tells about a thread in `/proc`: CPU time, signals that wait, seccomp, whether it runs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// The beginning of a file in `/proc`, in one system call: these are read at each trigger, and reading to the end, with a
/// buffer that grows, takes five to ten.
struct Beginning {
    bytes: [u8; 4096],
    len: usize,
}

impl Beginning {
    fn of(path: &str) -> io::Result<Beginning> {
        let mut bytes = [0; 4096];
        let len = File::open(path)?.read(&mut bytes)?;
        Ok(Beginning { bytes, len })
    }

    /// Names of programs can be anything; what is asked for here is not.
    fn lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.bytes[..self.len].split(|b| *b == b'\n');
        lines.filter_map(|line| std::str::from_utf8(line).ok())
    }

    /// What a `stat` file tells behind the name, by number.
    fn number(&self, index: usize) -> Option<&str> {
        let text = &self.bytes[..self.len];
        let end = text.windows(2).rposition(|pair| pair == b") ")?;
        std::str::from_utf8(&text[end + 2..]).ok()?.split(' ').nth(index)
    }

    /// Page faults that a `stat` file tells of.
    fn faults(&self) -> Option<u64> {
        let count = |index| self.number(index)?.parse::<u64>().ok();
        Some(count(7)? + count(9)?)
    }

    /// The processor that a `stat` file tells of, unless the thread is of a real-time class.
    fn processor(&self) -> Option<usize> {
        let is_normal = matches!(self.number(38)?, "0" | "3" | "5");
        self.number(36)?.parse().ok().filter(|_| is_normal)
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
    }
}

/// Opens the file with the CPU time of a thread.
pub fn open_cpu(pid: i32, tid: i32) -> io::Result<File> {
    File::open(format!("/proc/{pid}/task/{tid}/schedstat"))
}

/// CPU time of a thread so far, from its open schedstat file.
pub fn cpu_ns(file: &File) -> Option<u64> {
    schedstat(file, 0)
}

/// How often a thread got a processor so far, from the same file.
pub fn slices(file: &File) -> Option<u64> {
    schedstat(file, 2)
}

fn schedstat(file: &File, number: usize) -> Option<u64> {
    let mut text = [0; 64];
    let n = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..n]).ok()?.split_ascii_whitespace().nth(number)?.parse().ok()
}

/// What decides whether a thread can be interrupted.
#[derive(Clone, Copy, Default)]
pub struct Status {
    /// Mode of seccomp (low byte), and how many filters are in force.
    pub seccomp: u32,
    /// Signals for this thread that wait.
    pub pending: u64,
    /// Signals, for it or its process, that wait and are not blocked.
    pub deliverable: u64,
    /// Whether SIGTRAP is ignored.
    pub ignores_trap: bool,
}

/// Asks for the status of a thread.
pub fn status_of(pid: i32, tid: i32) -> Status {
    let Ok(text) = Beginning::of(&format!("/proc/{pid}/task/{tid}/status")) else { return Status::default() };
    let mask = |name: &str| text.field(name).and_then(|v| u64::from_str_radix(v, 16).ok()).unwrap_or(0);
    let number = |name: &str| text.field(name).and_then(|v| v.parse::<u32>().ok()).unwrap_or(0);
    let pending = mask("SigPnd:");
    Status {
        // A second filter does not change the mode; older kernels do not tell the number.
        seccomp: number("Seccomp:") | number("Seccomp_filters:") << 8,
        pending,
        deliverable: (pending | mask("ShdPnd:")) & !mask("SigBlk:"),
        ignores_trap: mask("SigIgn:") & 1 << (libc::SIGTRAP - 1) != 0,
    }
}

/// The process that a thread belongs to, and the parent of that.
pub fn family_of(tid: i32) -> Option<(i32, i32)> {
    let text = Beginning::of(&format!("/proc/{tid}/status")).ok()?;
    let number = |name: &str| text.field(name).and_then(|v| v.parse().ok());
    Some((number("Tgid:")?, number("PPid:")?))
}

/// Whether a thread is on a processor, or ready for one, rather than asleep in a system call.
pub fn is_running(pid: i32, tid: i32) -> bool {
    let file = |name: &str| Beginning::of(&format!("/proc/{pid}/task/{tid}/{name}"));
    match file("syscall") {
        Ok(text) => text.lines().next().is_some_and(|line| line.starts_with("running")),
        // Forbidden where tracing is; everybody may read the state.
        Err(_) => file("stat").is_ok_and(|stat| stat.number(0) == Some("R")),
    }
}

/// The processor that a thread has, or had last, unless it is of a real-time class.
pub fn processor_of(pid: i32, tid: i32) -> Option<usize> {
    Beginning::of(&format!("/proc/{pid}/task/{tid}/stat")).ok()?.processor()
}

/// Page faults of a thread so far.
pub fn faults_of(pid: i32, tid: i32) -> Option<u64> {
    Beginning::of(&format!("/proc/{pid}/task/{tid}/stat")).ok()?.faults()
}

/// System calls that replace the mask of a thread for as long as it sleeps in them: rt_sigtimedwait, rt_sigsuspend, pselect6,
/// ppoll, epoll_pwait, io_pgetevents, epoll_pwait2.
const WITH_OTHER_MASK: [i64; 7] = [128, 130, 270, 271, 281, 333, 441];
/// CPU time in which a thread has surely come out of any of them.
const OUT_OF_IT_NS: u64 = 1_000_000;

/// What was seen of a thread's mask. That is the mask it has only if the thread is not in a call that replaces it, and one that
/// was woken in such a call looks like any other that runs. So it counts if the thread sleeps in another call, or has run for
/// a while since the last look without having slept.
pub struct MaskLook {
    sleeps: u64,
    cpu: u64,
}

impl MaskLook {
    /// Looks, and says whether the thread blocks a signal, if that can be told.
    pub fn at(pid: i32, tid: i32, signal: i32, last: Option<&MaskLook>) -> Option<(MaskLook, Option<bool>)> {
        let file = |name: &str| Beginning::of(&format!("/proc/{pid}/task/{tid}/{name}")).ok();
        let call = || file("syscall")?.lines().next()?.split(' ').next()?.parse::<i64>().ok();
        let before = call();
        let cpu = cpu_ns(&open_cpu(pid, tid).ok()?)?;
        let status = file("status")?;
        let sleeps = status.field("voluntary_ctxt_switches:")?.parse().ok()?;
        let blocked = u64::from_str_radix(status.field("SigBlk:")?, 16).ok()?;
        let asleep = before.is_some_and(|call| !WITH_OTHER_MASK.contains(&call)) && before == call();
        let ran = last.is_some_and(|last| last.sleeps == sleeps && cpu >= last.cpu + OUT_OF_IT_NS);
        let verdict = (asleep || ran).then_some(blocked >> (signal - 1) & 1 != 0);
        // What it has run since the last look that counted adds up, until it sleeps.
        let since = last.filter(|last| last.sleeps == sleeps && !ran).map_or(cpu, |last| last.cpu);
        Some((MaskLook { sleeps, cpu: since }, verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let mut bytes = [0; 4096];
        let text = b"Name:\tx\xff) S (y\nTgid:\t12\nPPid:\t7\nSigPnd:\t0000000000000010\n";
        bytes[..text.len()].copy_from_slice(text);
        let status = Beginning { bytes, len: text.len() };
        assert_eq!((status.field("Tgid:"), status.field("SigPnd:")), (Some("12"), Some("0000000000000010")));
        assert_eq!(status.field("Name:"), None);
        let text = b"12 (x\xff) S (y) R 7 12 12 0 -1 4194304 100 200 3 400 5 6";
        bytes[..text.len()].copy_from_slice(text);
        let stat = Beginning { bytes, len: text.len() };
        assert_eq!((stat.number(0), stat.faults(), stat.processor()), (Some("R"), Some(103), None));
    }

    #[test]
    fn a_thread_is_found() {
        let pid = std::process::id() as i32;
        assert_eq!(family_of(pid).map(|(process, _)| process), Some(pid));
        let cpu = open_cpu(pid, pid).unwrap();
        assert!(cpu_ns(&cpu).is_some() && slices(&cpu).is_some());
        assert_eq!(family_of(i32::MAX - 7), None);
        assert!(processor_of(pid, pid).is_some());
        let before = faults_of(pid, pid);
        assert!(before.is_some() && before <= faults_of(pid, pid));
    }
}
