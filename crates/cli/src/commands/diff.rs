//! `sonde diff`: what got hotter or colder from one profile to another, by name.

mod facts;
mod functions;
mod text;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Result;
use sonde_profile::diff::{DiffOptions, Pair};

use crate::commands::report::{symbols, tell_of_skipped};
use crate::mistaken;
use crate::outcome::CannotWrite;
use crate::quantity::parse_share;

const EXAMPLES: &str = "\
Examples:
  sonde diff before.sonde after.sonde
  sonde diff --least 2% --json before.sonde after.sonde

Keep the old program's file if it is built anew: its functions can only be named from it.";

/// Show what got hotter or colder from one profile to another, beyond their errors.
///
/// A share is compared as the interval in which it certainly lies; where bursts were recorded, also chance has to be ruled
/// out, for all ranges together. Modules that were built anew are compared by functions, everything else by place.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The profile to compare with
    before: PathBuf,

    /// The profile that may have changed
    after: PathBuf,

    /// Compare what has at least this share in one of them
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share)]
    hot: f64,

    /// Show changes of at least this share of the whole
    #[arg(long, value_name = "SHARE", default_value = "0.5%", value_parser = parse_share)]
    least: f64,

    /// How sure it has to be that no change shown is chance
    #[arg(long, value_name = "SHARE", default_value = "99%", value_parser = parse_share)]
    confidence: f64,

    /// Most changes of each list; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Write JSON to standard output (docs/diff-json.md)
    #[arg(long)]
    json: bool,

    /// Also look below this folder for debug files, and for copies of programs that were changed or deleted since, by build-id
    /// (may be given several times)
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
}

/// Compares.
pub fn run(args: &Args) -> Result<()> {
    let (before, after) = (mistaken::profile(&args.before)?, mistaken::profile(&args.after)?);
    let options = DiffOptions { hot: args.hot, least: args.least, confidence: args.confidence };
    let pair = Pair::new(&before, &after, options)?;
    let mut symbols = symbols(&args.debug_dir);
    let functions = functions::compare(&pair, &mut symbols);
    let facts = facts::Facts::new([&before, &after], functions, pair.diff(), &mut symbols);
    tell_of_skipped(&symbols);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        serde_json::to_writer_pretty(&mut out, &facts).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        let top = if args.top == 0 { usize::MAX } else { args.top };
        text::write(&mut out, &facts, top)
    };
    written.and_then(|()| out.flush()).map_err(|error| CannotWrite(error).into())
}
