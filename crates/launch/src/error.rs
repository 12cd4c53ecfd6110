//! What can go wrong before a program runs, in words that say what to do.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A program could not be started with the probe.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Not on the path.
    #[error("{0}: no such program; give a path, or check $PATH")]
    NotFound(String),
    /// No right to run it.
    #[error("{}: not executable; try `chmod +x` on it, or run it with its interpreter", .0.display())]
    NotExecutable(PathBuf),
    /// A folder.
    #[error("{}: is a directory; name a program in it", .0.display())]
    Directory(PathBuf),
    /// Neither a program nor a script that says what runs it.
    #[error("{}: {what}", path.display())]
    NotAProgram {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        what: &'static str,
    },
    /// Another architecture.
    #[error("{}: not an x86-64 ELF program ({what}); Sonde records x86-64 Linux programs only", path.display())]
    WrongFormat {
        /// The program.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// It would run with other rights than ours.
    #[error(
        "{}: is set-user-id or set-group-id, and the kernel drops those rights under a tracer; \
         run Sonde as that user instead", .0.display()
    )]
    SetId(PathBuf),
    /// exec failed.
    #[error("{}: cannot be run: {error}", path.display())]
    Exec {
        /// The program.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The probe could not be placed.
    #[error(
        "cannot place the probe into the program: {what}: {error}; run `sonde doctor` to see what this machine allows"
    )]
    Place {
        /// The step that failed.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Tracing is forbidden here.
    #[error(
        "ptrace is not allowed here: {0}; in a container use --cap-add SYS_PTRACE or a seccomp profile that allows it, \
         elsewhere set kernel.yama.ptrace_scope below 3; `sonde doctor` says more"
    )]
    NoTracing(io::Error),
    /// Neither way in is open.
    #[error(
        "cannot get the probe into the program without ptrace: {0}; `sonde doctor` says what this machine allows"
    )]
    NoWay(String),
    /// Its code cannot be changed.
    #[error("{0}")]
    NotInPlace(String),
    /// The program ended while it was being prepared.
    #[error("the program ended before it started: {0}")]
    Died(String),
    /// A resource of ours.
    #[error("{what}: {error}")]
    Own {
        /// What.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// Turns the last OS error into a placing error.
pub(crate) fn place(what: &'static str) -> LaunchError {
    LaunchError::Place { what, error: io::Error::last_os_error() }
}

/// Turns the last OS error into an error of our own resources.
pub(crate) fn own(what: &'static str) -> LaunchError {
    LaunchError::Own { what, error: io::Error::last_os_error() }
}
