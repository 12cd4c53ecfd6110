//! `sonde report`: shows a profile.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use sonde_profile::{Ending, Profile, Run};
use sonde_report::{About, Options, Section, Style, Subject};
use sonde_symbol::Symbols;

use crate::commands::run::kept::COUNTER_IN_PLACE;
use crate::commands::run::price::{self, Price};
use crate::commands::run::{advice, due, loss_in_words, too_few};
use crate::mistaken;
use crate::outcome::CannotWrite;
use crate::quantity::{grouped, parse_share};

/// Shows what a profile says: functions, hot ranges of code, data and values, calls.
///
/// A profile is what `sonde run -o FILE` and `sonde merge` write. Names are looked up in the program's own files and in
/// installed debug files; where there are none, module and offset are shown.
#[derive(Parser)]
#[command(
    override_usage = "sonde report [OPTIONS] <FILE>\n       sonde report --section list",
    after_help = "Example:\n  sonde run -o gzip.sonde -- gzip -9 -c file > /dev/null\n  sonde report gzip.sonde --section functions,code"
)]
pub struct Args {
    /// The profile.
    // Of `--section list` alone there is none.
    #[arg(required_unless_present = "section", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Sections to show, with commas between; `all` for all, `list` to see their names.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    section: Vec<String>,
    /// Most rows of each list; 0 for all.
    #[arg(long, default_value_t = 12, value_name = "N")]
    top: usize,
    /// A range is hot from this share on.
    #[arg(long, default_value = "2%", value_name = "SHARE", value_parser = parse_share)]
    hot: f64,
    /// Write JSON to standard output (docs/report.schema.json).
    #[arg(long)]
    json: bool,
    /// Also look below this folder for debug files, and for copies of programs that were changed or deleted since, by
    /// build-id (may be given several times).
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,
}

/// What is shown unless something else is asked for.
const USUAL: [&str; 15] = [
    "runs",
    "functions",
    "code",
    "data",
    "loads",
    "stores",
    "load-values",
    "zero-loads",
    "loops",
    "values",
    "streams",
    "calls",
    "contexts",
    "cache",
    "missing",
];

/// Shows the profile.
pub fn run(args: &Args) -> Result<()> {
    if args.section.iter().any(|name| name == "list") {
        let names: Vec<&str> = Section::all().into_iter().map(Section::name).collect();
        return writeln!(io::stdout(), "{}", names.join("\n")).map_err(|e| CannotWrite(e).into());
    }
    let sections = sections(&args.section)?;
    let file = args.file.as_deref().context("no profile given: sonde report FILE --section ...")?;
    let profile = mistaken::profile(file)?;
    let mut symbols = symbols(&args.debug_dir);
    let options =
        Options { hot: args.hot, top: if args.top == 0 || args.json { usize::MAX } else { args.top } };
    let report = of(&profile, &mut symbols, &options);
    tell_of_skipped(&symbols);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if args.json {
        serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else {
        show(&mut out, args, &report, &sections)
    };
    written.and_then(|()| out.flush()).map_err(|e| CannotWrite(e).into())
}

/// Writes the sections; one that was asked for by name and has nothing says so.
fn show(
    out: &mut impl Write,
    args: &Args,
    report: &sonde_report::Report,
    sections: &[Section],
) -> io::Result<()> {
    let style = style(args.top, io::stdout().is_terminal());
    for section in sections {
        let mut text = Vec::new();
        sonde_report::write(&mut text, report, &[*section], style)?;
        out.write_all(&text)?;
        if text.is_empty() && args.section.iter().any(|name| name == section.name()) {
            let why = match section.name() {
                "missing" => "nothing that is known of",
                _ => "the profile has nothing of it; `sonde run --what` chooses what is kept",
            };
            writeln!(out, "\n{}: {why}", section.name())?;
        }
    }
    Ok(())
}

/// A report of a profile.
pub fn of(profile: &Profile, symbols: &mut Symbols, options: &Options) -> sonde_report::Report {
    let runs: Vec<About> = profile.runs.iter().map(about).collect();
    let subject = Subject {
        starts: profile.starts.as_ref(),
        streams: profile.streams.as_ref(),
        loops: profile.loops.as_ref(),
        values: profile.values.as_ref(),
        ..Subject::of(&profile.summary, &runs, profile.calls.as_ref())
    };
    sonde_report::report(&subject, symbols, options)
}

/// Names from the usual places and these.
pub fn symbols(more: &[PathBuf]) -> Symbols {
    let mut roots = more.to_vec();
    roots.push(Path::new("/usr/lib/debug").to_owned());
    Symbols::with_debug_roots(roots).with_copies(more.to_vec())
}

/// A copy that is not found may lie where nobody looked.
pub fn tell_of_skipped(symbols: &Symbols) {
    let skipped = symbols.skipped_copies();
    if skipped > 0 {
        eprintln!(
            "sonde: note: {skipped} files and folders below --debug-dir were not looked into for copies of programs, because \
             there are too many or they lie too deep; name the folder of the copy itself"
        );
    }
}

/// As wide as the terminal; elsewhere as wide as people read.
pub fn style(top: usize, terminal: bool) -> Style {
    let width = terminal_size::terminal_size().filter(|_| terminal).map_or(100, |(w, _)| usize::from(w.0));
    let colour = terminal && std::env::var_os("NO_COLOR").is_none();
    Style { width: width.max(60), colour, top }
}

fn sections(names: &[String]) -> Result<Vec<Section>> {
    if names.iter().any(|name| name == "all") {
        return Ok(Section::all());
    }
    if names.is_empty() {
        return Ok(USUAL.into_iter().filter_map(Section::named).collect());
    }
    let mut found = Vec::new();
    for name in names {
        match Section::named(name) {
            Some(section) => found.push(section),
            None => bail!("there is no section {name:?}: `--section list` shows their names"),
        }
    }
    Ok(found)
}

/// How a run was taken, in words.
fn about(run: &Run) -> About {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut facts = vec![("ended".to_owned(), ending(run.ending))];
    let policy = match (run.policy.as_str(), run.rate) {
        ("always", _) => "everything was recorded".to_owned(),
        ("counter", _) => format!("bursts of {} checks every {} checks", run.burst_checks, run.gap_checks),
        (COUNTER_IN_PLACE, _) => format!(
            "bursts of {} checks every {} checks, counted in the program's own code",
            run.burst_checks, run.gap_checks
        ),
        (_, Some(rate)) => {
            format!("bursts for {} % of the CPU time, by adapting how often and how long", rate * 100.0)
        }
        _ => format!(
            "bursts of {} checks about every {:.1} ms of CPU time",
            grouped(run.burst_checks),
            run.period_ns as f64 / 1e6
        ),
    };
    facts.push(("policy".into(), format!("{policy}; {}", run.record)));
    if let Some(trigger) = &run.trigger {
        let note = run.trigger_note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        facts.push(("trigger".into(), format!("{trigger}{note}")));
    }
    facts.push(("loader".into(), run.loader.clone()));
    let cpu = seconds(run.cpu_ns);
    let system = run.system_ns.map(|ns| seconds(ns.min(run.cpu_ns)));
    let split = system.map_or_else(String::new, |system| {
        format!(
            ": {:.2} s in user code, which shares are of, and {system:.2} s in the kernel, which is in none",
            cpu - system
        )
    });
    facts.push(("time".into(), format!("{cpu:.2} s of CPU time in {:.2} s{split}", seconds(run.wall_ns))));
    facts.push(("overhead".into(), overhead(run)));
    let user = Duration::from_nanos(run.cpu_ns - run.system_ns.unwrap_or(0).min(run.cpu_ns));
    if run.period_ns > 0 && run.burst_checks > 0 && run.rate.is_none() {
        facts.extend(made_rarer(run).map(|rarer| ("bursts".into(), rarer)));
        let due = due(user, Duration::from_nanos(run.mean_period_ns.unwrap_or(run.period_ns)));
        facts.extend(too_few(run.bursts, due, run.trigger.as_deref()).map(|few| ("bursts".into(), few)));
    }
    let dropped = run.losses.iter().filter(|(name, _)| name.starts_with("skipped")).map(|(_, n)| *n).sum();
    facts.extend(no_burst(run, dropped).map(|advice| ("advice".into(), advice)));
    facts.push(("machine".into(), format!("{}, Linux {}", run.machine.processor, run.machine.kernel)));
    if let Some(became) = &run.became {
        facts.push(("exec".into(), format!("it became {became}, which was not recorded")));
    }
    if let Some(error) = &run.error {
        facts.push(("error".into(), format!("in the log: {error}")));
    }
    let loss = |(key, count): (&String, &u64)| (*count, loss_in_words(key).unwrap_or(key).to_owned());
    About {
        command: run.command.clone(),
        facts,
        losses: run.losses.iter().map(loss).collect(),
        cpu_seconds: cpu,
        system_seconds: system,
    }
}

/// What to do about a run without a burst.
fn no_burst(run: &Run, dropped: u64) -> Option<String> {
    if run.bursts > 0 || run.burst_checks == 0 {
        return None;
    }
    Some(match run.gap_checks {
        0 => advice::of_bursts(run.cpu_ns as f64 / 1e9, dropped, Duration::from_nanos(run.period_ns)),
        gap => advice::of_counter(gap),
    })
}

/// What was done to keep within a limit.
fn made_rarer(run: &Run) -> Option<String> {
    let price = Price {
        limit: run.max_overhead?,
        period: Duration::from_nanos(run.period_ns),
        mean: Duration::from_nanos(run.mean_period_ns?),
        left_out: run.bursts_left_out,
    };
    price.in_words()
}

/// What recording cost.
fn overhead(run: &Run) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let share = if run.cpu_ns == 0 { 0.0 } else { run.burst_ns as f64 / run.cpu_ns as f64 };
    let in_bursts = format!("{:.2} % of the CPU time in bursts", share * 100.0);
    let bursts = match run.policy.as_str() {
        "bursts" => in_bursts,
        COUNTER_IN_PLACE => format!("{in_bursts}; what checks cost is not known without a native run"),
        _ => "not known without a native run: all of it ran in copies".to_owned(),
    };
    let own = run.sonde_ns.map(|ns| format!("; Sonde itself used {:.2} s of CPU time", seconds(ns)));
    let in_all = run.sonde_ns.filter(|_| run.policy == "bursts").map(|sonde_ns| {
        let triggers = run.counters.get("triggers").copied().unwrap_or(0);
        let share =
            price::share_spent(seconds(run.cpu_ns), seconds(run.burst_ns), triggers, seconds(sonde_ns));
        format!("; {}", price::in_all(share))
    });
    bursts + &own.unwrap_or_default() + &in_all.unwrap_or_default()
}

fn ending(ending: Ending) -> String {
    match ending {
        Ending::Unknown => "not known".into(),
        Ending::Status(status) => format!("with status {status}"),
        Ending::Signal(signal) => format!("by signal {signal}"),
    }
}
