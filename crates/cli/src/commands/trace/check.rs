//! `sonde trace check`: the invariant checker over a trace.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use sonde_event::check::Check;

use super::open::{ends_early, play, troubles};
use crate::outcome::{CannotWrite, Inconsistent};
use crate::quantity::{count, grouped};

/// Checks, prints what was found, and fails if it cannot be true.
pub fn run(file: &Path) -> Result<()> {
    let mut check = Check::default();
    let played = play(file, &mut check)?;
    let troubles = troubles(&played);
    write(&mut io::stdout().lock(), &check, &troubles).map_err(CannotWrite)?;
    let damaged = played.damages > 0 || played.errors > 0;
    let whole = ends_early(file, played.chunks, played.truncated, played.end.is_some());
    if check.is_clean() && !damaged {
        // A trace that was cut off is not wrong, only shorter.
        return Ok(whole?);
    }
    if let Err(early) = whole {
        eprintln!("sonde: {early}");
    }
    Err(Inconsistent { file: file.to_owned(), violations: check.count(), damaged }.into())
}

fn write(out: &mut impl Write, check: &Check, troubles: &[String]) -> io::Result<()> {
    writeln!(
        out,
        "checked    {} passes in {}, {} references",
        grouped(check.runs),
        count(check.bursts, "burst", "bursts"),
        grouped(check.references)
    )?;
    writeln!(
        out,
        "calls      {}; returns: {} matched, {} unwound, {} to before the burst, {} unmatched",
        grouped(check.calls),
        grouped(check.matched),
        grouped(check.unwound),
        grouped(check.beyond),
        grouped(check.unmatched)
    )?;
    for trouble in troubles {
        writeln!(out, "trouble    {trouble}")?;
    }
    for (rule, count) in &check.by_rule {
        writeln!(out, "wrong      {} times: {rule}", grouped(*count))?;
    }
    for violation in &check.violations {
        writeln!(out, "           {violation}")?;
    }
    out.flush()
}
