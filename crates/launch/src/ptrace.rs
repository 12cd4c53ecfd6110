//! Just enough ptrace to place the probe in a stopped process.

use crate::error::{LaunchError, place};
use libc::{c_long, c_void, pid_t};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::{io, ptr};

/// A process stopped under our control.
pub struct Tracee {
    /// Its id.
    pub pid: pid_t,
    memory: File,
    /// Signals that came while it was being prepared; it gets them when it runs.
    held: RefCell<Vec<i32>>,
}

/// Why a process is no longer stopped where we want it.
fn request(what: libc::c_uint, pid: pid_t, addr: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: requests here read or write registers through pointers given by the callers below, or take plain values.
    let r = unsafe { libc::ptrace(what, pid, addr as *mut c_void, data as *mut c_void) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(r) }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
    move |error| LaunchError::Place { what, error }
}

impl Tracee {
    /// Takes charge of a child that stopped at exec.
    pub fn new(pid: pid_t) -> Result<Tracee, LaunchError> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = memory.map_err(failed("opening the program's memory"))?;
        Ok(Tracee { pid, memory, held: RefCell::default() })
    }

    /// Reads the registers.
    pub fn registers(&self) -> Result<libc::user_regs_struct, LaunchError> {
        // SAFETY: all bit patterns are valid for plain integers.
        let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        request(libc::PTRACE_GETREGS, self.pid, 0, ptr::from_mut(&mut regs) as usize)
            .map_err(failed("reading registers"))?;
        Ok(regs)
    }

    /// Sets the registers.
    pub fn set_registers(&self, regs: &libc::user_regs_struct) -> Result<(), LaunchError> {
        request(libc::PTRACE_SETREGS, self.pid, 0, ptr::from_ref(regs) as usize)
            .map_err(failed("setting registers"))?;
        Ok(())
    }

    /// Writes memory, whatever its protection.
    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        self.memory.write_all_at(bytes, at).map_err(failed("writing the program's memory"))
    }

    /// Reads memory.
    pub fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.memory.read_exact_at(bytes, at).map_err(failed("reading the program's memory"))
    }

    /// Runs one system call in the process, at the address of a `syscall` instruction that is there already.
    pub fn syscall(&self, instruction: u64, nr: i64, args: [u64; 6]) -> Result<u64, LaunchError> {
        let saved = self.registers()?;
        self.syscall_with(&saved, instruction, nr, args)
    }

    /// The same with the registers that it gets back given, which it need not have at the moment.
    pub fn syscall_with(
        &self,
        saved: &libc::user_regs_struct,
        instruction: u64,
        nr: i64,
        args: [u64; 6],
    ) -> Result<u64, LaunchError> {
        let mut regs = *saved;
        regs.rip = instruction;
        regs.rax = nr as u64;
        regs.orig_rax = u64::MAX;
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = args;
        self.set_registers(&regs)?;
        request(libc::PTRACE_SINGLESTEP, self.pid, 0, 0).map_err(failed("single-stepping"))?;
        self.wait_for(libc::SIGTRAP)?;
        let result = self.registers()?.rax;
        self.set_registers(saved)?;
        if (-4095..0).contains(&(result as i64)) {
            let error = io::Error::from_raw_os_error(-(result as i64) as i32);
            return Err(LaunchError::Place { what: "a system call in the program", error });
        }
        Ok(result)
    }

    /// Lets it run, passing on the signals in `pass`, until it stops with a trap.
    pub fn run_to_trap(&self, pass: &[i32]) -> Result<(), LaunchError> {
        let mut signal = 0;
        loop {
            request(libc::PTRACE_CONT, self.pid, 0, signal as usize).map_err(failed("continuing"))?;
            match self.wait()? {
                libc::SIGTRAP => return Ok(()),
                s if pass.contains(&s) => signal = s,
                s @ (libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE) => {
                    return Err(LaunchError::Died(format!("signal {s} while the probe started")));
                }
                s => {
                    signal = 0;
                    self.held.borrow_mut().push(s);
                }
            }
        }
    }

    fn wait_for(&self, signal: i32) -> Result<(), LaunchError> {
        loop {
            match self.wait()? {
                s if s == signal => return Ok(()),
                s => {
                    self.held.borrow_mut().push(s);
                    request(libc::PTRACE_SINGLESTEP, self.pid, 0, 0).map_err(failed("single-stepping"))?;
                }
            }
        }
    }

    /// Waits until it stops and returns the signal.
    pub fn wait(&self) -> Result<i32, LaunchError> {
        let mut status = 0;
        loop {
            // SAFETY: the status is written to a local.
            if unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) } < 0 {
                if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(place("waiting for the program"));
            }
            if libc::WIFSTOPPED(status) {
                return Ok(libc::WSTOPSIG(status));
            }
            if libc::WIFEXITED(status) {
                return Err(LaunchError::Died(format!("exit status {}", libc::WEXITSTATUS(status))));
            }
            return Err(LaunchError::Died(format!("killed by signal {}", libc::WTERMSIG(status))));
        }
    }

    /// Lets it go for good.
    pub fn detach(self) -> Result<(), LaunchError> {
        request(libc::PTRACE_DETACH, self.pid, 0, 0).map_err(failed("detaching"))?;
        Ok(())
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        for signal in self.held.borrow_mut().drain(..) {
            // SAFETY: passes on a signal that was meant for it.
            unsafe { libc::kill(self.pid, signal) };
        }
    }
}
