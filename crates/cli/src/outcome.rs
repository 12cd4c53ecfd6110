//! Exit statuses, the same for every subcommand: 0 done, 1 the result could not be written, 2 bad usage or bad input.

use std::io;
use std::process::ExitCode;

/// The result could not be written.
const CANNOT_WRITE: u8 = 1;
/// Bad usage (clap uses 2 as well) or bad input.
const BAD_INPUT: u8 = 2;

/// A failure to write the result, as opposed to one to read the input.
#[derive(Debug)]
pub struct CannotWrite(pub io::Error);

impl std::fmt::Display for CannotWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write the result: {}", self.0)
    }
}

impl std::error::Error for CannotWrite {}

/// Says what went wrong, if anything, and turns it into an exit status.
///
/// A reader that closed the pipe, such as `head`, has all it wanted: that is no error.
pub fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    let unwritten = error.downcast_ref::<CannotWrite>();
    if unwritten.is_some_and(|cause| cause.0.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    let unwritten = unwritten.is_some();
    eprintln!("sonde: {error:#}");
    ExitCode::from(if unwritten { CANNOT_WRITE } else { BAD_INPUT })
}
