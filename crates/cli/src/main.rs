//! `sonde`: the command line. Each subcommand is one file under `commands/`; this only chooses.
#![forbid(unsafe_code)]

mod commands;
mod counters;
mod file_name;
mod mistaken;
mod outcome;
mod quantity;
mod recorder;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A profiler that summarizes streams of events in bounded memory, with proven errors.
#[derive(Parser)]
#[command(name = "sonde", version, propagate_version = true)]
struct Sonde {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<commands::run::Args>),
    Report(commands::report::Args),
    Merge(commands::merge::Args),
    Diff(commands::diff::Args),
    Trace(commands::trace::Args),
    Rap(Box<commands::rap::Args>),
    Doctor(commands::doctor::Args),
    Lab(commands::lab::Args),
}

fn main() -> ExitCode {
    let sonde = Sonde::parse();
    let outcome = match sonde.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Rap(args) => commands::rap::run(&args),
    };
    outcome::exit_code(outcome)
}
