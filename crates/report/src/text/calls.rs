//! Methods, call pairs, code regions and contexts.

use super::{Style, and_more, fit_code, grouped, heading, percent, plus_minus, some};
use crate::figures::count;
use crate::view::Report;
use std::io::{self, Write};

/// Hot methods, call pairs, code regions.
pub fn calls(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(calls) = report.calls.as_ref().filter(|calls| calls.calls > 0 || !calls.regions.is_empty())
    else {
        return Ok(());
    };
    let room = style.width.saturating_sub(46).max(24);
    let timed = report.unit != "events";
    let weighted =
        if timed { ", each weighted by the time its burst stands for; ± is sampling, 95 %" } else { "" };
    heading(out, style, "hot methods", &format!("share of calls and backward branches{weighted}"))?;
    for m in some(&calls.methods, style).0 {
        let (share, name) = (percent(m.share) + &plus_minus(m.plus_minus), fit_code(&m.name, room));
        let called = count(m.calls, "call", "calls");
        writeln!(out, "  {share}  {name}  {called}, {} back", grouped(m.backward))?;
    }
    let all = count(calls.calls, "call", "calls");
    heading(out, style, "hot call pairs", &format!("share of {all}{weighted}"))?;
    for p in some(&calls.pairs, style).0 {
        let (site, callee) = (fit_code(&p.site, room * 3 / 5), fit_code(&p.callee, room * 2 / 5));
        let share = percent(p.share) + &plus_minus(p.plus_minus);
        writeln!(out, "  {share}  {site} -> {callee}  {}", count(p.calls, "call", "calls"))?;
    }
    let of = format!("the instructions up to a branch, as a share of {}", report.share_of);
    heading(out, style, "hot code regions", &of)?;
    for r in some(&calls.regions, style).0 {
        let share = percent(r.share) + &plus_minus(r.plus_minus);
        let times = count(r.executed, "time", "times");
        writeln!(out, "  {share}  {}  {times}", fit_code(&r.branch, room))?;
    }
    Ok(())
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
