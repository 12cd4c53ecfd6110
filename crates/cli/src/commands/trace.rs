//! `sonde trace`: everything that was recorded, as a file: record, look into it, replay it, check it.

mod check;
mod dump;
mod info;
mod open;
mod record;
mod replay;

pub use open::play;

use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

/// Record everything that bursts see into a file, and read such files.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Record(Box<record::Args>),
    /// Show what a trace holds, without decoding it; status 3 if its file ends early or is damaged
    Info {
        /// The trace
        file: PathBuf,
        /// List the mappings of the program as well
        #[arg(long)]
        mappings: bool,
    },
    Replay(replay::Args),
    /// Check that a trace can be true: control flow, calls and returns, references; status 1 if not, 3 if it is, but its
    /// file ends early
    Check {
        /// The trace
        file: PathBuf,
    },
}

/// Chooses.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Record(args) => record::run(args),
        Command::Info { file, mappings } => info::run(file, *mappings),
        Command::Replay(args) => replay::run(args),
        Command::Check { file } => check::run(file),
    }
}
