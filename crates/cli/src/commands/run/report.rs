//! The report of a run, for people.

use std::io::{self, Write};

use sonde_launch::Totals;
use sonde_summary::Unit;

use super::drops;
use super::facts::{Checks, Facts, HowEnded};
use super::hot::{Hot, SEVERAL};
use crate::quantity::{grouped, percent, size};

/// Characters of a full bar.
const BAR: f64 = 20.0;
/// Most ranges shown of a kind; the JSON has all.
const MOST: usize = 12;
/// Most characters of a function's name.
const LONGEST_NAME: usize = 60;

/// Writes the report.
pub fn write(out: &mut impl Write, facts: &Facts, totals: &Totals) -> io::Result<()> {
    writeln!(out, "sonde: {} {}", facts.program.join(" "), ending(facts.exit))?;
    writeln!(out, "  trigger   {}", trigger(facts))?;
    let better =
        facts.loader_note.as_ref().map_or(String::new(), |note| format!(" (nothing better: {note})"));
    writeln!(out, "  probe     {}{better}", facts.loader)?;
    writeln!(out, "  recorded  {}", recorded(facts))?;
    if let Some(checks) = facts.checks.as_ref().filter(|checks| checks.scheme != "orig") {
        write_checks(out, checks)?;
    }
    writeln!(out, "  overhead  {}", overhead(facts))?;
    writeln!(out, "  events    {}", events(facts))?;
    for (count, words) in drops::ends_in_words(totals) {
        writeln!(out, "  bursts    {} {words}", grouped(count))?;
    }
    for (count, words) in drops::in_words(totals) {
        writeln!(out, "  dropped   {} {words}", grouped(count))?;
    }
    for (count, words) in &facts.missing_in_words {
        writeln!(out, "  missing   {} {words}", grouped(*count))?;
    }
    if let Some(other) = &facts.became {
        writeln!(
            out,
            "  exec      it became {other}, which was not recorded: run that, or use --trigger stops"
        )?;
    }
    if let Some(followed) = &facts.followed {
        writeln!(out, "  children  {}", followed.in_words())?;
    }
    if facts.children > 0 {
        writeln!(out, "  children  {}", children(facts))?;
    }
    if let Some(error) = &facts.error {
        writeln!(out, "  error     in the log: {error}")?;
    }
    if let Some(output) = &facts.output {
        writeln!(out, "  profile   {output}")?;
    }
    let timed = facts.unit == Unit::Picoseconds.word();
    let of_code = if timed { "CPU time in user code" } else { "instructions recorded" };
    let of_data = if timed { "loads and stores, by time" } else { "loads and stores recorded" };
    write_hot(out, "code", of_code, facts.hot_threshold, &facts.hot_code, facts.instructions)?;
    write_hot(out, "data", of_data, facts.hot_threshold, &facts.hot_data, facts.loads + facts.stores)
}

fn ending(exit: HowEnded) -> String {
    match exit {
        HowEnded::Status(0) => "ended".into(),
        HowEnded::Status(status) => format!("ended with status {status}"),
        HowEnded::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

fn trigger(facts: &Facts) -> String {
    let name = match facts.trigger {
        Some("stops") => "threads stopped for a moment (ptrace); the program sees no signal",
        Some("perf") => "perf events on the CPU clock",
        Some(_) => "timers on each thread's CPU time",
        None => "none needed",
    };
    match &facts.trigger_note {
        Some(note) => format!("{name} (nothing better: {note})"),
        None => name.into(),
    }
}

fn recorded(facts: &Facts) -> String {
    if facts.policy == "always" {
        let (cpu, instructions) = (facts.cpu_seconds, grouped(facts.instructions));
        return format!("everything: {instructions} instructions in {cpu:.2} s of CPU time");
    }
    format!(
        "{} bursts in {:.2} s of CPU time; {} of it in bursts; {} instructions",
        grouped(facts.bursts),
        facts.cpu_seconds,
        rounded(facts.share_cpu),
        grouped(facts.instructions)
    )
}

fn write_checks(out: &mut impl Write, checks: &Checks) -> io::Result<()> {
    writeln!(
        out,
        "  checks    {}: {} of {} function entries and {} of {} loops of {} files keep theirs; {} left out of copies",
        checks.scheme,
        grouped(checks.checked_functions as u64),
        grouped(checks.functions as u64),
        grouped(checks.checked_loops as u64),
        grouped(checks.loops as u64),
        checks.modules,
        grouped(checks.left_out)
    )?;
    for file in &checks.not_analysed {
        writeln!(out, "  checks    all kept in {file}")?;
    }
    match checks.superblocks_not_analysed {
        0 => Ok(()),
        count => writeln!(
            out,
            "  checks    all kept in {} superblocks of code that was not analysed (plugins, vdso)",
            grouped(count)
        ),
    }
}

fn overhead(facts: &Facts) -> String {
    let Some(at_most) = facts.overhead_at_most else {
        return format!(
            "not known without a native run; {:.1} ms for translating {} superblocks",
            facts.translation.seconds * 1e3,
            grouped(facts.translation.superblocks)
        );
    };
    format!(
        "at most {} of the CPU time: {:.1} ms in bursts, {:.1} ms of that translating {} superblocks; {} triggers",
        rounded(at_most),
        facts.burst_seconds * 1e3,
        facts.translation.seconds * 1e3,
        grouped(facts.translation.superblocks),
        grouped(facts.triggers)
    )
}

fn events(facts: &Facts) -> String {
    format!(
        "{}: {} blocks, {} loads, {} stores; {} of log",
        grouped(facts.events),
        grouped(facts.blocks),
        grouped(facts.loads),
        grouped(facts.stores),
        size(facts.log_bytes)
    )
}

fn children(facts: &Facts) -> String {
    let at_least = if facts.children_at_least { "at least " } else { "" };
    let (processes, were) = if facts.children == 1 { ("process", "was") } else { ("processes", "were") };
    let cpu = match facts.children_cpu_seconds {
        0.0 => String::new(),
        cpu => format!(" ({cpu:.2} s of CPU time)"),
    };
    let advice = if facts.followed.is_none() { ": use --follow" } else { "" };
    format!("{at_least}{} child {processes}{cpu} {were} not recorded{advice}", grouped(facts.children))
}

/// A share with no more digits than it deserves.
fn rounded(share: f64) -> String {
    percent((share * 10_000.0).round() / 10_000.0)
}

fn span(hot: &Hot) -> String {
    if hot.region == SEVERAL {
        return SEVERAL.into();
    }
    let end = if hot.lo == hot.hi { String::new() } else { format!("-{}", hot.hi) };
    format!("{}+{}{end}", hot.region, hot.lo)
}

fn write_hot(
    out: &mut impl Write,
    what: &str,
    of: &str,
    threshold: f64,
    hot: &[Hot],
    whole: u64,
) -> io::Result<()> {
    if whole == 0 {
        return Ok(());
    }
    if hot.is_empty() {
        return writeln!(out, "\nhot {what}: no range has {} or more of the {of}", percent(threshold));
    }
    writeln!(out, "\nhot {what} ({} or more of the {of})", percent(threshold))?;
    for h in hot.iter().take(MOST) {
        let bar = "█".repeat((h.own_share * BAR).round() as usize);
        // The JSON has the whole name.
        let short =
            |name: &String| h.place.replace(name.as_str(), &sonde_symbol::shorten(name, LONGEST_NAME));
        let place = h.function.as_ref().map_or_else(|| h.place.clone(), short);
        writeln!(out, "  {:5.1} %  {bar:20}  {:32}  {place}", h.own_share * 100.0, span(h))?;
    }
    match hot.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more: --json shows all"),
    }
}
