//! `sonde-bench`: what sonde costs and whether it is right, over real and hostile programs.
//!
//! Each command is one module and prints markdown or plain lines.
#![forbid(unsafe_code)]

mod common;
mod consumer;
mod contenders;
mod counts;
mod coverage;
mod cpu_time;
mod early_kill;
mod exhaustive;
mod floors;
mod host;
mod known;
mod measure;
mod overhead;
mod perf;
mod rap;
mod reading;
mod recording;
mod sequitur;
mod shares;
mod statistics;
mod streams;
mod stress;
mod summarize;
mod translate;
mod truth;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Stress, measure and check sonde over real programs
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure range-adaptive trees: rates, and ratios to the floors
    ///
    /// Options: --events N, --rounds N, --only STREAM
    Rap {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
        options: Vec<String>,
    },
    /// Measure reading of text and binary numbers: rates, and ratios to the floors; status 1 when a goal is missed
    ///
    /// Example: sonde-bench read --lines 1000000 --rounds 3
    Read(reading::Reading),
    /// Measure how fast recorded buffers go through the reader interface; status 1 when the goal is missed
    ///
    /// Example: sonde-bench consumer --sonde target/release/sonde -- gzip -c FILE
    Consumer(consumer::Consumer),
    /// Measure what each summary costs for a reference of the stream
    ///
    /// Example: sonde-bench summarize --what default --what all -- gzip -c FILE
    Summarize(summarize::Summarize),
    /// Measure how fast Sequitur takes the references of programs; status 1 when the goal is missed
    ///
    /// Example: sonde-bench sequitur --sonde target/release/sonde
    Sequitur(sequitur::Rates),
    /// Measure what translating code costs that was never met; status 1 when the goal is missed
    ///
    /// Example: sonde-bench translate --files-only /usr/bin/python3
    Translate(translate::Translate),
    /// Run programs with random settings and compare with native runs; status 1 when any differs
    ///
    /// Example: sonde-bench stress --runs 1000 --over hostile
    Stress(stress::Stress),
    /// Kill sonde at every system call of its start, in every mode; status 1 when anything stays behind
    ///
    /// Example: sonde-bench early-kill --runs 1000
    EarlyKill(early_kill::EarlyKill),
    /// Measure what every mode costs on every workload, beside valgrind
    ///
    /// Example: sonde-bench overhead gzip python --column default -o -
    Overhead(overhead::Overhead),
    /// Measure what exhaustive runs with every tree and calls cost, with one consumer and with two
    ///
    /// Example: sonde-bench exhaustive gzip --rounds 3
    Exhaustive(exhaustive::Exhaustive),
    /// Compare the counts of the exhaustive mode with valgrind's
    ///
    /// Example: sonde-bench counts gzip flags -o -
    Counts(counts::CompareCounts),
    /// Count how often 95 % error bars hold shares that are known; status 1 when not in 93 to 99 % of the runs
    ///
    /// Example: sonde-bench coverage --runs 60 turns-1us
    Coverage(coverage::Coverage),
    /// Compare the shares of functions with those of perf, on the workloads and on programs that wait for memory
    ///
    /// Example: sonde-bench truth gzip chase
    Truth(truth::CompareShares),
    /// Make the inputs of the workloads in a folder
    ///
    /// Example: sonde-bench inputs target/workloads --scale 6
    Inputs {
        /// Where; one folder per scale is made in it
        folder: PathBuf,
        /// 1 is about one second of work for each
        #[arg(long, default_value_t = 1.0)]
        scale: f64,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("sonde-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// False when sonde did something wrong; an error when that could not be found out.
fn run(command: Command) -> Result<bool> {
    match command {
        Command::Rap { options } => return rap::run(&options).map_err(anyhow::Error::msg),
        Command::Consumer(consumer) => return consumer.run(),
        Command::Read(reading) => return reading.run(),
        Command::Sequitur(rates) => return rates.run(),
        Command::Translate(translate) => return translate.run(),
        Command::Stress(stress) => return stress.run(),
        Command::EarlyKill(early_kill) => return early_kill.run(),
        Command::Coverage(coverage) => return coverage.run(),
        Command::Summarize(summarize) => summarize.run()?,
        Command::Overhead(overhead) => overhead.run()?,
        Command::Exhaustive(exhaustive) => exhaustive.run()?,
        Command::Counts(counts) => counts.run()?,
        Command::Truth(truth) => truth.run()?,
        Command::Inputs { folder, scale } => {
            workloads::inputs::make(&workloads::folder(&folder, scale), scale)?
        }
    }
    Ok(true)
}
