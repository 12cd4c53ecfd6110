//! The bell: a page of the program that is never there. Who reads it waits, and Sonde is told who.

use crate::error::LaunchError;
use crate::ptrace::Tracee;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `userfaultfd` for faults of user code only, which needs no rights.
const USER_MODE_ONLY: u64 = 1;
const API: u64 = 0xaa;
const THREAD_ID: u64 = 1 << 8;
const MODE_MISSING: u64 = 1;
const IOCTL_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const IOCTL_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const EVENT_PAGEFAULT: u8 = 0x12;

/// The kernel's descriptor for one page of a process.
pub struct Bell {
    fd: OwnedFd,
    /// The page.
    pub at: u64,
}

fn failed(what: &'static str) -> LaunchError {
    LaunchError::Place { what, error: io::Error::last_os_error() }
}

impl Bell {
    /// Whether this kernel has them, and lets us.
    pub fn is_allowed() -> Result<(), LaunchError> {
        // SAFETY: a plain system call; the descriptor is new and ours.
        let fd = unsafe {
            let fd = libc::syscall(libc::SYS_userfaultfd, USER_MODE_ONLY as i32 | libc::O_CLOEXEC) as i32;
            (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
        };
        fd.map(drop).ok_or_else(|| {
            let error = io::Error::last_os_error();
            LaunchError::NotInPlace(format!(
                "--in-place needs userfaultfd (Linux 5.11; containers may refuse it): {error}"
            ))
        })
    }

    /// Hangs one up in a process that stands still; `gate` is a system call instruction there.
    pub fn hang(tracee: &Tracee, gate: u64) -> Result<Bell, LaunchError> {
        let call = |nr: i64, args| tracee.syscall(gate, nr, args);
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = call(libc::SYS_mmap, [0, 4096, libc::PROT_READ as u64, anonymous, u64::MAX, 0])?;
        let flags = USER_MODE_ONLY | (libc::O_CLOEXEC | libc::O_NONBLOCK) as u64;
        let there = call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]).map_err(|error| {
            LaunchError::NotInPlace(format!("--in-place needs userfaultfd (Linux 5.11): {error}"))
        })?;
        let here = fetch(tracee.pid, there as i32);
        call(libc::SYS_close, [there, 0, 0, 0, 0, 0])?;
        let bell = Bell { fd: here?, at };
        bell.register()?;
        Ok(bell)
    }

    fn register(&self) -> Result<(), LaunchError> {
        let mut api = [API, THREAD_ID, 0];
        let mut register = [self.at, 4096, MODE_MISSING, 0];
        // SAFETY: both structures have the kernel's size, and outlive the calls.
        let done = unsafe {
            libc::ioctl(self.fd.as_raw_fd(), IOCTL_API, api.as_mut_ptr()) == 0
                && libc::ioctl(self.fd.as_raw_fd(), IOCTL_REGISTER, register.as_mut_ptr()) == 0
        };
        if done { Ok(()) } else { Err(failed("watching a page of the program (userfaultfd)")) }
    }

    /// The descriptor, to wait for.
    pub fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// The next thread that rang.
    pub fn next(&self) -> Option<i32> {
        let mut message = [0u8; 32];
        // SAFETY: the message is written to a local.
        let n = unsafe { libc::read(self.fd.as_raw_fd(), message.as_mut_ptr().cast(), message.len()) };
        let fault = n == message.len() as isize && message[0] == EVENT_PAGEFAULT;
        fault.then(|| i32::from_le_bytes([message[24], message[25], message[26], message[27]]))
    }
}

/// A copy of a descriptor of another process.
fn fetch(pid: i32, fd: i32) -> Result<OwnedFd, LaunchError> {
    // SAFETY: plain system calls; the descriptors are new and ours.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        if process < 0 {
            return Err(failed("opening the program (pidfd_open)"));
        }
        let process = OwnedFd::from_raw_fd(process);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) as i32;
        if copy < 0 {
            return Err(failed("taking a descriptor of the program (pidfd_getfd)"));
        }
        Ok(OwnedFd::from_raw_fd(copy))
    }
}
