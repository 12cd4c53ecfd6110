//! `sonde merge`: many runs as one profile.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sonde_profile::{MergeOptions, Profile};

use crate::file_name;
use crate::mistaken;
use crate::outcome::CannotWrite;
use crate::quantity::{count, grouped};

const EXAMPLES: &str = "\
Examples:
  sonde merge -o all.sonde monday.sonde tuesday.sonde
  sonde merge --by-name -o all.sonde old-build.sonde new-build.sonde";

/// Add the profiles of several runs up to one.
///
/// What belongs together is found by build-id and offset, so that it does not matter where programs and libraries lay.
/// Different builds of a module stay apart unless --by-name is given. Errors stay what they were, as a share of all.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The profiles
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Where to write the sum; may be one of the profiles
    #[arg(short = 'o', long = "output", value_name = "FILE", value_parser = file_name::to_write())]
    output: PathBuf,

    /// Take modules with the same file name for the same, even if they are different builds; their offsets are then mixed
    #[arg(long)]
    by_name: bool,
}

/// Merges.
pub fn run(args: &Args) -> Result<()> {
    let options = MergeOptions { by_name: args.by_name };
    let (first, rest) = args.files.split_first().context("no profile given")?;
    let mut sum = mistaken::profile(first)?;
    for file in rest {
        let more = mistaken::profile(file)?;
        refuse_again(&sum, &more, file)?;
        sum.merge(&more, &options).with_context(|| format!("cannot add {}", file.display()))?;
    }
    sum.write_to(&args.output)?;
    tell(&sum, args).map_err(|error| CannotWrite(error).into())
}

/// The same run twice would count twice, and errors would look smaller than they are.
fn refuse_again(sum: &Profile, more: &Profile, file: &Path) -> Result<()> {
    if let Some(run) = more.runs.iter().find(|run| sum.runs.contains(run)) {
        let (command, bursts) = (run.command.join(" "), count(run.bursts, "burst", "bursts"));
        bail!(
            "{} holds a run that is in the sum already ({command}, {bursts}): leave the file out, or name it once",
            file.display()
        );
    }
    Ok(())
}

fn tell(sum: &Profile, args: &Args) -> io::Result<()> {
    let mut err = io::stderr().lock();
    let (totals, cpu) = (&sum.totals, sum.totals.cpu_ns as f64 / 1e9);
    writeln!(
        err,
        "{}: {}, {cpu:.2} s of CPU time, {}",
        args.output.display(),
        count(totals.runs, "run", "runs"),
        count(totals.bursts, "burst", "bursts")
    )?;
    if sum.unknown_parts > 0 {
        let parts = grouped(sum.unknown_parts);
        writeln!(err, "  {parts} parts were made by a later version of Sonde; they are not in the sum")?;
    }
    if sum.runs_left_out() > 0 {
        writeln!(err, "  {} of the runs are added up, but not described", grouped(sum.runs_left_out()))?;
    }
    for (name, count) in &totals.losses {
        if let Some(kind) = name.strip_prefix("runs_without_") {
            writeln!(err, "  {} of the runs have no summary of {kind}", grouped(*count))?;
        }
    }
    Ok(())
}
