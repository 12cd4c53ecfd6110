//! A comparison as text.

use std::io::{self, Write};

use super::facts::{Changed, Facts, Side};
use crate::quantity::{count, grouped};

/// Writes it, at most `top` changes of each list.
pub fn write(out: &mut impl Write, facts: &Facts, top: usize) -> io::Result<()> {
    side(out, "before", &facts.before)?;
    side(out, "after", &facts.after)?;
    writeln!(out, "{}", speed(facts))?;
    if let Some([before, after]) = &facts.different_programs {
        writeln!(
            out,
            "different programs ({before}; {after}): most of what follows is that, and only libraries can be compared"
        )?;
    }
    for module in &facts.rebuilt {
        let module = sonde_report::short(module);
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
    }
    resolution(out, facts)?;
    let drawn: usize = facts.kinds.iter().map(|kind| kind.drawn).sum();
    if drawn > 0 {
        let values = count(drawn as u64, "value is", "values are");
        writeln!(out, "{values} another in each run, drawn at random (what guards the stack): no change")?;
    }
    for (names, side) in [(&facts.only_before, "before"), (&facts.only_after, "after")] {
        if !names.is_empty() {
            writeln!(out, "not compared, since only the profile {side} has it: {}", names.join(", "))?;
        }
    }
    if facts.is_empty() {
        // What cannot be told apart may have changed all the same.
        let told = facts.kinds.iter().all(|kind| kind.resolution < TELLING);
        let alike = match facts.times_as_long.filter(|_| !facts.takes_as_long) {
            Some(times) if !told => format!(
                ", but a run takes {times:.2} times as long: record more to see what does (--period 2ms, longer runs, several merged)"
            ),
            Some(times) => format!(": as far as can be told, everything takes {times:.2} times as long"),
            None => String::new(),
        };
        writeln!(out, "no share changed beyond the errors{alike}")?;
    }
    Ok(())
}

fn side(out: &mut impl Write, name: &str, side: &Side) -> io::Result<()> {
    let (runs, bursts) = (count(side.runs, "run", "runs"), count(side.bursts, "burst", "bursts"));
    let (command, cpu) = (side.command.join(" "), side.cpu_seconds);
    writeln!(out, "{name:<7} {command}  ({runs}, {cpu:.2} s of CPU time, {bursts})")
}

/// Shares say nothing of a program that got slower as a whole.
fn speed(facts: &Facts) -> String {
    let [before, after] = [&facts.before, &facts.after].map(|side| side.a_run[0]);
    let span = format!("{before:.2} s -> {after:.2} s of CPU time a run");
    match facts.times_as_long {
        Some(times) if !facts.takes_as_long => format!("a run takes {times:.2} times as long: {span}"),
        _ if facts.before.runs > 1 && facts.after.runs > 1 => {
            format!("a run takes as long as before, as far as these runs tell: {span}")
        }
        _ => format!("a run takes about as long as before, as far as so few runs tell: {span}"),
    }
}

/// Below this change of a share of 10 %, that none is seen tells something.
const TELLING: f64 = 0.05;

/// From here on a change of a share of 10 % cannot be seen for all practical purposes.
const BLIND: f64 = 0.3;

/// What could have been seen, once for all kinds.
fn resolution(out: &mut impl Write, facts: &Facts) -> io::Result<()> {
    let unchanged = || facts.kinds.iter().filter(|kind| kind.changes.is_empty() && kind.resolution > 0.0);
    let seen: Vec<String> = unchanged()
        .filter(|kind| kind.resolution < BLIND)
        .map(|kind| format!("{} {:.1} %", kind.kind, 100.0 * kind.resolution))
        .collect();
    if !seen.is_empty() {
        writeln!(out, "a share of 10 % can be told from chance once it changes by: {}", seen.join(", "))?;
    }
    let blind: Vec<&str> =
        unchanged().filter(|kind| kind.resolution >= BLIND).map(|kind| kind.kind).collect();
    if !blind.is_empty() {
        let bursts = facts.before.bursts.min(facts.after.bursts);
        writeln!(
            out,
            "too few bursts ({}) to see changes of: {}\n  record more with --rate 5%, a longer run or several merged ones, or everything with --policy always",
            grouped(bursts),
            blind.join(", ")
        )?;
    }
    Ok(())
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
        let rest = if change.rest { ", the rest of it" } else { "" };
        let time = change.seconds_a_run.map_or_else(String::new, |[a, b]| format!("  {a:.2} s -> {b:.2} s"));
        writeln!(
            out,
            "  {word}  {:>5.1} % -> {:>5.1} %{time}  (by at least {:.1} %; chance explains {:.1} %)  {}{rest}",
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
