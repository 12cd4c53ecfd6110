//! Loops and values of loads.

use super::{Style, and_more, fit_code, grouped, heading, percent, plus_minus, some, wrap};
use crate::figures::count;
use crate::view::{LoadView, LoopView, Report};
use std::io::{self, Write};

/// Loops: shares, executions, iterations, where.
pub fn loops(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(view) = report.loops.as_ref().filter(|view| view.found > 0) else { return Ok(()) };
    let bursts = report.unit != "events";
    let found = count(view.found as u64, "loop", "loops");
    heading(out, style, "loops", &format!("{found}; share of {}", report.share_of))?;
    let (gap, executions, span) =
        if bursts { ("      ", "seen whole", "95 %") } else { ("", "executions", "least-most") };
    writeln!(out, "      own     all{gap} depth    {executions}  iterations each ({span})")?;
    let (shown, _) = some(&view.loops, style);
    for l in shown {
        // None may have been seen from its start to its end.
        let executions = if l.executions == 0 { "-".to_owned() } else { grouped(l.executions) };
        let iterations = match (l.ends_seen, l.executions) {
            (Some(_), _) => estimated(l),
            (None, 0) => format!("{:>10}", "-"),
            (None, _) => iterations(l),
        };
        let numbers = format!(
            "  {} {}{} {:>5} {executions:>13}  {iterations}",
            percent(l.own_share),
            percent(l.share),
            plus_minus(l.plus_minus),
            l.depth
        );
        let room = style.width.saturating_sub(numbers.chars().count() + 2).max(24);
        writeln!(out, "{numbers}  {}", where_it_is(l, room))?;
    }
    and_more(out, view.found - shown.len())?;
    let cut: u64 = view.loops.iter().map(|l| l.cut).sum();
    if cut > 0 && !bursts {
        let what = count(cut, "execution", "executions");
        writeln!(
            out,
            "  {what} of these began or ended unseen: not in the averages (- where none was seen whole)"
        )?;
    }
    if bursts {
        let what = "executions are those that bursts saw from begin to end: a sample, mostly of short ones, and no total of \
                    the run. Iterations of each are estimated from all that bursts saw of a loop: rounds, and how often it \
                    began or ended; in brackets what the average is with 95 % probability. All, with what a loop calls, is at least \
                    that: where a burst ended before the calls that it began in returned, their callers are not known";
        for line in wrap(what, style.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Its name and the loop around it, by which the loops of a nest are told apart.
fn where_it_is(l: &LoopView, room: usize) -> String {
    let inside = l.inside.as_deref().map_or_else(String::new, |line| format!("  in {line}"));
    // Not instead of the name itself.
    let needed = l.name.chars().count().min(36);
    match room.checked_sub(inside.chars().count()).filter(|room| *room >= needed) {
        Some(room) => format!("{}{inside}", fit_code(&l.name, room)),
        None => fit_code(&l.name, room),
    }
}

/// What bursts tell: an interval, or only how many at least.
fn estimated(l: &LoopView) -> String {
    let figure = |n: f64| if n < 99.95 { format!("{n:.1}") } else { grouped(n.round() as u64) };
    match l.iterations_at_most {
        None => format!("{:>10} or more", figure(l.iterations_at_least)),
        Some(most) => {
            format!("{:>10} ({}-{})", figure(l.iterations), figure(l.iterations_at_least), figure(most))
        }
    }
}

fn iterations(l: &LoopView) -> String {
    let (least, most) = (grouped(l.iterations_least), grouped(l.iterations_most));
    let span = if least == most { String::new() } else { format!(" ({least}-{most})") };
    format!("{:>10.1}{span}", l.iterations)
}

/// Values of the most frequent loads.
pub fn values(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(view) = report.values.as_ref().filter(|view| view.instructions > 0) else { return Ok(()) };
    let note = format!(
        "{} of {} loads by {} instructions give their most frequent value; {}",
        percent(view.invariance).trim(),
        grouped(view.loads),
        grouped(view.instructions as u64),
        match view.hot.iter().flat_map(|load| &load.values).any(|v| v.share_at_least < v.share_at_most) {
            true => format!("{}; in brackets what a share is at least and at most", view.method),
            false => view.method.clone(),
        }
    );
    heading(out, style, "values of loads", &note)?;
    if view.masked > 0 {
        writeln!(
            out,
            "  {} loads were not recorded, because what they give was known by then",
            grouped(view.masked)
        )?;
    }
    let (shown, _) = some(&view.hot, style);
    for load in shown {
        let values = told(load);
        let room = style.width.saturating_sub(values.chars().count() + 13).max(24);
        writeln!(out, "  {}  {}  {values}", percent(load.share), fit_code(&load.name, room))?;
    }
    and_more(out, view.instructions - shown.len())
}

fn told(load: &LoadView) -> String {
    let one = |v: &crate::view::ValueView| {
        // Slots look at a part of the executions only.
        let (least, most) = ((v.share_at_least * 100.0).floor(), (v.share_at_most * 100.0).ceil());
        let bounds =
            if v.share_at_least < v.share_at_most { format!(" ({least}-{most})") } else { String::new() };
        format!("{} {:.0} %{bounds}", v.value, v.share * 100.0)
    };
    let list: Vec<String> = load.values.iter().take(2).map(one).collect();
    let glacial = if load.glacial == Some(true) { " glacial" } else { "" };
    format!("{}{glacial}", list.join(", "))
}
