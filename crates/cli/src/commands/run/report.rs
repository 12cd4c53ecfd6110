//! The report of a run, for people.

use std::io::{self, Write};

use sonde_launch::Totals;
use sonde_report::{Style, write_entry};
use sonde_summary::Unit;

use super::drops;
use super::facts::{Checks, Facts, HowEnded, LiveMasks, Stretch, too_few};
use super::in_place::InPlace;
use super::price;
use crate::quantity::{count, grouped, percent, size};

/// Writes the report.
pub fn write(
    out: &mut impl Write,
    facts: &Facts,
    totals: &Totals,
    advice: Option<&str>,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "sonde: {} {}", facts.program.join(" "), ending(facts.exit))?;
    let mut tell = |what: &str, text: &str| write_entry(out, what, text, style);
    tell("trigger", &trigger(facts))?;
    let better =
        facts.loader_note.as_ref().map_or(String::new(), |note| format!(" (nothing better: {note})"));
    tell("probe", &format!("{}{better}", facts.loader))?;
    tell("time", &time(facts))?;
    tell("recorded", &recorded(facts))?;
    for line in facts.checks.iter().filter(|checks| checks.scheme != "orig").flat_map(checks) {
        tell("checks", &line)?;
    }
    for line in facts.in_place.iter().flat_map(InPlace::in_words) {
        tell("in place", &line)?;
    }
    tell("overhead", &overhead(facts))?;
    if !facts.discarded {
        tell("events", &events(facts))?;
    }
    if let Some(rarer) = facts.price().and_then(|price| price.in_words()) {
        tell("bursts", &rarer)?;
    }
    if let Some(few) = facts.bursts_due.and_then(|due| too_few(facts.bursts, due, facts.trigger)) {
        tell("bursts", &few)?;
    }
    for line in facts.live_masks.iter().flat_map(live_masks) {
        tell("masks", &line)?;
    }
    for (count, words) in drops::ends_in_words(totals) {
        tell("bursts", &format!("{} {words}", grouped(count)))?;
    }
    for (count, words) in drops::in_words(totals) {
        tell("dropped", &format!("{} {words}", grouped(count)))?;
    }
    for (count, words) in &facts.missing_in_words {
        tell("missing", &format!("{} {words}", grouped(*count)))?;
    }
    if let Some(other) = &facts.became {
        tell(
            "exec",
            &format!("it became {other}, which was not recorded: run that, or use --trigger stops"),
        )?;
    }
    if let Some(followed) = &facts.followed {
        tell("children", &followed.in_words())?;
    }
    if facts.children > 0 {
        tell("children", &children(facts))?;
    }
    if let Some(error) = &facts.error {
        tell("error", &format!("in the log: {error}"))?;
    }
    if let Some(output) = &facts.output {
        tell("profile", output)?;
    }
    if let Some(advice) = advice {
        tell("advice", advice)?;
    }
    if facts.discarded {
        return writeln!(out, "\nnothing was looked at (--discard)");
    }
    if !facts.has_ranges {
        return writeln!(out, "\nhot code and data were not looked for (--no-ranges)");
    }
    let timed = facts.unit == Unit::Picoseconds.word();
    let of_code = if timed { "CPU time in user code" } else { "instructions recorded" };
    let of_data = if timed { "loads and stores, by time" } else { "loads and stores recorded" };
    write_hot(out, facts, style, ("hot code", of_code, 0, facts.instructions))?;
    if !facts.has_data {
        return Ok(());
    }
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
        None if facts.in_place.is_some() => "checks counted in the program's own code",
        None => "none needed",
    };
    match &facts.trigger_note {
        Some(note) => format!("{name} (nothing better: {note})"),
        None => name.into(),
    }
}

/// What the kernel did is recorded nowhere, so that it is in no share.
fn time(facts: &Facts) -> String {
    format!(
        "{:.2} s of CPU time: {:.2} s in user code, which shares are of, and {:.2} s in the kernel, which is in none",
        facts.cpu_seconds, facts.user_seconds, facts.system_seconds
    )
}

fn recorded(facts: &Facts) -> String {
    let events = match facts.discarded {
        true => format!("{} of log, thrown away", size(facts.log_bytes)),
        false => count(facts.instructions, "instruction", "instructions"),
    };
    if facts.policy == "always" {
        return format!("everything: {events}");
    }
    let bursts = count(facts.bursts, "burst", "bursts");
    format!("{bursts}; {} of the CPU time in bursts; {events}", rounded(facts.share_cpu))
}

/// Which checks were kept, a sentence each.
fn checks(checks: &Checks) -> Vec<String> {
    let mut lines = vec![format!(
        "{}: {} of {} function entries and {} of {} loops of {} files keep theirs; {} left out of copies",
        checks.scheme,
        grouped(checks.checked_functions as u64),
        grouped(checks.functions as u64),
        grouped(checks.checked_loops as u64),
        grouped(checks.loops as u64),
        checks.modules,
        grouped(checks.left_out)
    )];
    lines.extend(checks.not_analysed.iter().map(|file| format!("all kept in {file}")));
    if checks.superblocks_not_analysed > 0 {
        lines.push(format!(
            "all kept in {} superblocks of code that was not analysed (plugins, vdso)",
            grouped(checks.superblocks_not_analysed)
        ));
    }
    lines
}

fn live_masks(masks: &LiveMasks) -> Vec<String> {
    let share = |part: u64, whole: u64| rounded(part as f64 / whole.max(1) as f64);
    let all = format!(
        "{} of {} loads recorded ({}), {} looked at; {} changes, {} superblocks translated again",
        grouped(masks.recorded),
        grouped(masks.executed),
        share(masks.recorded, masks.executed),
        grouped(masks.looked_at),
        grouped(masks.changes),
        grouped(masks.superblocks_given_up)
    );
    // Eighths of the time line say how it went; the JSON has all of it.
    let eighth = masks.timeline.len().div_ceil(8).max(1);
    let sum = |part: &[Stretch], of: fn(&Stretch) -> u64| part.iter().map(of).sum::<u64>();
    let parts = masks.timeline.chunks(eighth);
    let shares: Vec<String> = parts.map(|p| share(sum(p, |s| s.recorded), sum(p, |s| s.executed))).collect();
    let over_time = (!shares.is_empty()).then(|| format!("recorded over time: {}", shares.join(", ")));
    std::iter::once(all).chain(over_time).collect()
}

fn overhead(facts: &Facts) -> String {
    // Wall time, unlike that in bursts: the processor's own clock costs nothing to read.
    let translating = format!(
        "translating {} took {:.1} ms of wall time",
        count(facts.translation.superblocks, "superblock", "superblocks"),
        facts.translation.seconds * 1e3
    );
    let own = format!("Sonde itself used {:.2} s of CPU time", facts.sonde_cpu_seconds);
    let Some(at_most) = facts.overhead_at_most else {
        return format!("not known without a native run; {translating}; {own}");
    };
    let in_all = facts.total_overhead.map_or_else(String::new, |share| format!("; {}", price::in_all(share)));
    format!(
        "at most {} of the CPU time: {:.1} ms in bursts, {}; {translating}; {own}{in_all}",
        rounded(at_most),
        facts.burst_seconds * 1e3,
        count(facts.triggers, "trigger", "triggers"),
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
