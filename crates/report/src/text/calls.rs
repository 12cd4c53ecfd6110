//! Methods, call pairs, code regions and contexts.

use super::{Style, and_more, fit_code, grouped, heading, percent, plus_minus, some, wrap};
use crate::figures::count;
use crate::view::{CallsView, Report};
use std::io::{self, Write};

/// Columns of a count.
const COUNT: usize = 12;

/// Hot methods, call pairs, code regions.
pub fn calls(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(calls) = report.calls.as_ref().filter(|calls| calls.calls > 0 || !calls.regions.is_empty())
    else {
        return Ok(());
    };
    methods(out, report, calls, style)?;
    pairs(out, report, calls, style)?;
    regions(out, report, calls, style)
}

/// What is said of shares behind what they are of.
fn estimated(report: &Report) -> &'static str {
    if sampled(report) {
        " in bursts, each of which weighs the time it stands for; ± is sampling, 95 %"
    } else {
        ""
    }
}

fn sampled(report: &Report) -> bool {
    report.unit != "events"
}

/// The line above the rows: what the numbers are.
fn columns(out: &mut impl Write, report: &Report, counts: &[&str]) -> io::Result<()> {
    let gap = if sampled(report) { 6 } else { 0 };
    let counts: String = counts.iter().map(|name| format!("{name:>COUNT$}")).collect();
    let seen = if sampled(report) { "  (as seen in bursts)" } else { "" };
    writeln!(out, "    share{:gap$}{counts}{seen}", "")
}

/// A row: the share, counts, a name that has what is left of the line.
fn row(share: f64, half: f64, counts: &[u64]) -> String {
    let counts: String = counts.iter().map(|n| format!("{:>COUNT$}", grouped(*n))).collect();
    format!("  {}{}{counts}  ", percent(share), plus_minus(half))
}

fn methods(out: &mut impl Write, report: &Report, calls: &CallsView, style: Style) -> io::Result<()> {
    let of = format!("share of all calls and backward branches{}", estimated(report));
    heading(out, style, "hot methods", &of)?;
    columns(out, report, &["calls", "back"])?;
    for m in some(&calls.methods, style).0 {
        let numbers = row(m.share, m.plus_minus, &[m.calls, m.backward]);
        writeln!(out, "{numbers}{}", fit_code(&m.name, left(style, &numbers)))?;
    }
    if sampled(report) {
        let why = "calls, and back for backward branches, are counts of what bursts saw. Shares are not in proportion to \
                   them: a burst stands for the time since the one before, however much it counted";
        for line in wrap(why, style.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn pairs(out: &mut impl Write, report: &Report, calls: &CallsView, style: Style) -> io::Result<()> {
    let all = count(calls.calls, "call", "calls");
    let of = if sampled(report) { format!("all calls{}", estimated(report)) } else { all };
    heading(out, style, "hot call pairs", &format!("share of {of}"))?;
    columns(out, report, &["calls"])?;
    for p in some(&calls.pairs, style).0 {
        let numbers = row(p.share, p.plus_minus, &[p.calls]);
        let room = left(style, &numbers).saturating_sub(4);
        // What the callee leaves goes to the site, of which there is more to say.
        let callee = fit_code(&p.callee, (room * 2 / 5).max(16));
        let site = fit_code(&p.site, room.saturating_sub(callee.chars().count()).max(20));
        writeln!(out, "{numbers}{site} -> {callee}")?;
    }
    Ok(())
}

fn regions(out: &mut impl Write, report: &Report, calls: &CallsView, style: Style) -> io::Result<()> {
    let of = format!("the instructions up to a branch, as a share of {}", report.share_of);
    heading(out, style, "hot code regions", &of)?;
    columns(out, report, &["times"])?;
    for r in some(&calls.regions, style).0 {
        let numbers = row(r.share, r.plus_minus, &[r.executed]);
        writeln!(out, "{numbers}{}", fit_code(&r.branch, left(style, &numbers)))?;
    }
    Ok(())
}

/// Columns behind the numbers.
fn left(style: Style, numbers: &str) -> usize {
    style.width.saturating_sub(numbers.chars().count()).max(24)
}

/// The calling-context tree.
pub fn contexts(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(calls) = report.calls.as_ref().filter(|calls| !calls.contexts.is_empty()) else { return Ok(()) };
    let of = format!(
        "with all below and own; share of {}; \"...\" where the callers were not seen",
        report.share_of
    );
    heading(out, style, "calling contexts", &of)?;
    let rows = style.top * 2;
    let (shown, left_out) = some(&calls.contexts, Style { top: rows, ..style });
    for c in shown {
        let numbers = format!("  {}{} {}", percent(c.share), plus_minus(c.plus_minus), percent(c.own_share));
        let indent = "  ".repeat(c.depth.min(16));
        let cut = if c.cut { "... " } else { "" };
        let room = style.width.saturating_sub(numbers.chars().count() + indent.len() + 6).max(20);
        writeln!(out, "{numbers}  {indent}{cut}{}", fit_code(&c.name, room))?;
    }
    and_more(out, left_out)
}
