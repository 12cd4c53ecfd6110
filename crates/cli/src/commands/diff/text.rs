//! A comparison as text.

use std::io::{self, Write};

use super::facts::{Changed, Facts, Side};
use crate::quantity::grouped;

/// Writes it, at most `top` changes of each list.
pub fn write(out: &mut impl Write, facts: &Facts, top: usize) -> io::Result<()> {
    side(out, "before", &facts.before)?;
    side(out, "after", &facts.after)?;
    for module in &facts.rebuilt {
        writeln!(out, "{module} was built anew: its functions are compared by name, its data not at all")?;
    }
    for (module, side) in &facts.nameless {
        writeln!(
            out,
            "{module}: no names for what ran {side} (its file is gone, changed or stripped); not compared by functions"
        )?;
    }
    writeln!(out)?;
    if facts.functions_compared > 0 {
        list(out, "functions", facts.functions_compared, &facts.functions, top)?;
    }
    for kind in &facts.kinds {
        list(out, kind.kind, kind.compared, &kind.changes, top)?;
        if kind.changes.is_empty() && kind.resolution > 0.0 {
            let percent = 100.0 * kind.resolution;
            writeln!(
                out,
                "    a share of 10 % would have had to change by {percent:.1} % to be told from chance"
            )?;
        }
    }
    for (names, side) in [(&facts.only_before, "before"), (&facts.only_after, "after")] {
        if !names.is_empty() {
            writeln!(out, "not compared, since only the profile {side} has it: {}", names.join(", "))?;
        }
    }
    if facts.is_empty() {
        writeln!(out, "nothing changed beyond the errors")?;
    }
    Ok(())
}

fn side(out: &mut impl Write, name: &str, side: &Side) -> io::Result<()> {
    let (runs, cpu, bursts) = (grouped(side.runs), side.cpu_seconds, grouped(side.bursts));
    let command = side.command.join(" ");
    writeln!(out, "{name:<7} {command}  ({runs} runs, {cpu:.2} s of CPU time, {bursts} bursts)")
}

fn list(
    out: &mut impl Write,
    title: &str,
    compared: usize,
    changes: &[Changed],
    top: usize,
) -> io::Result<()> {
    writeln!(
        out,
        "{title}: {} changed of {} compared",
        grouped(changes.len() as u64),
        grouped(compared as u64)
    )?;
    for change in changes.iter().take(top) {
        let word = if change.at_least > 0.0 { "hotter" } else { "colder" };
        writeln!(
            out,
            "  {word}  {:>5.1} % -> {:>5.1} %  (apart by {:.1} % beyond the trees' errors; chance explains {:.1} %)  {}",
            100.0 * change.before[0],
            100.0 * change.after[0],
            100.0 * change.at_least.abs(),
            100.0 * change.noise,
            change.name
        )?;
    }
    if changes.len() > top {
        writeln!(out, "    and {} more (--top)", grouped((changes.len() - top) as u64))?;
    }
    Ok(())
}
