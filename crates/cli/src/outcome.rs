//! Exit statuses, the same for every subcommand: 0 done, 1 the result could not be written, 2 bad usage or bad input.
//! `sonde trace check` ends with 1 if a trace cannot be true, `sonde doctor` if nothing can be recorded here. Commands
//! that read a trace end with 3 if its file ends early or is damaged; what is readable was given. Commands that run a program end as it
//! ended, or like a shell that could not start it: 127 not found, 126 not runnable. If it ended well but its profile, trace or
//! report could not be written, they end with 1: what was asked for is not there. How a program failed is told all the same.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use sonde_launch::{Exit, LaunchError};

/// The result could not be written.
const CANNOT_WRITE: u8 = 1;
/// Bad usage (clap uses 2 as well) or bad input.
const BAD_INPUT: u8 = 2;

/// Not all of a file could be read.
const NOT_WHOLE: u8 = 3;

/// The program exists but cannot be run.
const NOT_RUNNABLE: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;

/// The program could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotRun(pub LaunchError);

impl CannotRun {
    fn status(&self) -> u8 {
        match self.0 {
            LaunchError::NotFound(_) => NOT_FOUND,
            _ => NOT_RUNNABLE,
        }
    }
}

/// How the program that was run ended; Sonde ends the same way.
#[derive(Debug, thiserror::Error)]
#[error("the program {0}")]
pub struct Ended(pub Exit);

/// The program ended well, but what was to be kept of its run could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
pub struct NotKept(anyhow::Error);

/// The outcome of a run: how the program ended, unless it ended well and something could not be written. What could not is
/// told in any case.
pub fn ended(exit: Exit, written: impl IntoIterator<Item = anyhow::Result<()>>) -> anyhow::Error {
    let mut errors: Vec<anyhow::Error> = written.into_iter().filter_map(Result::err).collect();
    errors.retain(|error| !is_closed_pipe(error));
    let last = errors.pop();
    errors.iter().for_each(tell);
    match last {
        None => Ended(exit).into(),
        Some(error) if exit == Exit::Status(0) => NotKept(error).into(),
        Some(error) => {
            tell(&error);
            Ended(exit).into()
        }
    }
}

fn tell(error: &anyhow::Error) {
    // Nobody can be told that nobody can be told.
    let _ = writeln!(io::stderr(), "sonde: {error:#}");
}

/// Whether a reader closed the pipe: it has all it wanted.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CannotWrite>().is_some_and(|cause| cause.0.kind() == io::ErrorKind::BrokenPipe)
}

/// A trace that cannot be true.
#[derive(Debug, thiserror::Error)]
#[error("{}: {violations} things that cannot be true{}", file.display(), and_damaged(*damaged))]
pub struct Inconsistent {
    pub file: PathBuf,
    pub violations: u64,
    pub damaged: bool,
}

fn and_damaged(damaged: bool) -> &'static str {
    if damaged { ", and it is damaged" } else { "" }
}

/// A trace whose file ends before the recording does.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}", file.display(), self.what())]
pub struct EndsEarly {
    pub file: PathBuf,
    /// Whole chunks before that.
    pub chunks: u64,
    /// Offset of the chunk that is cut off; none if the file ends between chunks.
    pub cut_at: Option<u64>,
}

impl EndsEarly {
    /// What happened, without the name of the file.
    pub fn what(&self) -> String {
        let chunks = self.chunks;
        match self.cut_at {
            Some(at) => {
                format!("{chunks} whole chunks read, then the file ends early, in the chunk at byte {at}")
            }
            None => {
                format!("{chunks} whole chunks read, then the file ends early: recording was interrupted")
            }
        }
    }
}

/// A trace of which some chunks cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: damaged places: {places}, errors in what was recorded: {errors}; the rest was read",
    file.display()
)]
pub struct Damaged {
    pub file: PathBuf,
    /// Damaged places in the file.
    pub places: u64,
    /// Errors in what its whole chunks hold.
    pub errors: u64,
}

/// This machine lacks things that `sonde run` needs.
#[derive(Debug, thiserror::Error)]
#[error("{0} of these must be there for `sonde run` to work")]
pub struct NotUsable(pub usize);

/// A failure to write the result, as opposed to one to read the input.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the result: {0}")]
pub struct CannotWrite(pub io::Error);

/// Says what went wrong, if anything, and turns it into an exit status.
///
/// A reader that closed the pipe, such as `head`, has all it wanted: that is no error.
pub fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    match error.downcast_ref::<Ended>() {
        Some(Ended(Exit::Status(status))) => return ExitCode::from(*status as u8),
        Some(Ended(Exit::Signal(signal))) => sonde_launch::die_by(*signal),
        None => {}
    }
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    tell(&error);
    if let Some(cause) = error.downcast_ref::<CannotRun>() {
        return ExitCode::from(cause.status());
    }
    if error.is::<EndsEarly>() || error.is::<Damaged>() {
        return ExitCode::from(NOT_WHOLE);
    }
    if error.is::<Inconsistent>() || error.is::<NotUsable>() {
        return ExitCode::FAILURE;
    }
    let unwritten = error.is::<CannotWrite>() || error.is::<NotKept>();
    ExitCode::from(if unwritten { CANNOT_WRITE } else { BAD_INPUT })
}
