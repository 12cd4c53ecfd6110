//! `sonde run`: runs a program with bursts of recording and reports what was seen (Hirzel and Chilimbi 2001 is the
//! idea behind bursts; the report's ranges are Mysore et al. 2008).

pub mod advice;
mod args;
mod drops;
mod facts;
mod hot;
mod in_place;
pub mod kept;
mod pace;
pub mod price;
mod processes;
mod progress;
mod report;
mod seen;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use sonde_event::Reader;
use sonde_launch::{Counter, Options, Outlets, Parts, Policy, Program, Served, Session, Setup, Tap, Totals};

pub use args::{Args, CommandLine, Recording};
pub use drops::loss_in_words;
use facts::{Facts, Known, Memory};
pub use facts::{due, too_few};
use in_place::InPlace;
use kept::{Line, Taken};
use pace::{Measured, Pace};
use processes::Processes;
use progress::Progress;
use seen::{Found, Seen};

use sonde_summary::BurstTime;
use sonde_symbol::Symbols;

use crate::commands::report::style;
use crate::outcome::{CannotRun, CannotWrite, ended};
use crate::recorder::Recorder;

/// Runs the program, reports, and ends as it ended.
pub fn run(args: &Args) -> Result<()> {
    let options = args.options()?;
    let program = find(&args.command)?;
    let burst_time = match options.policy {
        Policy::Bursts { period, .. } => Some(BurstTime::new(period)),
        _ => None,
    };
    let mut seen = Seen::new(args, &options, burst_time.clone())?;
    let mut processes = Processes::new(args, &options, burst_time);
    // Before the program runs: it must not have run in vain because the file cannot be made.
    args.output.as_deref().map(sonde_profile::try_to_write).transpose()?;
    if let Some(folder) = args.json.as_deref().and_then(Path::parent).filter(|f| !f.as_os_str().is_empty()) {
        ensure!(folder.is_dir(), "--json: there is no folder {}", folder.display());
    }
    let mut watching = Watching { quiet: args.quiet, line: Some(Line::new()) };
    let parts = args.follow.then_some(&mut processes as &mut dyn Parts);
    let outlets = Outlets { reader: seen.reader(), parts, tap: None };
    let started = SystemTime::now();
    let (mut done, setup) = observe(&args.recording, &options, &program, None, outlets, &mut watching)?;
    let mut found = seen.finish(done.served.decoder.catalog());
    if args.follow {
        processes.join(&mut done.served, &mut found);
    }
    let facts = args
        .has_report()
        .then(|| conclude(args, &options, &program, &setup, &done.served, &found, &processes));
    // A report is worth having even when the profile could not be written.
    let taken =
        Taken { recording: &args.recording, options: &options, program: &program, setup: &setup, started };
    let written = match (args.output.as_deref(), watching.line) {
        (Some(path), Some(line)) => kept::write(path, &taken, &done.served, line, found),
        _ => Ok(()),
    };
    let told = facts.map_or(Ok(()), |facts| tell(args, &options, &facts, &done.served.totals));
    Err(ended(done.served.exit, [written, told]))
}

/// Runs the program and only records (`sonde trace record`).
pub fn record(recording: &Recording, command: &CommandLine, output: &Path) -> Result<()> {
    let options = recording.options()?;
    let program = find(command)?;
    let (mut done, _) =
        observe(recording, &options, &program, Some(output), Outlets::default(), &mut Watching::default())?;
    let written = done.finish();
    Err(ended(done.served.exit, [written]))
}

fn find(command: &CommandLine) -> Result<Program> {
    let (name, rest) = command.words.split_first().context("no program given")?;
    Ok(Program::find(name, rest).map_err(CannotRun)?)
}

/// What goes on beside the reading of the stream.
#[derive(Default)]
struct Watching {
    quiet: bool,
    line: Option<Line>,
}

/// A program that ended, and the trace file that is to be ended.
struct Done {
    served: Served,
    recorder: Option<Recorder>,
}

impl Done {
    fn finish(&mut self) -> Result<()> {
        self.recorder.take().map_or(Ok(()), |recorder| recorder.finish(&self.served).map(|_| ()))
    }
}

/// From the start of the program to its end.
fn observe(
    recording: &Recording,
    options: &Options,
    program: &Program,
    output: Option<&Path>,
    outlets: Outlets<'_>,
    watching: &mut Watching,
) -> Result<(Done, Setup)> {
    // Before the program runs: it must not have run in vain because the file cannot be made.
    let file = output.map(Recorder::create).transpose()?;
    if let Some(warning) = sonde_launch::warning(program, options).filter(|_| !watching.quiet) {
        eprintln!("sonde: {warning}");
    }
    let session = Session::start(program, options).map_err(CannotRun)?;
    let setup = session.setup().clone();
    let mut recorder = file.map(|file| file.begin(program, options, &setup)).transpose()?;
    let progress = Progress::new(watching.quiet);
    let mut pace = pacer(recording, options);
    let mut tick = |session: &mut Session| {
        progress.show(session);
        watching.line.iter_mut().for_each(|line| line.look(session));
        adapt(session, pace.as_mut());
    };
    let reader = outlets.reader.map(|reader| reader as &mut dyn Reader);
    let parts = outlets.parts.map(|parts| parts as &mut dyn Parts);
    let tap = recorder.as_mut().map(|recorder| recorder as &mut dyn Tap);
    let served = session.serve(Outlets { tap, reader, parts }, &mut tick);
    Ok((Done { served, recorder }, setup))
}

/// The controller of `--rate`, if it was asked for.
fn pacer(recording: &Recording, options: &Options) -> Option<Pace> {
    match (recording.rate, options.policy) {
        (Some(rate), Policy::Bursts { period, checks }) => Some(Pace::new(rate, period, checks)),
        _ => None,
    }
}

fn adapt(session: &mut Session, pace: Option<&mut Pace>) {
    // A rate that costs more than is allowed must not be reached by longer bursts.
    let Some(pace) = pace.filter(|_| !session.is_held_back()) else { return };
    let measured = Measured {
        cpu: session.cpu_time().as_secs_f64(),
        in_bursts: session.counter(Counter::BurstCpuNs) as f64 / 1e9,
        bursts: session.counter(Counter::Bursts) as f64,
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
    found: &Found,
    processes: &Processes<'_>,
) -> Facts {
    let catalog = served.decoder.catalog();
    // One for all: opening a module's debug file takes longer than most else that is done here.
    let mut symbols = Symbols::new();
    let (hot_code, hot_data) = found.hot(args.hot, &mut symbols);
    let known = Known {
        program,
        setup,
        exit: served.exit,
        counts: found.counts,
        live_values: found.findings.as_ref().and_then(|f| f.values.as_ref()).filter(|_| args.live_masks),
        followed: args.follow.then(|| processes.facts(&served.followed)),
        policy: args.recording.policy_name(),
        checks: args.recording.checks_name(),
        record: args.recording.record_name(),
        memory: Memory {
            probe_limit: options.max_memory,
            catalog: catalog.memory_bytes() as u64 + processes.pool.catalog_bytes,
            ranges: found.memory_bytes(),
        },
        unit: found.unit(),
        missing: found.missing(),
        hot_threshold: args.hot,
        hot: [hot_code, hot_data],
        has_ranges: found.findings.is_some(),
        discarded: args.discard,
        has_data: found.has_data(),
        when: options.policy,
        rate: args.recording.rate,
        governed: served.governed,
        in_place: served.in_place.clone().map(InPlace::new),
        sonde_cpu: sonde_launch::own_cpu_time(),
        sonde_cpu_before: served.sonde_cpu,
        output: args.output.as_ref().map(|path| path.display().to_string()),
    };
    Facts::new(known, &served.totals)
}

/// Writes the report where it was asked for: JSON to a file beside the text, or instead of it.
fn tell(args: &Args, options: &Options, facts: &Facts, totals: &Totals) -> Result<()> {
    let mut err = BufWriter::new(io::stderr().lock());
    match args.json.as_deref() {
        // A standard error that takes nothing must not hide how the program ended.
        Some(path) if path == Path::new("-") => {
            let _ = write_json(&mut err, facts);
            return Ok(());
        }
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write_json(&mut BufWriter::new(file), facts).map_err(unwritten)?;
        }
        None => {}
    }
    if !args.quiet {
        let style = style(12, io::stderr().is_terminal());
        let advice = advice::advice(facts, options.policy);
        let _ = report::write(&mut err, facts, totals, advice.as_deref(), style).and_then(|()| err.flush());
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
