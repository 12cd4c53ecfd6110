//! Places the probe in a process that runs already: at any instruction of its own, with other threads beside.
//!
//! What the thread has is put back: registers, vector state, signal mask, alternate stack. The shared memory is made by
//! the process itself, so that it works in other namespaces and behind chroot, and opened by Sonde through `/proc`. The
//! probe's start runs on a stack mapped for it: the program's may be small.

use crate::begin::{GETSIGMASK, SETSIGMASK, SYNCHRONOUS, ptrace};
use crate::error::LaunchError;
use crate::place::{Holdings, find_syscall, place_at};
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use crate::thread_files::status_of;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Room for the probe's start.
const STACK: u64 = 256 << 10;
/// Larger than the vector state of any processor (AMX tiles are 8 KiB).
const STATE: usize = 32 << 10;
const NT_X86_XSTATE: usize = 0x202;
const SS_ONSTACK: u32 = 1;
const SS_DISABLE: u32 = 2;

/// What came of it.
pub enum Outcome {
    /// The probe is in, with this memory and these mappings.
    Placed(Box<SharedMemory>, Holdings),
    /// Not at this moment: the thread is on its alternate stack.
    NotNow,
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
    move |error| LaunchError::Place { what, error }
}

/// The vector state of a thread, put back when this is dropped.
struct Vectors {
    tid: i32,
    state: Vec<u8>,
}

impl Vectors {
    fn keep(tid: i32) -> Result<Vectors, LaunchError> {
        let mut state = vec![0; STATE];
        let mut part = libc::iovec { iov_base: state.as_mut_ptr().cast(), iov_len: STATE };
        ptrace(libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut part as usize)
            .map_err(failed("reading the vector state"))?;
        state.truncate(part.iov_len);
        Ok(Vectors { tid, state })
    }
}

impl Drop for Vectors {
    fn drop(&mut self) {
        let part = libc::iovec { iov_base: self.state.as_mut_ptr().cast(), iov_len: self.state.len() };
        let _ = ptrace(libc::PTRACE_SETREGSET, self.tid, NT_X86_XSTATE, &raw const part as usize);
    }
}

/// All signals of a thread are blocked while this lives, but those that instructions raise: to raise one that is blocked
/// makes the kernel forget the program's handler, and our own steps raise SIGTRAP.
struct Blocked {
    tid: i32,
    mask: u64,
}

impl Blocked {
    fn all(tid: i32) -> Result<Blocked, LaunchError> {
        let (mut mask, all) = (0u64, !SYNCHRONOUS);
        ptrace(GETSIGMASK, tid, 8, &raw mut mask as usize)
            .and_then(|()| ptrace(SETSIGMASK, tid, 8, &raw const all as usize))
            .map_err(failed("blocking signals"))?;
        Ok(Blocked { tid, mask })
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let _ = ptrace(SETSIGMASK, self.tid, 8, &raw const self.mask as usize);
    }
}

/// A stopped thread with the means to make system calls in it.
struct Host<'t> {
    tracee: &'t Tracee,
    entry: libc::user_regs_struct,
    gate: u64,
    /// Start of a stack for the probe's start; also room for arguments.
    stack: u64,
}

impl Host<'_> {
    fn call(&self, nr: i64, args: [u64; 6]) -> Result<u64, LaunchError> {
        self.tracee.syscall_with(&self.entry, self.gate, nr, args)
    }

    /// Removes what the probe of the process that this one was forked from left. Not where its stand-ins for fault
    /// handlers were copied (another thread was in a burst at that moment): they pass faults on to the program's.
    fn clear(&self, holdings: &Holdings) -> Result<(), LaunchError> {
        let (from, len) = holdings.probe;
        for signal in [libc::SIGILL, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV] {
            self.call(libc::SYS_rt_sigaction, [signal as u64, 0, self.stack, 8, 0, 0])?;
            let mut handler = [0; 8];
            self.tracee.read(self.stack, &mut handler)?;
            if (from..from + len).contains(&u64::from_le_bytes(handler)) {
                return Ok(());
            }
        }
        for (at, len) in holdings.rest.iter().chain([&holdings.probe]).filter(|(_, len)| *len > 0) {
            self.call(libc::SYS_munmap, [*at, *len, 0, 0, 0, 0])?;
        }
        Ok(())
    }

    /// Makes a file in memory there; returns its number there, and ours.
    fn make_file(&self) -> Result<(u64, OwnedFd), LaunchError> {
        self.tracee.write(self.stack, b"sonde\0")?;
        let number =
            self.call(libc::SYS_memfd_create, [self.stack, u64::from(libc::MFD_CLOEXEC), 0, 0, 0, 0])?;
        let path = format!("/proc/{}/fd/{number}", self.tracee.pid);
        match File::options().read(true).write(true).open(path) {
            Ok(file) => Ok((number, file.into())),
            Err(error) => {
                self.call(libc::SYS_close, [number, 0, 0, 0, 0, 0])?;
                Err(failed("opening the shared memory")(error))
            }
        }
    }

    /// Takes the alternate stack away, so that the probe's one signal to itself comes on ours, and runs the rest. None
    /// if the thread is on that stack now.
    fn without_alternate_stack<T>(
        &self,
        body: impl FnOnce() -> Result<T, LaunchError>,
    ) -> Result<Option<T>, LaunchError> {
        let mut old = [0u8; 24];
        self.call(libc::SYS_sigaltstack, [0, self.stack, 0, 0, 0, 0])?;
        self.tracee.read(self.stack, &mut old)?;
        let flags = u32::from_le_bytes([old[8], old[9], old[10], old[11]]);
        if flags & SS_ONSTACK != 0 {
            return Ok(None);
        }
        if flags & SS_DISABLE != 0 {
            return body().map(Some);
        }
        let mut none = [0u8; 24];
        none[8] = SS_DISABLE as u8;
        self.tracee.write(self.stack, &none)?;
        self.call(libc::SYS_sigaltstack, [self.stack, 0, 0, 0, 0, 0])?;
        let result = body();
        self.tracee.write(self.stack, &old)?;
        self.call(libc::SYS_sigaltstack, [self.stack, 0, 0, 0, 0, 0])?;
        result.map(Some)
    }
}

/// Places the probe in the process of thread `tid`, which stands still in code of its own. `make` configures the
/// shared memory in the file it gets.
pub fn place_in_running(
    tid: i32,
    inherited: &Holdings,
    make: impl FnOnce(OwnedFd) -> Result<SharedMemory, LaunchError>,
    signal: i32,
) -> Result<Outcome, LaunchError> {
    if status_of(tid, tid).ignores_trap {
        // As above: our steps would make it forget that.
        return Err(failed("stepping")(io::Error::other("the program ignores SIGTRAP")));
    }
    let tracee = Tracee::new(tid)?;
    let entry = tracee.registers()?;
    let _vectors = Vectors::keep(tid)?;
    let _blocked = Blocked::all(tid)?;
    let gate = find_syscall(&tracee)?;
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let stack =
        tracee.syscall_with(&entry, gate, libc::SYS_mmap, [0, STACK, both, anonymous, u64::MAX, 0])?;
    let host = Host { tracee: &tracee, entry, gate, stack };
    let outcome = host.without_alternate_stack(|| {
        host.clear(inherited)?;
        let (number, fd) = host.make_file()?;
        let shared = make(fd)?;
        if shared.segment().is_some() {
            host.call(libc::SYS_close, [number, 0, 0, 0, 0, 0])?;
        }
        let holdings = place_at(&entry, &tracee, &shared, Some(number as i32), signal, stack + STACK - 512)?;
        Ok((shared, holdings))
    });
    // Also after an error: the thread may stand in the probe.
    let _ = tracee.set_registers(&entry);
    let _ = host.call(libc::SYS_munmap, [stack, STACK, 0, 0, 0, 0]);
    Ok(match outcome? {
        Some((shared, holdings)) => Outcome::Placed(Box::new(shared), holdings),
        None => Outcome::NotNow,
    })
}
