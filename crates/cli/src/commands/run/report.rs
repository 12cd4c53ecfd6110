//! The report of a run, for people.

use std::io::{self, Write};

use sonde_launch::Totals;
use sonde_report::Style;
use sonde_summary::Unit;

use super::drops;
use super::facts::{Checks, Facts, HowEnded};
use crate::quantity::{grouped, percent, size};

/// Writes the report.
pub fn write(out: &mut impl Write, facts: &Facts, totals: &Totals, style: Style) -> io::Result<()> {
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
    write_hot(out, facts, style, ("hot code", of_code, 0, facts.instructions))?;
    write_hot(out, facts, style, ("hot data", of_data, 1, facts.loads + facts.stores))
}

/// Hot ranges as `sonde report` shows them: title, what shares are of, which ones, and how many events there were.
fn write_hot(
    out: &mut impl Write,
    facts: &Facts,
    style: Style,
    (title, of, which, events): (&str, &str, usize, u64),
) -> io::Result<()> {
    if events == 0 {
        return Ok(());
    }
    let sampled = if facts.unit == Unit::Picoseconds.word() { "; ± is sampling, 95 %" } else { "" };
    let note = format!("{} or more of the {of}{sampled}", percent(facts.hot_threshold));
    sonde_report::write_hot(out, title, &note, &facts.hot[which], facts.hot_threshold, style)
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
