//! Starts the program, so that Sonde has it in its hands before its first instruction.
//!
//! Sonde may be killed at any moment of that. Until the program is its own ([`stops::is_its_own`]), it dies with Sonde: before
//! exec the child waits for a word of Sonde that then never comes, afterwards the kernel ends what Sonde traces
//! (`PTRACE_O_EXITKILL`). Rejected: the child asks to be traced (`PTRACE_TRACEME`), which makes the parent that it has by then its
//! tracer, be it init; and the death signal of a parent (`PR_SET_PDEATHSIG`), which the program would have to be made to put
//! back.

use crate::begin::ptrace;
use crate::error::{LaunchError, own};
use crate::image::PROBE;
use crate::program::Program;
use crate::shared::SharedMemory;
use crate::signals;
use crate::stops::{self, Care};
use std::env;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Who stays in charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Sonde, as its tracer from before the first instruction on, as long as that is needed.
    Seized(Care),
    /// Nobody: the dynamic loader maps the probe, which starts itself.
    Preloaded,
}

/// A process that stands still before its first instruction.
pub struct Spawned {
    /// Its id.
    pub pid: i32,
    /// The number that the shared memory has in it.
    pub number: i32,
}

/// What the child needs, made before the fork: between fork and exec there is no allocation.
struct Prepared {
    path: CString,
    argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    _strings: [Vec<CString>; 2],
}

/// The environment, with the probe in front of what is preloaded. At the end, so that what the probe clears leaves zero
/// bytes there and not in the middle.
fn environment(probe: Option<i32>) -> Vec<CString> {
    let name = |(name, _): &(OsString, OsString)| name == "LD_PRELOAD";
    let (own, mut all): (Vec<_>, Vec<_>) = env::vars_os().partition(|v| probe.is_some() && name(v));
    if let Some(probe) = probe {
        let mut list = OsString::from(format!("/proc/self/fd/{probe}"));
        if let Some((_, own)) = own.first().filter(|(_, own)| !own.is_empty()) {
            list.push(":");
            list.push(own);
        }
        all.push(("LD_PRELOAD".into(), list));
    }
    let join = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    all.into_iter().map(join).filter_map(|text| CString::new(text).ok()).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

impl Prepared {
    fn new(program: &Program, probe: Option<i32>) -> Result<Prepared, LaunchError> {
        let nul = |_| LaunchError::Exec {
            path: program.path.clone(),
            error: io::Error::from(io::ErrorKind::InvalidInput),
        };
        let path = CString::new(program.path.as_os_str().as_bytes()).map_err(nul)?;
        let args: Result<Vec<CString>, _> = program.args.iter().map(|a| CString::new(a.as_bytes())).collect();
        let args = args.map_err(nul)?;
        let environment = environment(probe);
        let (argv, envp) = (pointers(&args), pointers(&environment));
        Ok(Prepared { path, argv, envp, _strings: [args, environment] })
    }
}

const TOO_SMALL: &str = "the limit on the size of files (ulimit -f) is too low for what is shared with it";

fn pipe() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written to the array.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(own("pipe"));
    }
    // SAFETY: the descriptors are new and ours.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Starts the program and stops it before its first instruction.
pub fn spawn(program: &Program, shared: &SharedMemory, way: Way) -> Result<Spawned, LaunchError> {
    let number = high_descriptor();
    if way == Way::Preloaded && shared.fd().is_none() {
        return Err(LaunchError::NoWay(TOO_SMALL.into()));
    }
    let probe = if way == Way::Preloaded { Some(probe_file()?) } else { None };
    let prepared = Prepared::new(program, probe.is_some().then_some(number - 1))?;
    let (failure, tell_failure) = pipe()?;
    let (wait_for_go, go) = pipe()?;
    // SAFETY: between fork and exec the child only makes system calls on data prepared before.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(own("fork"));
    }
    if pid == 0 {
        // SAFETY: as above; `environ` is unchanged since before the fork.
        unsafe {
            // Sonde has the only other end now: if it dies, reading ends.
            libc::close(go.as_raw_fd());
            signals::as_inherited();
            let mut byte = 0u8;
            if libc::read(wait_for_go.as_raw_fd(), (&raw mut byte).cast(), 1) != 1 {
                libc::_exit(127);
            }
            if let Some(fd) = shared.fd() {
                libc::dup2(fd, number);
            }
            if let Some(probe) = &probe {
                libc::dup2(probe.as_raw_fd(), number - 1);
            }
            libc::execve(prepared.path.as_ptr(), prepared.argv.as_ptr(), prepared.envp.as_ptr());
            let error = *libc::__errno_location();
            libc::write(tell_failure.as_raw_fd(), (&raw const error).cast(), 4);
            libc::_exit(127);
        }
    }
    drop((tell_failure, wait_for_go));
    // SAFETY: a byte from a local.
    let let_go = || unsafe { libc::write(go.as_raw_fd(), [1u8].as_ptr().cast(), 1) };
    let stopped = match way {
        // It runs already, unless it says why not.
        Way::Preloaded => {
            let_go();
            match why(&failure) {
                None => return Ok(Spawned { pid, number }),
                Some(error) => {
                    kill(pid);
                    return Err(LaunchError::Exec { path: program.path.clone(), error });
                }
            }
        }
        Way::Seized(care) => {
            let attached = stops::attach(pid, care).map_err(LaunchError::NoTracing);
            if let Err(error) = attached {
                kill(pid);
                return Err(error);
            }
            let_go();
            wait_for_exec(pid).inspect(|()| stops::finish_exec(pid))
        }
    };
    stopped.map_err(|error| {
        kill(pid);
        match why(&failure) {
            Some(code) => LaunchError::Exec { path: program.path.clone(), error: code },
            None => error,
        }
    })?;
    Ok(Spawned { pid, number })
}

/// The probe as a file in memory.
fn probe_file() -> Result<OwnedFd, LaunchError> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(c"sonde-probe".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(own("memfd_create"));
    }
    // SAFETY: the descriptor is new and ours.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(PROBE).map_err(|error| LaunchError::Own { what: "writing the probe", error })?;
    Ok(file.into())
}

/// What the child said before it ended.
fn why(failure: &OwnedFd) -> Option<io::Error> {
    let mut code = 0i32;
    // SAFETY: four bytes are written to a local. Nobody holds the other end any more.
    let n = unsafe { libc::read(failure.as_raw_fd(), (&raw mut code).cast(), 4) };
    (n == 4).then(|| io::Error::from_raw_os_error(code))
}

/// Waits until the child stops in its new image. Signals that it gets before are passed on.
fn wait_for_exec(pid: i32) -> Result<(), LaunchError> {
    loop {
        let mut status = 0;
        // SAFETY: the status is written to a local.
        if unsafe { libc::waitpid(pid, &mut status, libc::__WALL) } != pid {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return Err(own("waitpid"));
        }
        if !libc::WIFSTOPPED(status) {
            return Err(LaunchError::Died("it did not stop at exec".into()));
        }
        let (event, signal) = (status >> 16, libc::WSTOPSIG(status));
        if event == libc::PTRACE_EVENT_EXEC {
            return Ok(());
        }
        let pass = if event == 0 { signal } else { 0 };
        ptrace(libc::PTRACE_CONT, pid, 0, pass as usize).map_err(|_| own("starting the program"))?;
    }
}

/// Ends a program that has not run an instruction of its own.
pub fn kill(pid: i32) {
    // SAFETY: our own child.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
    }
}

/// A descriptor number out of the way, allowed by the limit.
fn high_descriptor() -> i32 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a local.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (limit.rlim_cur.min(1024) as i32 - 1).max(3)
}
