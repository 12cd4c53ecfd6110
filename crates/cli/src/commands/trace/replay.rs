//! `sonde trace replay`: feeds a trace through the same decoder and readers as a live run.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use sonde_event::{Count, Counts};

use super::dump::Dump;
use super::open::{damaged, ends_early, play, troubles};
use crate::outcome::CannotWrite;
use crate::quantity::grouped;

/// Replay a trace: count what is in it, or print it; status 3 if its file ends early or is damaged
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace
    file: PathBuf,

    /// Print every burst, block and reference, a line each
    #[arg(long)]
    dump: bool,

    /// Stop printing after this many lines
    #[arg(long, value_name = "N", requires = "dump")]
    lines: Option<u64>,

    /// Print the counts as JSON
    #[arg(long, conflicts_with = "dump")]
    json: bool,
}

/// Replays.
pub fn run(args: &Args) -> Result<()> {
    let mut out = BufWriter::new(io::stdout());
    let mut count = Count::default();
    let played = if args.dump {
        let mut dump = Dump::new(&mut out, args.lines.unwrap_or(u64::MAX));
        let played = play(&args.file, &mut dump)?;
        dump.finish().map_err(CannotWrite)?;
        played
    } else {
        let played = play(&args.file, &mut count)?;
        write_counts(&mut out, &count.counts, args.json).map_err(CannotWrite)?;
        played
    };
    out.flush().map_err(CannotWrite)?;
    for trouble in troubles(&played) {
        eprintln!("sonde: {}: {trouble}", args.file.display());
    }
    ends_early(&args.file, played.chunks, played.truncated, played.end.is_some())?;
    Ok(damaged(&args.file, played.damages, played.errors)?)
}

fn write_counts(out: &mut impl Write, counts: &Counts, json: bool) -> io::Result<()> {
    let named = [
        ("bursts", counts.bursts),
        ("runs", counts.runs),
        ("blocks", counts.blocks),
        ("instructions", counts.instructions),
        ("repetitions", counts.repetitions),
        ("loads", counts.loads),
        ("stores", counts.stores),
        ("without_address", counts.without_address),
        ("events", counts.events()),
    ];
    if json {
        let map: serde_json::Map<String, serde_json::Value> =
            named.into_iter().map(|(name, count)| (name.to_string(), count.into())).collect();
        serde_json::to_writer_pretty(&mut *out, &map).map_err(io::Error::from)?;
        return writeln!(out);
    }
    named.iter().try_for_each(|(name, count)| writeln!(out, "{name:16} {}", grouped(*count)))
}
