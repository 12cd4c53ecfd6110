//! The trigger from outside: a perf event on the CPU clock of each thread, which sends that thread a signal.
//!
//! The events are opened and held here, not in the program: it gains no descriptors, and if Sonde dies the kernel
//! closes them and the program goes on natively. They count user time only, so that no system call is interrupted, and
//! are removed at exec, so that a new program image gets no signals. Rejected: `sigtrap` events, which would cover new
//! threads by themselves but deliver SIGTRAP, a signal that some programs own (Go, debuggers), and kill threads that
//! block it on kernels before 5.18.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const IOC_PERIOD: libc::c_ulong = 0x4008_2404;
const F_SETSIG: libc::c_int = 10;
const F_SETOWN_EX: libc::c_int = 15;

/// `struct perf_event_attr`, up to the version that has `remove_on_exec`.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    rest: [u32; 19],
}

/// A running event on one thread.
pub struct Event {
    fd: OwnedFd,
}

impl Event {
    /// Opens an event that sends `signal` to thread `tid` each `period_ns` of its user time.
    pub fn open(tid: i32, signal: i32, period_ns: u64) -> io::Result<Event> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: CPU_CLOCK,
            period: period_ns,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | REMOVE_ON_EXEC,
            wakeup_events: 1,
            ..Attributes::default()
        };
        const CLOEXEC: libc::c_ulong = 8;
        // SAFETY: the attributes are valid for reads of their stated size.
        let fd =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, tid, -1, -1, CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let owner = [0i32 /* F_OWNER_TID */, tid];
        // SAFETY: plain settings of our own descriptor; the owner block is two integers.
        let ok = unsafe {
            libc::fcntl(fd.as_raw_fd(), F_SETOWN_EX, owner.as_ptr()) == 0
                && libc::fcntl(fd.as_raw_fd(), F_SETSIG, signal) == 0
                && libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK) == 0
        };
        if ok { Ok(Event { fd }) } else { Err(io::Error::last_os_error()) }
    }

    /// The number of its descriptor, which its signals tell.
    pub fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Changes the period.
    pub fn set_period(&self, period_ns: u64) {
        // SAFETY: the argument is a pointer to the new period.
        unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_PERIOD, &raw const period_ns) };
    }
}

/// Whether this process may use such events, tried on itself; the error says why not.
pub fn allowed() -> io::Result<()> {
    // SAFETY: no arguments.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    Event::open(tid, libc::SIGURG, 1 << 40).map(|_| ())
}
