//! `sonde trace record`: runs a program and writes all that is recorded to a file; nothing is decoded on the way.

use std::path::PathBuf;

use anyhow::Result;

use crate::commands::run::{CommandLine, Recording, record};
use crate::file_name;

const EXAMPLES: &str = "\
Examples:
  sonde trace record -o gzip.trace -- gzip -9 FILE
  sonde trace check gzip.trace && sonde trace replay gzip.trace
  sonde trace record -o all.trace --policy always --record addresses -- PROG";

/// Run a program and write everything that is recorded to a trace file
#[derive(clap::Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The file to write
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = file_name::to_write())]
    output: PathBuf,

    #[command(flatten)]
    recording: Recording,

    #[command(flatten)]
    command: CommandLine,
}

/// Records.
pub fn run(args: &Args) -> Result<()> {
    record(&args.recording, &args.command, &args.output)
}
