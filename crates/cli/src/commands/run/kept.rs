//! What goes into the profile file (`-o`) besides the findings: the time line, and how the run was taken.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use sonde_analysis::Findings;
use sonde_launch::{Counter, Exit, Options, Policy, Program, Served, Session, Setup};
use sonde_profile::{Ending, MergeOptions, Named, Profile, Run, Timeline};

use super::args::Recording;
use super::drops;
use super::facts::trigger_name;
use super::seen::Found;
use crate::counters;
use crate::recorder::machine;

/// Writes the profile of a run.
pub fn write(path: &Path, taken: &Taken<'_>, served: &Served, line: Line, found: Found) -> Result<()> {
    let Some(findings) = found.findings else { return Ok(()) };
    let mut run = describe(taken, served, line);
    add_losses(&mut run.losses, &found.losses);
    Ok(profile(run, findings).write_to(path)?)
}

/// Adds counts to counts of the same name.
pub fn add_losses(sum: &mut Named, more: &Named) {
    for (name, count) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*count);
    }
}

fn profile(mut run: Run, findings: Findings) -> Profile {
    let starts = keep(findings.starts, |starts| starts.check(), &mut run);
    let calls = keep(findings.calls, |calls| calls.check(), &mut run);
    let loops = keep(findings.loops, |loops| loops.check(), &mut run);
    let values = keep(findings.values, |values| values.check(), &mut run);
    let streams = keep(findings.streams, |streams| streams.check(), &mut run);
    let mut profile = Profile::of_run(run, findings.summary);
    profile.starts = starts;
    (profile.calls, profile.loops, profile.values, profile.streams) = (calls, loops, values, streams);
    profile
}

/// What two processes of a run came to, as profiles are merged, and what that lost; the first only if that cannot be.
pub fn together(ours: Findings, theirs: Findings) -> (Findings, Option<Named>) {
    let mut sum = profile(Run::default(), ours);
    let added = sum.merge(&profile(Run::default(), theirs), &MergeOptions::default()).is_ok();
    let Profile { summary, starts, calls, loops, values, streams, totals, .. } = sum;
    (Findings { summary, starts, calls, loops, values, streams }, added.then_some(totals.losses))
}

/// An analysis whose numbers do not fit together is left out, and counted: the others are worth having without it.
fn keep<T>(found: Option<T>, check: impl Fn(&T) -> Result<(), String>, run: &mut Run) -> Option<T> {
    let found = found?;
    match check(&found) {
        Ok(()) => Some(found),
        Err(_) => {
            *run.losses.entry("inconsistent_analyses".into()).or_default() += 1;
            None
        }
    }
}

/// How a run was taken.
pub struct Taken<'a> {
    pub recording: &'a Recording,
    pub options: &'a Options,
    pub program: &'a Program,
    pub setup: &'a Setup,
    pub started: SystemTime,
}

/// The policy of runs whose checks were counted in the program's own code, as profiles name it.
pub const COUNTER_IN_PLACE: &str = "counter in place";

fn describe(taken: &Taken<'_>, served: &Served, mut line: Line) -> Run {
    let (options, totals) = (taken.options, &served.totals);
    let (period, burst_checks, gap_checks) = match options.policy {
        Policy::Bursts { period, checks } => (period, checks, 0),
        Policy::Always => (Duration::ZERO, 0, 0),
        Policy::Counter { gap, checks } => (Duration::ZERO, checks, gap),
    };
    let bursts = totals.counter(Counter::Bursts);
    let governed = served.governed;
    line.note(nanoseconds(totals.wall), totals.cpu, bursts);
    let mut run = Run {
        recorder: env!("CARGO_PKG_VERSION").into(),
        path: taken.program.path.display().to_string(),
        policy: if options.in_place { COUNTER_IN_PLACE.to_owned() } else { taken.recording.policy_name() },
        record: taken.recording.record_name(),
        trigger: taken.setup.trigger.map(|kind| trigger_name(kind).to_owned()),
        trigger_note: taken.setup.trigger_note.clone(),
        loader: taken.setup.loader.into(),
        period_ns: nanoseconds(period),
        burst_checks,
        gap_checks,
        rate: taken.recording.rate,
        max_overhead: governed.map(|governed| governed.limit),
        mean_period_ns: governed.map(|governed| nanoseconds(governed.period)),
        bursts_left_out: governed.map_or(0, |governed| governed.left_out),
        random_gap: taken.recording.random_gap,
        seed: taken.recording.seed,
        started_ms: taken.started.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64),
        machine: machine(),
        cpu_ns: nanoseconds(totals.cpu),
        system_ns: Some(nanoseconds(totals.system)),
        sonde_ns: Some(nanoseconds(sonde_launch::own_cpu_time())),
        wall_ns: nanoseconds(totals.wall),
        ending: match served.exit {
            Exit::Status(status) => Ending::Status(status),
            Exit::Signal(signal) => Ending::Signal(signal),
        },
        bursts,
        burst_ns: totals.counter(Counter::BurstCpuNs),
        became: totals.became.as_ref().map(|path| path.display().to_string()),
        error: totals.error.as_ref().map(ToString::to_string),
        counters: counters::by_name(totals),
        burst_ends: drops::ends(totals),
        losses: drops::drops(totals),
        timeline: line.timeline,
        ..Run::default()
    };
    run.set_command(taken.program.args.iter().map(|word| word.to_string_lossy()));
    run
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time line while it grows: totals are looked at now and then, and what was added since goes onto the line.
pub struct Line {
    timeline: Timeline,
    begun: Instant,
    cpu_ns: u64,
    bursts: u64,
}

impl Line {
    /// Begins now.
    pub fn new() -> Line {
        Line { timeline: Timeline::default(), begun: Instant::now(), cpu_ns: 0, bursts: 0 }
    }

    /// Looks at a session.
    pub fn look(&mut self, session: &Session) {
        let at = nanoseconds(self.begun.elapsed());
        self.note(at, session.cpu_time(), session.counter(Counter::Bursts));
    }

    fn note(&mut self, at_ns: u64, cpu: Duration, bursts: u64) {
        let cpu = nanoseconds(cpu);
        let more = (cpu.saturating_sub(self.cpu_ns), bursts.saturating_sub(self.bursts));
        (self.cpu_ns, self.bursts) = (self.cpu_ns.max(cpu), self.bursts.max(bursts));
        self.timeline.add(at_ns, more.0, more.1);
    }
}
