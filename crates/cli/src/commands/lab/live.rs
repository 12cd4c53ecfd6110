//! What it costs a program to have its load values profiled while the profile converges and after (paper 2, section 5):
//! real CPU time over native runs, in parts of the run, with masks at the source and without.

use std::time::Duration;

use anyhow::{Result, bail};
use sonde_event::{Detail, Reader, Run};
use sonde_launch::{Counter, Exit, Options, Outlets, Policy, Program, Session};
use sonde_values::Lfsr;
use sonde_values::slots::{SlotConfig, SlotReader};

use super::source::Args;
use super::table::{Table, percent};
use crate::outcome::CannotRun;

/// Parts of a run.
const PARTS: usize = 8;

/// A way of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Loads that are not yet known.
    Masks,
    /// All loads, nothing else.
    Loads,
    /// Loads and stores with addresses and values.
    Everything,
    /// Paths only: what masks can come down to.
    Paths,
}

const MODES: [(Mode, &str); 4] = [
    (Mode::Masks, "masks"),
    (Mode::Loads, "all loads"),
    (Mode::Everything, "loads and stores"),
    (Mode::Paths, "paths only"),
];

impl Mode {
    fn options(self) -> Options {
        let detail = if self == Mode::Paths { Detail::Blocks } else { Detail::Values };
        let live_masks = matches!(self, Mode::Masks | Mode::Loads);
        Options { policy: Policy::Always, detail, live_masks, ..Options::default() }
    }
}

/// How far the run had come after so many words of log.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    words: u64,
    loads: u64,
    instructions: u64,
}

/// Marks kept; when there are more, every other one goes.
const MARKS: usize = 1 << 14;
/// Words between two marks, at first.
const STEP: u64 = 1 << 12;

/// Feeds the slots and notes how far the run has come.
struct Meter {
    slots: SlotReader,
    /// Whether a source that asks is told what need not be recorded.
    masks: bool,
    now: Mark,
    marks: Vec<Mark>,
    step: u64,
}

impl Meter {
    fn new(mode: Mode) -> Result<Meter> {
        let config = SlotConfig { ever_later: true, ..SlotConfig::default() };
        let slots = SlotReader::new(config, Lfsr::new(1))?;
        let marks = vec![Mark::default()];
        Ok(Meter { slots, masks: mode == Mode::Masks, now: Mark::default(), marks, step: STEP })
    }

    #[cold]
    fn mark(&mut self) {
        self.marks.push(self.now);
        if self.marks.len() >= MARKS {
            let mut number = 0;
            self.marks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step *= 2;
        }
    }
}

impl Reader for Meter {
    fn run(&mut self, run: &Run<'_>) {
        self.slots.run(run);
        self.now.words += run.words.len() as u64;
        self.now.loads += u64::from(run.path.loads);
        self.now.instructions += run.instructions();
        if self.now.words >= self.marks.last().map_or(0, |m| m.words) + self.step {
            self.mark();
        }
    }

    fn unwatched(&mut self) -> Option<sonde_event::Unwatched<'_>> {
        if self.masks { self.slots.unwatched() } else { None }
    }
}

/// One run.
struct Taken {
    /// Seconds of CPU time of each part, by equal numbers of instructions.
    parts: Vec<f64>,
    /// Share of loads recorded in each part, by equal numbers of loads.
    recorded: Vec<f64>,
    instructions: u64,
    loads: u64,
    looked_at: u64,
    changes: u64,
}

impl Taken {
    fn total(&self) -> f64 {
        self.parts.iter().sum()
    }
}

fn take(program: &Program, mode: Mode) -> Result<Taken> {
    let mut meter = Meter::new(mode)?;
    let session = Session::start(program, &mode.options()).map_err(CannotRun)?;
    // Words of log handed over, and CPU time by then: what the program has done, not what was read of it.
    let mut clock = vec![(0.0, 0.0)];
    let mut tick = |session: &mut Session| {
        clock.push((session.counter(Counter::LogBytes) as f64 / 8.0, session.cpu_time().as_secs_f64()));
    };
    let served = session.serve(Outlets { reader: Some(&mut meter), ..Outlets::default() }, &mut tick);
    if let Exit::Signal(signal) = served.exit {
        bail!("the program was ended by signal {signal}");
    }
    if let Some(error) = served.totals.error {
        bail!("the stream could not be read to its end: {error}");
    }
    let end = meter.now;
    clock.retain(|(words, _)| *words < end.words as f64);
    clock.push((end.words as f64, served.totals.cpu.as_secs_f64()));
    meter.marks.push(end);
    let words_at: Vec<(f64, f64)> =
        meter.marks.iter().map(|m| (m.instructions as f64, m.words as f64)).collect();
    let time_at = |part: usize| {
        let instructions = end.instructions as f64 * part as f64 / PARTS as f64;
        between(&clock, between(&words_at, instructions))
    };
    let points = meter.slots.recorded().points();
    let mut before = 0.0;
    let logged_at: Vec<(f64, f64)> = std::iter::once((0.0, 0.0))
        .chain(points.iter().map(|p| {
            before += p.logged as f64;
            (p.loads as f64, before)
        }))
        .collect();
    let loads = points.last().map_or(0, |p| p.loads);
    let edge = |part: usize| between(&logged_at, loads as f64 * part as f64 / PARTS as f64);
    Ok(Taken {
        parts: (0..PARTS).map(|i| time_at(i + 1) - time_at(i)).collect(),
        recorded: (0..PARTS).map(|i| (edge(i + 1) - edge(i)) * PARTS as f64 / loads.max(1) as f64).collect(),
        instructions: end.instructions,
        loads,
        looked_at: meter.slots.profiler().stats().samples,
        changes: served.totals.counter(Counter::Watched),
    })
}

/// The value at `x` of the line through these points, which ascend.
fn between(points: &[(f64, f64)], x: f64) -> f64 {
    let next = points.partition_point(|(at, _)| *at < x);
    match (next.checked_sub(1).and_then(|i| points.get(i)), points.get(next)) {
        (Some((x0, y0)), Some((x1, y1))) if x1 > x0 => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        (Some((_, y)), _) | (None, Some((_, y))) => *y,
        (None, None) => 0.0,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The table.
pub fn table(args: &Args, rounds: usize) -> Result<Table> {
    if !args.is_program() {
        bail!("--live runs a program several times; a trace holds one run only");
    }
    if rounds == 0 {
        bail!("--rounds must be at least 1");
    }
    let program = args.program()?;
    let mut native = Vec::new();
    let mut runs: [Vec<Taken>; MODES.len()] = Default::default();
    for _ in 0..rounds {
        native.push(program.run_natively().map_err(CannotRun)?);
        for (of, (mode, _)) in runs.iter_mut().zip(MODES) {
            of.push(take(&program, mode)?);
        }
    }
    let native = median(native.iter().map(Duration::as_secs_f64).collect());
    let [masks, ..] = &runs;
    let part = |i: usize| {
        let slowdown = |of: &Vec<Taken>| {
            median(of.iter().map(|t| t.parts[i]).collect()) / (native / PARTS as f64).max(1e-9)
        };
        let recorded = median(masks.iter().map(|t| t.recorded[i]).collect());
        let name = format!("part {} of {PARTS}", i + 1);
        [name, percent(recorded)].into_iter().chain(runs.iter().map(slowdown).map(times)).collect()
    };
    let whole = |of: &Vec<Taken>| times(median(of.iter().map(Taken::total).collect()) / native.max(1e-9));
    let recorded = median(masks.iter().map(|t| t.recorded.iter().sum::<f64>() / PARTS as f64).collect());
    let last = ["whole run".to_owned(), percent(recorded)].into_iter().chain(runs.iter().map(whole));
    let first = &masks[0];
    Ok(Table {
        title: format!(
            "slow-down while load values are profiled: {} loads, {} instructions, {native:.2} s natively: {}",
            first.loads,
            first.instructions,
            program.args[0].to_string_lossy()
        ),
        paper: vec!["all overheads below 2 % with a co-processor that the slots run in".into()],
        columns: ["part", "recorded %"].into_iter().chain(MODES.map(|(_, name)| name)).collect(),
        rows: (0..PARTS).map(part).chain([last.collect()]).collect(),
        layout: None,
        notes: vec![
            format!(
                "CPU time of the program over that of native runs, {rounds} interleaved rounds, medians; \
                 parts have equal numbers of instructions, and natively are taken to last equally long"
            ),
            format!(
                "masks: {} loads looked at, what is recorded changed {} times; \
                 the time that Sonde itself takes beside the program is not in this",
                first.looked_at, first.changes
            ),
        ],
    })
}

fn times(slowdown: f64) -> String {
    format!("{slowdown:.2}")
}

#[cfg(test)]
mod tests {
    use super::between;

    #[test]
    fn lines_go_through_their_points_and_stay_at_their_ends() {
        let points = [(0.0, 0.0), (10.0, 100.0), (10.0, 120.0), (20.0, 200.0)];
        assert_eq!(
            [0.0, 5.0, 15.0, 20.0, 30.0].map(|x| between(&points, x)),
            [0.0, 50.0, 160.0, 200.0, 200.0]
        );
        assert_eq!(between(&[], 1.0), 0.0);
    }
}
