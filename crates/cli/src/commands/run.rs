//! `sonde run`: runs a program with bursts of recording and reports what was seen (Hirzel and Chilimbi 2001 is the
//! idea behind bursts; the report's ranges are Mysore et al. 2008).

mod args;
mod drops;
mod facts;
mod hot;
mod pace;
mod progress;
mod ranges;
mod report;
mod seen;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use sonde_launch::{Counter, Options, Outlets, Policy, Program, Served, Session, Setup, Totals};

pub use args::Args;
use args::Recording;
use facts::{Facts, Known, Memory};
use pace::{Measured, Pace};
use progress::Progress;
use seen::Seen;

use crate::outcome::{CannotRun, CannotWrite, Ended};

/// Runs the program, reports, and ends as it ended.
pub fn run(args: &Args) -> Result<()> {
    let options = args.recording.options()?;
    let (name, rest) = args.command.words.split_first().context("no program given")?;
    let program = Program::find(name, rest).map_err(CannotRun)?;
    let mut seen = Seen::new(args)?;
    let session = Session::start(&program, &options).map_err(CannotRun)?;
    let setup = session.setup().clone();
    let progress = Progress::new(args.quiet);
    let mut pace = pacer(&args.recording, &options);
    let mut tick = |session: &mut Session| {
        progress.show(session);
        adapt(session, pace.as_mut());
    };
    let served = session.serve(Outlets { reader: seen.reader(), tap: None }, &mut tick);
    drop(progress);
    if seen.is_wanted() {
        let facts = conclude(args, &options, &program, &setup, &served, &mut seen)?;
        tell(args, &facts, &served.totals)?;
    }
    Err(Ended(served.exit).into())
}

/// The controller of `--rate`, if it was asked for.
fn pacer(recording: &Recording, options: &Options) -> Option<Pace> {
    match (recording.rate, options.policy) {
        (Some(rate), Policy::Bursts { period, checks }) => Some(Pace::new(rate, period, checks)),
        _ => None,
    }
}

fn adapt(session: &mut Session, pace: Option<&mut Pace>) {
    let Some(pace) = pace else { return };
    let control = session.control();
    let measured = Measured {
        cpu: session.cpu_time().as_secs_f64(),
        in_bursts: control.counter(Counter::BurstTicks) as f64 / session.ticks_per_second(),
        bursts: control.counter(Counter::Bursts) as f64,
    };
    if let Some((period, checks)) = pace.step(measured) {
        session.set_pace(period, checks);
    }
}

fn conclude(
    args: &Args,
    options: &Options,
    program: &Program,
    setup: &Setup,
    served: &Served,
    seen: &mut Seen,
) -> Result<Facts> {
    let catalog = served.decoder.catalog();
    let known = Known {
        program,
        setup,
        exit: served.exit,
        counts: seen.counts(),
        policy: args.recording.policy_name(),
        record: args.recording.record_name(),
        memory: Memory {
            probe_limit: options.max_memory,
            catalog: catalog.memory_bytes() as u64,
            ranges: seen.memory_bytes() as u64,
        },
        hot_threshold: args.hot,
        hot_code: seen.hot_code(catalog, args.hot, &served.totals.mappings)?,
        hot_data: seen.hot_data(args.hot, &served.totals.mappings),
        output: None,
    };
    Ok(Facts::new(known, &served.totals))
}

/// Writes the report where it was asked for: JSON to a file beside the text, or instead of it.
fn tell(args: &Args, facts: &Facts, totals: &Totals) -> Result<()> {
    let mut err = BufWriter::new(io::stderr().lock());
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => return write_json(&mut err, facts).map_err(unwritten),
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write_json(&mut BufWriter::new(file), facts).map_err(unwritten)?;
        }
        None => {}
    }
    if !args.quiet {
        report::write(&mut err, facts, totals).and_then(|()| err.flush()).map_err(unwritten)?;
    }
    Ok(())
}

fn write_json(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, facts).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()
}

fn unwritten(error: io::Error) -> anyhow::Error {
    CannotWrite(error).into()
}
