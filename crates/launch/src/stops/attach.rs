//! Becoming the tracer of a program, and of what replaces it.

use crate::begin::ptrace;
use std::io;

/// What a tracer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// To stop all threads when bursts are due.
    Bursts,
    /// The same for threads that used their checks up: nobody is asked, and all are served.
    Checks,
    /// To place the probe, and then to let it go: whatever else there is to do is done without a tracer.
    Start,
    /// To place the probe again when the program replaces itself (exec), and to have a last look at it before it ends:
    /// everything else is up to the probe. Only the first thread is traced; if another one execs, that is not followed.
    Exec,
}

/// What is reported.
fn options(care: Care) -> i32 {
    let ends = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_TRACESYSGOOD;
    let begins = libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    match care {
        Care::Bursts | Care::Checks => begins | ends,
        Care::Exec => ends,
        Care::Start => libc::PTRACE_O_TRACEEXEC,
    }
}

/// Becomes the tracer of a process that is about to become the program, and of all that it will start if that is wanted. It
/// is ours until [`is_its_own`], and dies if we do.
pub fn attach(pid: i32, care: Care) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, pid, 0, (options(care) | libc::PTRACE_O_EXITKILL) as usize)
}

/// Becomes the tracer of a thread of the program that runs.
pub fn seize(tid: i32, care: Care) -> io::Result<()> {
    ptrace(libc::PTRACE_SEIZE, tid, 0, options(care) as usize)
}

/// Something is done to a thread, which stands still, that cannot be left half done: if Sonde dies meanwhile, it dies, too.
pub fn is_ours(tid: i32, care: Care) {
    let _ = ptrace(libc::PTRACE_SETOPTIONS, tid, 0, (options(care) | libc::PTRACE_O_EXITKILL) as usize);
}

/// A thread that stands still is in a state of its own: if Sonde dies, the kernel lets it go on.
pub fn is_its_own(tid: i32, care: Care) {
    let _ = ptrace(libc::PTRACE_SETOPTIONS, tid, 0, options(care) as usize);
}

/// The report of an exec comes from inside that system call, where registers cannot be set yet: lets it come to its
/// end, and stops the process before the first instruction.
pub fn finish_exec(pid: i32) {
    let asked = ptrace(libc::PTRACE_INTERRUPT, pid, 0, 0).and_then(|()| ptrace(libc::PTRACE_CONT, pid, 0, 0));
    if asked.is_ok() {
        let mut status = 0;
        // SAFETY: the status is written to a local.
        unsafe { libc::waitpid(pid, &mut status, libc::__WALL) };
    }
}
