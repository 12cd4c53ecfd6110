//! Plain lists: runs, functions, the cache model, what is missing.

use super::{Style, and_more, fit, fit_code, grouped, heading, percent, plus_minus, some, wrap, write_entry};
use crate::figures::{count, short};
use crate::view::{FunctionView, Report};
use std::io::{self, Write};

/// How the runs were taken.
pub fn runs(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let (shown, left_out) = some(&report.runs, style);
    for run in shown {
        heading(out, style, &fit(&run.command.join(" "), style.width.saturating_sub(2)), "")?;
        for (what, how) in &run.facts {
            write_entry(out, what, how, style)?;
        }
    }
    and_more(out, left_out)?;
    if report.runs.len() > 1 {
        let cpu: f64 = report.runs.iter().map(|run| run.cpu_seconds).sum();
        write_entry(out, "together", &format!("{} runs, {cpu:.2} s of CPU time", report.runs.len()), style)?;
    }
    let t = &report.totals;
    let recorded = format!(
        "{} instructions in {} blocks, {} loads, {} stores, {}",
        grouped(t.instructions),
        grouped(t.blocks),
        grouped(t.loads),
        grouped(t.stores),
        count(t.bursts, "burst", "bursts")
    );
    write_entry(out, "recorded", &recorded, style)
}

/// How much of the time shares are of.
fn kernel(report: &Report) -> String {
    let cpu: f64 = report.runs.iter().map(|run| run.cpu_seconds).sum();
    let system: Option<f64> = report.runs.iter().map(|run| run.system_seconds).sum();
    match system.filter(|_| !report.runs.is_empty()) {
        Some(system) => {
            format!("; {:.2} of {cpu:.2} s were in user code, the kernel is in no share", cpu - system)
        }
        None => String::new(),
    }
}

/// Functions by weight.
pub fn functions(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    if report.functions.is_empty() {
        return Ok(());
    }
    heading(out, style, "functions", &format!("share of {}{}", report.share_of, kernel(report)))?;
    let (shown, left_out) = some(&report.functions, style);
    for row in shown {
        let bar = plus_minus(row.plus_minus);
        let source = row.source.as_deref().map_or(row.module.clone(), |source| short(source).to_owned());
        let source = fit(&source, style.width / 3);
        let room = style.width.saturating_sub(11 + bar.chars().count() + source.chars().count()).max(20);
        let name = fit_code(&row.name, room);
        let inlined = row.inlined.as_deref().map_or_else(String::new, |inlined| {
            inlined_in(inlined, room.saturating_sub(name.chars().count() + 9))
        });
        writeln!(out, "  {}{bar}  {name}  {source}{inlined}", percent(row.share))?;
    }
    and_more(out, left_out)?;
    for what in shown.iter().filter_map(interprets) {
        for line in wrap(&what, style.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Functions in which interpreters run programs, and the language.
const INTERPRETERS: [(&str, &str); 5] = [
    ("_PyEval_EvalFrameDefault", "Python"),
    ("Perl_runops_standard", "Perl"),
    ("vm_exec_core", "Ruby"),
    ("luaV_execute", "Lua"),
    ("execute_ex", "PHP"),
];

/// Says of an interpreter that it is one: whoever wrote a script looks for functions of that.
fn interprets(row: &FunctionView) -> Option<String> {
    let is = |(function, _): &&(&str, &str)| row.name == *function;
    let (function, language) = INTERPRETERS.iter().find(is).filter(|_| row.share >= 0.1)?;
    Some(format!(
        "{function} runs {language} code: what is shown is the interpreter's, as a machine sees it; which functions and \
         lines of the script take the time is not known"
    ))
}

/// What most of a function is, if there is room to say it.
fn inlined_in(inlined: &str, room: usize) -> String {
    let (name, at) = inlined.rsplit_once(" at ").unwrap_or((inlined, ""));
    let at = short(at);
    match room.checked_sub(at.chars().count() + 4).filter(|room| *room >= 16) {
        Some(room) => format!(", mostly {} at {at}", sonde_symbol::shorten(name, room)),
        None => String::new(),
    }
}

/// A share, or what it is at least and at most.
fn between(least: f64, most: f64) -> String {
    let (least, most) = (percent(least), percent(most));
    if least == most { least.trim().into() } else { format!("{} to {}", least.trim(), most.trim()) }
}

/// The cache model.
pub fn cache(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(cache) = &report.cache else { return Ok(()) };
    heading(out, style, "cache model", &cache.levels.join("; "))?;
    let first = between(cache.first_level_misses, cache.first_level_misses_at_most);
    let second = between(cache.second_level_misses, cache.second_level_misses_at_most);
    let is_open = cache.first_level_misses < cache.first_level_misses_at_most
        || cache.second_level_misses < cache.second_level_misses_at_most;
    let why = if is_open { "; a burst does not tell what the caches hold when it begins" } else { "" };
    writeln!(
        out,
        "  {} loads: {first} miss the first level, {second} the second; {} references to lines never seen before{why}",
        grouped(cache.loads),
        grouped(cache.first_touches)
    )
}

/// What was not seen.
pub fn missing(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    if report.missing.is_empty() {
        return Ok(());
    }
    heading(out, style, "not seen", "")?;
    for missed in &report.missing {
        let lines = wrap(&missed.what, style.width.saturating_sub(15).max(40));
        for (i, line) in lines.iter().enumerate() {
            let number = if i == 0 { grouped(missed.count) } else { String::new() };
            writeln!(out, "  {number:>12} {line}")?;
        }
    }
    Ok(())
}
