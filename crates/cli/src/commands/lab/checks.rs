//! Paper 4, figures 6 and 8: what checks cost when nothing is recorded, and what hot data streams are found, for each way of
//! leaving checks out.
//!
//! The paper rewrites programs ahead of time, which `--in-place` does in memory. Without that the checking version runs from a
//! code cache, which costs something without any check; it is shown over the native run, and over the copy with all but no
//! checks.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use sonde_event::Detail;
use sonde_launch::{Counter, Exit, Options, Outlets, Policy, Program, Scheme, Session, Totals};
use sonde_place::{Place, Places, Regions};
use sonde_streams::signature::{Share, overlap};
use sonde_streams::{StreamsConfig, StreamsProfile, StreamsReader};

use super::source;
use super::table::{Table, percent};
use crate::outcome::CannotRun;

/// What to experiment on.
#[derive(clap::Args, Debug)]
pub struct ChecksArgs {
    /// Runs of each kind for figure 6, interleaved; the median counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,

    /// Which figure: 6 wants programs of a second and more, 8 records a whole run and wants short ones
    #[arg(long, value_enum, default_value_t = Figure::Both)]
    figure: Figure,

    #[command(flatten)]
    pub source: source::Args,
}

/// Which figure of the paper.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Basic overhead
    #[value(name = "6")]
    Overhead,
    /// Overlap of hot data streams
    #[value(name = "8")]
    Overlap,
    /// Both
    Both,
}

/// Never comes to a burst: nCheck0 = infinite.
const NO_BURST: Policy = Policy::Counter { gap: u64::MAX, checks: 1 };
/// Figure 8's nCheck0:nInstr0.
const SAMPLED: Policy = Policy::Counter { gap: 1000, checks: 50 };
/// What is left are indirect jumps, and code that was not analysed.
const WITHOUT: Scheme = Scheme { entries: sonde_checks::Entries::None, boring: Some(u32::MAX) };
/// Our own mode with the same nInstr0 = 1: native between bursts.
const NATIVE_BETWEEN: Policy = Policy::Bursts { period: Duration::from_millis(10), checks: 1 };

/// The table.
pub fn table(args: &ChecksArgs) -> Result<Table> {
    if !args.source.is_program() {
        bail!("lab checks runs a program several times; a trace holds the checks of one run only");
    }
    if args.rounds == 0 {
        bail!("--rounds must be at least 1");
    }
    let program = args.source.program()?;
    let mut table = Table {
        title: format!("checks of counter mode: {}", program.args[0].to_string_lossy()),
        columns: vec!["scheme"],
        rows: Scheme::ALL.iter().map(|(name, _)| vec![(*name).to_owned()]).collect(),
        ..Table::default()
    };
    if args.figure != Figure::Overlap {
        figure_6(args.rounds, &program, &mut table)?;
    }
    if args.figure != Figure::Overhead {
        figure_8(&program, &mut table)?;
    }
    let width = table.columns.len();
    table.rows.iter_mut().for_each(|row| row.resize(width, "-".into()));
    Ok(table)
}

fn options(policy: Policy, scheme: Scheme) -> Options {
    Options { policy, scheme, detail: Detail::Addresses, ..Options::default() }
}

/// One run in which nothing is read.
fn timed(program: &Program, options: &Options) -> Result<Totals> {
    let session = Session::start(program, options).map_err(CannotRun)?;
    let served = session.serve(Outlets::default(), &mut |_| {});
    if let Some(Err(why)) = served.in_place {
        bail!("the program's code cannot be changed: {why}");
    }
    match served.exit {
        exit @ Exit::Signal(_) => bail!("the program {exit}"),
        Exit::Status(_) => Ok(served.totals),
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64)
}

fn figure_6(rounds: usize, program: &Program, table: &mut Table) -> Result<()> {
    let in_copy = |scheme: Scheme| options(NO_BURST, scheme);
    let in_place = |scheme: Scheme| Options { in_place: true, ..options(NO_BURST, scheme) };
    let schemes = || Scheme::ALL.iter().map(|(_, scheme)| *scheme);
    let mut modes: Vec<Options> = schemes().map(in_place).chain(schemes().map(in_copy)).collect();
    // After the schemes: the copy without checks, and our own mode.
    modes.push(in_copy(WITHOUT));
    modes.push(options(NATIVE_BETWEEN, Scheme::default()));
    let mut native = Vec::new();
    let mut times = vec![Vec::new(); modes.len()];
    let mut translating = f64::INFINITY;
    for _ in 0..rounds {
        native.push(program.run_natively().map_err(CannotRun)?);
        for (mode, times) in modes.iter().zip(&mut times) {
            let totals = timed(program, mode)?;
            // Wall time, so that the least says most about it.
            let ticks = totals.counter(Counter::TranslateTicks) as f64;
            if matches!(mode.policy, Policy::Counter { .. }) && !mode.in_place {
                translating = translating.min(ticks / totals.ticks_per_second.max(1.0));
            }
            times.push(totals.cpu);
        }
    }
    let native = median(&mut native).max(1e-6);
    let times: Vec<f64> = times.iter_mut().map(|times| median(times)).collect();
    let (placed, rest) = times.split_at(Scheme::ALL.len());
    let (copied, rest) = rest.split_at(Scheme::ALL.len());
    let without = rest[0].max(1e-6);
    let over = |time: f64, base: f64| percent(time / base - 1.0);
    table.columns.extend([
        "in place, over native %",
        "in a copy, over native %",
        "over the copy without checks %",
    ]);
    table.rows.push(vec!["no checks".to_owned(), "-".to_owned(), over(without, native)]);
    table.rows.push(vec!["bursts".to_owned(), over(rest[1], native)]);
    for ((row, placed), copied) in table.rows.iter_mut().zip(placed).zip(copied) {
        row.extend([over(*placed, native), over(*copied, native), over(*copied, without)]);
    }
    table.paper.push("figure 6: basic overhead 6 to 35 % (orig), 3 to 18 % (EC+L4), over native".into());
    table.notes.extend([
        format!("nCheck0 = infinite: nothing is recorded; CPU time, median of {rounds} interleaved rounds"),
        format!(
            "native: {native:.3} s; making the copies took {translating:.3} s of each run in counter mode"
        ),
        "in place: --in-place, the program's own code changed in memory, as the paper changes it ahead of time; EC there leaves \
         out more entries than the paper's, and every scheme but orig what other checks cover"
            .into(),
        "no checks: the copy alone, a cost that the paper's ahead-of-time rewriting did not have".into(),
        "bursts: --policy bursts, native between bursts of one check every 10 ms".into(),
    ]);
    Ok(())
}

/// The hot data streams of a run, by place, so that runs can be compared.
fn streams(program: &Program, options: &Options, common: &mut Regions) -> Result<StreamsProfile> {
    let mut reader = StreamsReader::new(StreamsConfig::default())?;
    let session = Session::start(program, options).map_err(CannotRun)?;
    let served = session.serve(Outlets { reader: Some(&mut reader), ..Outlets::default() }, &mut |_| {});
    if let Some(error) = served.totals.error {
        bail!("the stream could not be read to its end: {error}");
    }
    let mut places = Places::new();
    served.totals.mappings.all().iter().for_each(|mapping| places.map(mapping));
    let numbers = common.remap(places.regions());
    let mut profile = reader.finish();
    profile.relocate(&mut |address| {
        let place = places.place(address);
        let number = numbers.get(usize::from(place.slot())).copied();
        number.map_or(place.0, |number| Place::new(number, place.offset()).0)
    });
    Ok(profile)
}

fn figure_8(program: &Program, table: &mut Table) -> Result<()> {
    let mut common = Regions::default();
    let full = streams(program, &options(Policy::Always, Scheme::default()), &mut common)
        .context("recording everything")?;
    table.columns.extend(["overlap %", "recorded %", "bursts"]);
    for (row, (_, scheme)) in table.rows.iter_mut().zip(Scheme::ALL) {
        let sampled = streams(program, &options(SAMPLED, scheme), &mut common)?;
        row.push(percent(overlap(&full, &sampled, Share::OfProfile)));
        row.push(percent(sampled.references as f64 / full.references.max(1) as f64));
        row.push(sampled.bursts.to_string());
    }
    table
        .paper
        .push("figure 8: at 1000:50, EC+L4 overlaps as much as orig or more (but for one program)".into());
    table.notes.push(format!(
        "overlap at 1000:50 with the hot data streams of a whole run: {} references, {} streams",
        full.references,
        full.streams.len()
    ));
    Ok(())
}
