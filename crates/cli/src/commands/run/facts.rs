//! What the report and the JSON say of a run; the keys are described in docs/run-json.md.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use sonde_event::Counts;
use sonde_launch::{Counter, Exit, Governed, Policy, Program, Setup, TRIGGER_SECONDS, Totals, TriggerKind};
use sonde_report::view::HotView;
use sonde_summary::{Missing, Unit};
use sonde_values::ValueProfile;
use sonde_values::filter::Recorded;

use super::drops;
use super::hot::Hot;
use super::in_place::InPlace;
use super::price::{self, Price};
use super::processes::FollowedFacts;
use crate::quantity::grouped;

/// A finished run.
#[derive(Debug, Serialize)]
pub struct Facts {
    /// What this JSON is, and its version.
    pub format: &'static str,
    pub version: u32,
    pub program: Vec<String>,
    pub path: String,
    pub exit: HowEnded,
    pub trigger: Option<&'static str>,
    pub trigger_note: Option<String>,
    pub loader: &'static str,
    pub loader_note: Option<String>,
    pub policy: String,
    /// CPU time between bursts, as it was asked for or chosen; where it is adapted, at the start.
    pub period_seconds: Option<f64>,
    /// Length of bursts, likewise.
    pub burst_checks: Option<u64>,
    pub rate: Option<f64>,
    /// What profiling was allowed to cost, and what became of the period.
    pub max_overhead: Option<f64>,
    pub mean_period_seconds: Option<f64>,
    pub bursts_left_out: u64,
    pub checks: Option<Checks>,
    pub in_place: Option<InPlace>,
    pub record: String,
    pub wall_seconds: f64,
    pub cpu_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub sonde_cpu_seconds: f64,
    /// Of that, since the program has ended.
    pub sonde_ending_seconds: f64,
    pub triggers: u64,
    pub bursts: u64,
    pub bursts_due: Option<f64>,
    pub burst_seconds: f64,
    pub share_cpu: f64,
    pub overhead_at_most: Option<f64>,
    /// All that was spent, over what the program used by itself.
    pub total_overhead: Option<f64>,
    pub threads: u64,
    pub runs: u64,
    pub blocks: u64,
    pub instructions: u64,
    pub repetitions: u64,
    pub loads: u64,
    pub stores: u64,
    pub without_address: u64,
    pub unrecorded: u64,
    pub events: u64,
    pub log_bytes: u64,
    /// Whether that was thrown away unread, so that counts of events are not known.
    pub discarded: bool,
    pub burst_ends: BTreeMap<String, u64>,
    pub drops: BTreeMap<String, u64>,
    pub error: Option<String>,
    pub became: Option<String>,
    pub children: u64,
    pub children_at_least: bool,
    pub children_cpu_seconds: f64,
    pub followed: Option<FollowedFacts>,
    pub live_masks: Option<LiveMasks>,
    pub translation: Translation,
    pub memory: Memory,
    pub unit: &'static str,
    pub missing: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub missing_in_words: Vec<(u64, &'static str)>,
    pub hot_threshold: f64,
    pub hot_code: Vec<Hot>,
    pub hot_data: Vec<Hot>,
    /// The same for the report: code, and data.
    #[serde(skip)]
    pub hot: [Vec<HotView>; 2],
    /// Whether ranges were looked for.
    #[serde(skip)]
    pub has_ranges: bool,
    /// And ranges of data among them.
    #[serde(skip)]
    pub has_data: bool,
    pub output: Option<String>,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HowEnded {
    Status(i32),
    Signal(i32),
}

/// What the copies cost.
#[derive(Debug, Serialize)]
pub struct Translation {
    pub superblocks: u64,
    pub blocks: u64,
    pub instructions: u64,
    pub code_bytes: u64,
    pub seconds: f64,
    pub flushes: u64,
}

/// Loads that were not recorded any more once they were known.
#[derive(Debug, Serialize)]
pub struct LiveMasks {
    pub executed: u64,
    pub recorded: u64,
    pub masked: u64,
    pub looked_at: u64,
    pub changes: u64,
    pub superblocks_given_up: u64,
    pub timeline: Vec<Stretch>,
}

/// A part of the run.
#[derive(Debug, Serialize)]
pub struct Stretch {
    pub executed: u64,
    pub recorded: u64,
    pub looked_at: u64,
}

impl LiveMasks {
    fn new(values: &ValueProfile, totals: &Totals) -> LiveMasks {
        let mut before = 0;
        let stretch = |point: &Recorded| {
            let executed = point.loads - std::mem::replace(&mut before, point.loads);
            Stretch { executed, recorded: point.logged, looked_at: point.recorded }
        };
        LiveMasks {
            executed: values.totals.profiled,
            recorded: values.totals.profiled - values.totals.masked,
            masked: values.totals.masked,
            looked_at: values.totals.samples,
            changes: totals.counter(Counter::Watched),
            superblocks_given_up: totals.counter(Counter::Rewatched),
            timeline: values.timeline.iter().map(stretch).collect(),
        }
    }
}

/// Which checks counter mode kept.
#[derive(Debug, Serialize)]
pub struct Checks {
    pub scheme: &'static str,
    pub modules: usize,
    pub functions: usize,
    pub checked_functions: usize,
    pub loops: usize,
    pub checked_loops: usize,
    pub unchecked: usize,
    pub left_out: u64,
    pub superblocks_not_analysed: u64,
    pub not_analysed: Vec<String>,
}

impl Checks {
    fn new(scheme: &'static str, setup: &Setup, totals: &Totals) -> Checks {
        let found = setup.fewer_checks.clone().unwrap_or_default();
        Checks {
            scheme,
            modules: found.modules,
            functions: found.functions,
            checked_functions: found.checked_functions,
            loops: found.loops,
            checked_loops: found.checked_loops,
            unchecked: found.unchecked,
            left_out: totals.counter(Counter::ChecksLeftOut),
            superblocks_not_analysed: totals.counter(Counter::NotAnalysed),
            not_analysed: found.left,
        }
    }
}

/// Bytes used by Sonde and its probe.
#[derive(Debug, Serialize)]
pub struct Memory {
    pub probe_limit: u64,
    pub catalog: u64,
    pub ranges: u64,
}

/// What is known of a run besides its totals.
pub struct Known<'a> {
    pub program: &'a Program,
    pub setup: &'a Setup,
    pub exit: Exit,
    pub counts: Counts,
    pub followed: Option<FollowedFacts>,
    /// Values of loads of which the engine left out what was not wanted any more.
    pub live_values: Option<&'a ValueProfile>,
    pub policy: String,
    pub checks: Option<&'static str>,
    pub record: String,
    pub memory: Memory,
    pub unit: Unit,
    pub missing: Missing,
    pub hot_threshold: f64,
    pub hot: [Vec<HotView>; 2],
    pub has_ranges: bool,
    pub discarded: bool,
    pub has_data: bool,
    /// When bursts begin.
    pub when: Policy,
    pub rate: Option<f64>,
    pub governed: Option<Governed>,
    pub in_place: Option<InPlace>,
    pub sonde_cpu: Duration,
    /// The part of it up to the end of the program.
    pub sonde_cpu_before: Duration,
    pub output: Option<String>,
}

/// The name of a trigger.
pub fn trigger_name(kind: TriggerKind) -> &'static str {
    match kind {
        TriggerKind::Stops => "stops",
        TriggerKind::Perf => "perf",
        TriggerKind::Timer => "timer",
    }
}

/// Bursts that a period asks for in so much time in user code.
pub fn due(user: Duration, period: Duration) -> f64 {
    user.as_secs_f64() / period.as_secs_f64().max(1e-9)
}

/// Why far fewer bursts were recorded than were due, if so.
pub fn too_few(bursts: u64, due: f64, trigger: Option<&str>) -> Option<String> {
    // Of a handful, chance alone may leave out most.
    if due < 10.0 || bursts as f64 >= 0.7 * due {
        return None;
    }
    let why = match trigger {
        Some("timer") => {
            "the kernel looks at timers only when it ticks (some 4 ms), so that each waits for the next tick; --trigger stops does not"
        }
        _ => {
            "the others fell into system calls, into threads that live shorter than a period, or were dropped for what is told here"
        }
    };
    Some(format!(
        "{} where the period asks for about {}: {why}",
        grouped(bursts),
        grouped(due.round() as u64)
    ))
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).min(1.0) } else { 0.0 }
}

/// Nothing is recorded where the program's loader did not load the probe.
fn not_started(totals: &Totals) -> Option<String> {
    let what =
        "the probe did not start: the program's loader did not map it (LD_PRELOAD), or memory was refused";
    (!totals.started).then(|| what.into())
}

impl Facts {
    /// What was allowed, and what became of bursts because of it.
    pub fn price(&self) -> Option<Price> {
        let seconds = |time: Option<f64>| Duration::try_from_secs_f64(time?).ok();
        Some(Price {
            limit: self.max_overhead?,
            period: seconds(self.period_seconds)?,
            mean: seconds(self.mean_period_seconds)?,
            left_out: self.bursts_left_out,
        })
    }

    /// Puts together what is known.
    pub fn new(known: Known<'_>, totals: &Totals) -> Facts {
        let seconds = |counter| totals.counter(counter) as f64 / totals.ticks_per_second.max(1.0);
        let cpu = totals.cpu.as_secs_f64();
        let bursts = known.policy == "bursts";
        // Counter mode switches too often to ask for CPU time each time.
        let burst_seconds = if bursts {
            totals.counter(Counter::BurstCpuNs) as f64 / 1e9
        } else {
            seconds(Counter::BurstTicks)
        };
        let triggers = totals.counter(Counter::Triggers);
        let counts = known.counts;
        let always = known.policy == "always";
        let (period, is_fixed) = match known.when {
            Policy::Bursts { period, checks } => (Some(period), checks > 0 && known.rate.is_none()),
            _ => (None, false),
        };
        let mean = known.governed.map(|governed| governed.period).or(period);
        Facts {
            format: "sonde-run",
            version: 1,
            program: known.program.args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            path: known.program.path.display().to_string(),
            exit: match known.exit {
                Exit::Status(status) => HowEnded::Status(status),
                Exit::Signal(signal) => HowEnded::Signal(signal),
            },
            trigger: known.setup.trigger.map(trigger_name),
            trigger_note: known.setup.trigger_note.clone(),
            loader: known.setup.loader,
            loader_note: known.setup.loader_note.clone(),
            policy: known.policy,
            period_seconds: period.map(|period| period.as_secs_f64()),
            burst_checks: match known.when {
                Policy::Bursts { checks, .. } | Policy::Counter { checks, .. } => Some(checks),
                Policy::Always => None,
            },
            rate: known.rate,
            max_overhead: known.governed.map(|governed| governed.limit),
            mean_period_seconds: mean.map(|period| period.as_secs_f64()),
            bursts_left_out: known.governed.map_or(0, |governed| governed.left_out),
            checks: known.checks.map(|scheme| Checks::new(scheme, known.setup, totals)),
            in_place: known.in_place,
            record: known.record,
            wall_seconds: totals.wall.as_secs_f64(),
            cpu_seconds: cpu,
            user_seconds: (totals.cpu.saturating_sub(totals.system)).as_secs_f64(),
            system_seconds: totals.system.as_secs_f64(),
            sonde_cpu_seconds: known.sonde_cpu.as_secs_f64(),
            sonde_ending_seconds: known.sonde_cpu.saturating_sub(known.sonde_cpu_before).as_secs_f64(),
            triggers,
            bursts: totals.counter(Counter::Bursts),
            bursts_due: mean
                .filter(|_| known.rate.is_none())
                .filter(|_| is_fixed)
                .map(|period| due(totals.cpu.saturating_sub(totals.system), period)),
            burst_seconds,
            share_cpu: if always { 1.0 } else { share(burst_seconds, cpu) },
            overhead_at_most: bursts.then(|| share(burst_seconds + triggers as f64 * TRIGGER_SECONDS, cpu)),
            total_overhead: bursts
                .then(|| price::share_spent(cpu, burst_seconds, triggers, known.sonde_cpu.as_secs_f64())),
            threads: totals.counter(Counter::Threads),
            runs: counts.runs,
            blocks: counts.blocks,
            instructions: counts.instructions,
            repetitions: counts.repetitions,
            loads: counts.loads,
            stores: counts.stores,
            without_address: counts.without_address,
            unrecorded: counts.unrecorded,
            events: counts.events(),
            log_bytes: totals.log_bytes,
            discarded: known.discarded,
            burst_ends: drops::ends(totals),
            drops: drops::drops(totals),
            error: totals.error.as_ref().map(ToString::to_string).or_else(|| not_started(totals)),
            became: totals.became.as_ref().map(|path| path.display().to_string()),
            children: totals.children.count,
            children_at_least: totals.children.is_lower_bound,
            children_cpu_seconds: totals.children.cpu.as_secs_f64(),
            followed: known.followed,
            live_masks: known.live_values.map(|values| LiveMasks::new(values, totals)),
            translation: Translation {
                superblocks: totals.counter(Counter::Superblocks),
                blocks: totals.counter(Counter::SuperblockBlocks),
                instructions: totals.counter(Counter::SuperblockInsns),
                code_bytes: totals.counter(Counter::CodeBytes),
                seconds: seconds(Counter::TranslateTicks),
                flushes: totals.counter(Counter::Flushes),
            },
            memory: known.memory,
            unit: known.unit.word(),
            missing: drops::missing(&known.missing).map(|(key, count, _)| (key, count)).collect(),
            missing_in_words: drops::missing(&known.missing)
                .map(|(_, count, words)| (count, words))
                .collect(),
            hot_threshold: known.hot_threshold,
            hot_code: Hot::list(known.hot[0].clone()),
            hot_data: Hot::list(known.hot[1].clone()),
            hot: known.hot,
            has_ranges: known.has_ranges,
            has_data: known.has_data,
            output: known.output,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_bursts_are_told_with_the_reason() {
        let due = due(Duration::from_secs(3), Duration::from_millis(10));
        assert_eq!(due.round(), 300.0);
        assert!(
            too_few(150, due, Some("timer"))
                .unwrap()
                .starts_with("150 where the period asks for about 300: the kernel")
        );
        assert!(too_few(150, due, Some("stops")).unwrap().contains("system calls"));
        assert_eq!(too_few(215, due, Some("timer")), None);
        assert_eq!(too_few(1, 9.0, Some("timer")), None, "that few tell nothing");
    }
}
