//! System calls that a stop cuts short are carried to their end.
//!
//! A thread that is asked to stop while the kernel works for it goes on with the call, or makes it again. But some calls
//! give up when they have done a part: a write to a full pipe, a read of `/dev/zero`, `getrandom`. Without us they would
//! have done it all, and programs that do not look lose data. So the thread makes the call once more for what is left,
//! under our eyes, and sees the sum. If that is interrupted by a signal of the program's own, it sees what was done by then,
//! as it would without us.
//!
//! Only calls that are never short by themselves where they block are made again: reads of pipes and sockets return what
//! is there. Reads and writes of files on disks are not in it, since nothing but a deadly signal interrupts them.

use crate::begin::{registers, set_registers};
use crate::thread_files::status_of;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

/// The stop of a thread that entered or left a system call (`PTRACE_O_TRACESYSGOOD`).
pub const CALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// Code segment of 64-bit code, whose calls have these numbers.
const CODE_64: u64 = 0x33;
/// Most parts of a scattered buffer (`IOV_MAX`).
const MOST_PARTS: u64 = 1024;

/// Memory that is still to be read or written: address and length.
type Part = (u64, u64);

/// What a stop left undone of a call.
pub struct Unfinished {
    /// The registers as they are in the end, but for the result.
    back: libc::user_regs_struct,
    /// How a part is read or written.
    way: Way,
    left: VecDeque<Part>,
    done: u64,
    /// Whether the thread is in a call that we made.
    inside: bool,
}

/// Calls that are made for a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Read,
    Write,
    /// With the flags of the call that was cut short.
    Receive(u64),
    Send(u64),
    SendFile,
    CopyRange,
    Random,
}

/// What a file descriptor leads to, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Pipe,
    Socket,
    Terminal,
    /// A file that may be written to any length.
    File,
    /// `/dev/zero` and the like.
    Endless,
    Other,
}

/// Whether the program may write files of any length: at a limit, the rest of a call would raise SIGXFSZ, which a call that did
/// a part does not.
fn has_no_limit(pid: i32) -> bool {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: asks only; the answer is written to a local.
    let asked = unsafe { libc::prlimit(pid, libc::RLIMIT_FSIZE, std::ptr::null(), &mut now) };
    asked == 0 && now.rlim_cur == libc::RLIM_INFINITY
}

fn target(pid: i32, fd: u64) -> Target {
    let Ok(file) = fs::metadata(format!("/proc/{pid}/fd/{fd}")) else { return Target::Other };
    let kind = file.file_type();
    let device = (libc::major(file.rdev()), libc::minor(file.rdev()));
    match device {
        _ if kind.is_fifo() => Target::Pipe,
        _ if kind.is_socket() => Target::Socket,
        _ if kind.is_file() && has_no_limit(pid) => Target::File,
        (1, 5 | 7 | 8 | 9) if kind.is_char_device() => Target::Endless,
        (4 | 5 | 136..=143, _) if kind.is_char_device() => Target::Terminal,
        _ => Target::Other,
    }
}

/// How what is left of the call is done, if it is one of those that a stop cuts short.
fn way(pid: i32, regs: &libc::user_regs_struct) -> Option<Way> {
    let (nr, fd) = (regs.orig_rax as i64, regs.rdi);
    let flags = match nr {
        libc::SYS_sendto | libc::SYS_recvfrom => regs.r10,
        _ => regs.rdx,
    };
    let waits_for_all = flags & libc::MSG_WAITALL as u64 != 0 && flags & libc::MSG_PEEK as u64 == 0;
    let way = match nr {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv => Way::Read,
        libc::SYS_write | libc::SYS_writev => Way::Write,
        libc::SYS_recvfrom | libc::SYS_recvmsg if waits_for_all => Way::Receive(flags),
        libc::SYS_sendto | libc::SYS_sendmsg => Way::Send(flags),
        libc::SYS_sendfile => Way::SendFile,
        libc::SYS_copy_file_range => Way::CopyRange,
        libc::SYS_getrandom => return Some(Way::Random),
        _ => return None,
    };
    let fd = if way == Way::CopyRange { regs.rdx } else { fd };
    let is_cut = match (way, target(pid, fd)) {
        (Way::Read, to) => to == Target::Endless,
        (Way::Write, to) => !matches!(to, Target::File | Target::Other),
        (Way::SendFile, to) => to != Target::Other,
        (Way::CopyRange, to) => to == Target::File,
        (_, to) => to == Target::Socket,
    };
    is_cut.then_some(way)
}

/// The memory that the call is about, in order.
fn parts(regs: &libc::user_regs_struct, memory: &File) -> Option<Vec<Part>> {
    let word = |at: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, at).ok().map(|()| u64::from_le_bytes(bytes))
    };
    let list = |at: u64, count: u64| {
        (0..count.min(MOST_PARTS)).map(|i| Some((word(at + 16 * i)?, word(at + 16 * i + 8)?))).collect()
    };
    match regs.orig_rax as i64 {
        libc::SYS_readv | libc::SYS_writev => list(regs.rsi, regs.rdx),
        libc::SYS_sendmsg | libc::SYS_recvmsg => list(word(regs.rsi + 16)?, word(regs.rsi + 24)?),
        libc::SYS_sendfile => Some(vec![(0, regs.r10)]),
        libc::SYS_copy_file_range => Some(vec![(0, regs.r8)]),
        libc::SYS_getrandom => Some(vec![(regs.rdi, regs.rsi)]),
        _ => Some(vec![(regs.rsi, regs.rdx)]),
    }
}

/// What is left of them behind so many bytes.
fn behind(parts: Vec<Part>, mut done: u64) -> VecDeque<Part> {
    let mut left = VecDeque::new();
    for (at, len) in parts {
        let skipped = done.min(len);
        done -= skipped;
        if skipped < len {
            left.push_back((at + skipped, len - skipped));
        }
    }
    left
}

impl Unfinished {
    /// What is left of the call behind which a thread stands still, if it was cut short.
    pub fn find(pid: i32, tid: i32) -> Option<Unfinished> {
        let regs = registers(tid).ok()?;
        let done = u64::try_from(regs.rax as i64).ok().filter(|done| *done > 0)?;
        if (regs.orig_rax as i64) < 0 || regs.cs != CODE_64 {
            return None;
        }
        let way = way(pid, &regs)?;
        let memory = File::open(format!("/proc/{tid}/mem")).ok()?;
        let mut before = [0; SYSCALL.len()];
        memory.read_exact_at(&mut before, regs.rip.wrapping_sub(SYSCALL.len() as u64)).ok()?;
        let left = behind(parts(&regs, &memory)?, done);
        // A signal of the program's own would have cut it short as well.
        let is_ours = before == SYSCALL && !left.is_empty() && status_of(pid, tid).deliverable == 0;
        let back = libc::user_regs_struct { orig_rax: u64::MAX, ..regs };
        is_ours.then_some(Unfinished { back, way, left, done, inside: false })
    }

    /// Sets the registers of the thread for the next part; no if nothing is left, or it cannot be done.
    pub fn prepare(&self, tid: i32) -> bool {
        let Some(&(at, len)) = self.left.front() else { return false };
        let mut regs = self.back;
        regs.rip -= SYSCALL.len() as u64;
        let nr = match self.way {
            Way::Read => libc::SYS_read,
            Way::Write => libc::SYS_write,
            Way::Receive(_) => libc::SYS_recvfrom,
            Way::Send(_) => libc::SYS_sendto,
            Way::SendFile => libc::SYS_sendfile,
            Way::CopyRange => libc::SYS_copy_file_range,
            Way::Random => libc::SYS_getrandom,
        };
        regs.rax = nr as u64;
        match self.way {
            Way::Random => (regs.rdi, regs.rsi) = (at, len),
            Way::SendFile => regs.r10 = len,
            Way::CopyRange => regs.r8 = len,
            Way::Read | Way::Write => (regs.rsi, regs.rdx) = (at, len),
            Way::Receive(flags) | Way::Send(flags) => {
                (regs.rsi, regs.rdx, regs.r10) = (at, len, flags);
                (regs.r8, regs.r9) = (0, 0);
            }
        }
        set_registers(tid, &regs).is_ok()
    }

    /// The thread has entered a call that we made, or left it. Says whether there is more to come.
    pub fn step(&mut self, tid: i32) -> bool {
        self.inside = !self.inside;
        if self.inside {
            return true;
        }
        let result = registers(tid).map_or(0, |regs| regs.rax as i64);
        let Some((_, len)) = self.left.pop_front() else { return false };
        let did = u64::try_from(result).unwrap_or(0).min(len);
        self.done += did;
        did == len && self.prepare(tid)
    }

    /// Gives the thread its registers back, with all that was done as the result.
    pub fn end(&self, tid: i32) {
        let _ = set_registers(tid, &libc::user_regs_struct { rax: self.done, ..self.back });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_begins_where_the_call_gave_up() {
        let parts = || vec![(0x100, 10), (0x200, 0), (0x300, 20)];
        assert_eq!(behind(parts(), 4), [(0x104, 6), (0x300, 20)]);
        assert_eq!(behind(parts(), 10), [(0x300, 20)]);
        assert_eq!(behind(parts(), 29), [(0x313, 1)]);
        assert!(behind(parts(), 30).is_empty() && behind(parts(), 31).is_empty());
    }

    #[test]
    fn descriptors_are_told_apart() {
        let me = std::process::id() as i32;
        let zero = File::open("/dev/zero").unwrap();
        let null = File::open("/dev/null").unwrap();
        let (reader, _writer) = std::io::pipe().unwrap();
        let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
        let of = |fd: &dyn std::os::fd::AsRawFd| target(me, fd.as_raw_fd() as u64);
        assert_eq!([of(&zero), of(&reader), of(&socket)], [Target::Endless, Target::Pipe, Target::Socket]);
        assert_eq!(of(&File::open("/proc/self/exe").unwrap()), Target::File);
        assert_eq!((of(&null), target(me, 1 << 30)), (Target::Other, Target::Other));
    }
}
