//! Methods, call pairs, code regions and contexts.

use super::{Style, and_more, fit_code, grouped, heading, percent, plus_minus, some};
use crate::view::Report;
use std::io::{self, Write};

/// Hot methods, call pairs, code regions.
pub fn calls(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(calls) = report.calls.as_ref().filter(|calls| calls.calls > 0 || !calls.regions.is_empty())
    else {
        return Ok(());
    };
    let room = style.width.saturating_sub(40).max(24);
    heading(out, style, "hot methods", "share of calls and backward branches")?;
    for m in some(&calls.methods, style).0 {
        let name = fit_code(&m.name, room);
        writeln!(
            out,
            "  {}  {name}  {} calls, {} back",
            percent(m.share),
            grouped(m.calls),
            grouped(m.backward)
        )?;
    }
    heading(out, style, "hot call pairs", &format!("share of {} calls", grouped(calls.calls)))?;
    for p in some(&calls.pairs, style).0 {
        let (site, callee) = (fit_code(&p.site, room * 3 / 5), fit_code(&p.callee, room * 2 / 5));
        writeln!(out, "  {}  {site} -> {callee}  {} calls", percent(p.share), grouped(p.calls))?;
    }
    heading(out, style, "hot code regions", "instructions up to a branch, as a share of all")?;
    for r in some(&calls.regions, style).0 {
        writeln!(
            out,
            "  {}  {}  {} times",
            percent(r.share),
            fit_code(&r.branch, room),
            grouped(r.executed)
        )?;
    }
    Ok(())
}

/// The calling-context tree.
pub fn contexts(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(calls) = report.calls.as_ref().filter(|calls| !calls.contexts.is_empty()) else { return Ok(()) };
    heading(out, style, "calling contexts", "all below, own; \"...\" where the callers were not seen")?;
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
