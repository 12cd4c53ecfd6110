//! Where an experiment's stream comes from: a program that is run in exhaustive mode, or a trace of one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sonde_event::trace::detail_name;
use sonde_event::{Catalog, Decoder, Detail, Reader};
use sonde_launch::{Exit, Options, Outlets, Policy, Program, Session};

use crate::commands::trace;
use crate::outcome::CannotRun;

/// What to experiment on.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Read this trace instead of running a program; it should be one of `--policy always`
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write comma-separated values
    #[arg(long)]
    pub csv: bool,
    /// Write the table to this file; otherwise it goes to standard error beside a program, whose output is its own, and
    /// to standard output for a trace
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The program and its arguments; its output goes where it always goes
    #[arg(value_name = "PROG", required_unless_present = "trace", conflicts_with = "trace")]
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// A stream that was read to its end.
pub struct Fed {
    /// The program or trace.
    pub name: String,
    decoder: Decoder,
}

impl Fed {
    /// All code of it.
    pub fn catalog(&self) -> &Catalog {
        self.decoder.catalog()
    }
}

impl Args {
    /// Whether a program is run, which needs standard output for itself.
    pub fn is_program(&self) -> bool {
        self.trace.is_none()
    }

    /// Feeds the whole stream to a reader that needs so much detail.
    pub fn feed(&self, detail: Detail, reader: &mut dyn Reader) -> Result<Fed> {
        match &self.trace {
            Some(file) => read(file, detail, reader),
            None => self.run(Policy::Always, detail, reader),
        }
    }

    /// The program to run.
    pub fn program(&self) -> Result<Program> {
        let (name, rest) =
            self.command.split_first().context("this experiment runs a program, so it needs one")?;
        Ok(Program::find(name, rest).map_err(CannotRun)?)
    }

    /// Runs the program.
    pub fn run(&self, policy: Policy, detail: Detail, reader: &mut dyn Reader) -> Result<Fed> {
        let program = self.program()?;
        let name = &program.args[0];
        let options = Options { policy, detail, ..Options::default() };
        let session = Session::start(&program, &options).map_err(CannotRun)?;
        let served = session.serve(Outlets { reader: Some(reader), ..Outlets::default() }, &mut |_| {});
        if let Some(error) = served.totals.error {
            bail!("the stream could not be read to its end: {error}");
        }
        match served.exit {
            Exit::Status(0) => {}
            exit => eprintln!("sonde: note: the program {exit}"),
        }
        Ok(Fed { name: name.to_string_lossy().into_owned(), decoder: served.decoder })
    }
}

/// Plays a trace of one process, recorded in enough detail.
fn read(file: &Path, detail: Detail, reader: &mut dyn Reader) -> Result<Fed> {
    let name = file.display().to_string();
    let mut played = trace::play(file, reader)?;
    if played.meta.detail().is_none_or(|recorded| recorded < detail) {
        let (has, needs) = (&played.meta.detail, detail_name(detail));
        bail!("{name} holds {has}, but this experiment needs {needs}; record it again with --record {needs}");
    }
    if played.decoders.len() > 1 {
        let processes = played.decoders.len();
        bail!("{name} holds {processes} processes, but an experiment is on one; record it without --follow");
    }
    if !played.meta.policy.starts_with("always") {
        eprintln!("sonde: note: {name} holds bursts, so what counts as the truth here is that of the bursts");
    }
    if played.truncated.is_some() || played.damages > 0 {
        eprintln!("sonde: note: {name} is damaged or ends early; the experiment is on what could be read");
    }
    let (_, decoder) = played.decoders.pop_first().context("the trace is empty")?;
    Ok(Fed { name, decoder })
}
