//! `--follow`: what the recorded child processes came to, added up program by program.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;
use sonde_analysis::Findings;
use sonde_event::{Counts, Reader};
use sonde_launch::{Counter, Followed, Options, Part, Parts, Served, Totals};
use sonde_profile::Named;
use sonde_summary::BurstTime;

use super::args::Args;
use super::kept;
use super::seen::{Found, Seen};
use crate::quantity::{count, grouped};

/// Most programs that are told apart; what others came to is added up under one name.
const MOST_PROGRAMS: usize = 1000;
const OTHERS: &str = "others";

/// Gets the streams of followed processes.
pub struct Processes<'a> {
    args: &'a Args,
    options: &'a Options,
    burst_time: Option<BurstTime>,
    open: HashMap<i32, Seen>,
    /// Of the processes that ended.
    pub pool: Pool,
    programs: BTreeMap<String, Program>,
}

/// What the followed processes came to together.
#[derive(Default)]
pub struct Pool {
    pub totals: Totals,
    pub counts: Counts,
    pub catalog_bytes: u64,
    pub findings: Option<Findings>,
    /// What adding them up lost.
    losses: Named,
    /// Processes whose findings could not be added.
    pub not_added: u64,
}

impl Pool {
    fn add(&mut self, findings: Option<Findings>) {
        let Some(findings) = findings else { return };
        match self.findings.take() {
            None => self.findings = Some(findings),
            Some(ours) => {
                let (sum, losses) = kept::together(ours, findings);
                self.findings = Some(sum);
                self.not_added += u64::from(losses.is_none());
                kept::add_losses(&mut self.losses, &losses.unwrap_or_default());
            }
        }
    }
}

/// One program among them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Program {
    pub path: String,
    /// Times that it was run and recorded.
    pub recorded: u64,
    pub bursts: u64,
    pub instructions: u64,
    pub cpu_seconds: f64,
}

/// For the report and the JSON.
#[derive(Debug, Serialize)]
pub struct FollowedFacts {
    pub processes: u64,
    pub recorded: u64,
    pub refused: u64,
    pub left_running: u64,
    pub not_added: u64,
    pub cpu_seconds: f64,
    pub programs: Vec<Program>,
}

impl<'a> Processes<'a> {
    /// None yet.
    pub fn new(args: &'a Args, options: &'a Options, burst_time: Option<BurstTime>) -> Processes<'a> {
        let (open, programs) = (HashMap::new(), BTreeMap::new());
        Processes { args, options, burst_time, open, pool: Pool::default(), programs }
    }

    /// The facts, once all have ended; the programs with the most CPU time first.
    pub fn facts(&self, followed: &Followed) -> FollowedFacts {
        let mut programs: Vec<Program> = self.programs.values().cloned().collect();
        programs.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
        FollowedFacts {
            processes: followed.processes,
            recorded: followed.recorded,
            refused: followed.refused,
            left_running: followed.left_running,
            not_added: self.pool.not_added,
            cpu_seconds: followed.cpu.as_secs_f64(),
            programs,
        }
    }

    /// Adds them to what the program itself came to.
    pub fn join(&mut self, served: &mut Served, found: &mut Found) {
        // Bursts are drawn from the CPU time of all, also of those that ended before one was due.
        let cpu = served.totals.cpu + served.followed.cpu;
        let system = served.totals.system + served.followed.system;
        served.totals.add(&self.pool.totals);
        (served.totals.cpu, served.totals.system) = (cpu, system);
        found.counts = sum(found.counts, self.pool.counts);
        self.pool.add(found.findings.take());
        found.findings = self.pool.findings.take();
        kept::add_losses(&mut found.losses, &self.pool.losses);
    }
}

impl Parts for Processes<'_> {
    fn begin(&mut self, pid: i32, _: &Path) {
        // Whether a tree can be made was found out before the program was started.
        if let Ok(seen) = Seen::new(self.args, self.options, self.burst_time.clone()) {
            self.open.insert(pid, seen);
        }
    }

    fn reader(&mut self, pid: i32) -> Option<&mut dyn Reader> {
        self.open.get_mut(&pid)?.reader()
    }

    fn end(&mut self, part: Part) {
        let seen = self.open.remove(&part.pid).unwrap_or(Seen::Nothing);
        let kept = seen.finish(part.decoder.catalog());
        let counts = kept.counts;
        let path = part.exe.display().to_string();
        let known = self.programs.len() < MOST_PROGRAMS || self.programs.contains_key(&path);
        let path = if known { path } else { OTHERS.into() };
        let program = self.programs.entry(path.clone()).or_insert(Program { path, ..Program::default() });
        program.recorded += 1;
        program.bursts += part.totals.counter(Counter::Bursts);
        program.instructions += counts.instructions;
        program.cpu_seconds += part.totals.cpu.as_secs_f64();
        let catalog = part.decoder.catalog();
        self.pool.catalog_bytes = self.pool.catalog_bytes.max(catalog.memory_bytes() as u64);
        self.pool.counts = sum(self.pool.counts, counts);
        self.pool.totals.add(&part.totals);
        self.pool.add(kept.findings);
    }
}

/// Both counted together.
fn sum(a: Counts, b: Counts) -> Counts {
    Counts {
        bursts: a.bursts + b.bursts,
        runs: a.runs + b.runs,
        blocks: a.blocks + b.blocks,
        instructions: a.instructions + b.instructions,
        repetitions: a.repetitions + b.repetitions,
        loads: a.loads + b.loads,
        stores: a.stores + b.stores,
        without_address: a.without_address + b.without_address,
        unrecorded: a.unrecorded + b.unrecorded,
    }
}

impl FollowedFacts {
    /// For the report.
    pub fn in_words(&self) -> String {
        let shown: Vec<String> = self.programs.iter().take(5).map(Program::in_words).collect();
        let more = self.programs.len().saturating_sub(shown.len());
        let mut text = format!(
            "{} followed, {:.2} s of CPU time; {} recorded",
            count(self.processes, "child process", "child processes"),
            self.cpu_seconds,
            grouped(self.recorded)
        );
        if !shown.is_empty() {
            text += &format!(": {}", shown.join(", "));
        }
        if more > 0 {
            text += &format!(" and {more} more programs");
        }
        if self.refused > 0 {
            text += &format!("; {} could not get a probe", grouped(self.refused));
        }
        if self.left_running > 0 {
            text += &format!("; {} outlived the program and went on alone", grouped(self.left_running));
        }
        if self.not_added > 0 {
            text +=
                &format!("; what {} came to is missing: it does not fit the others", grouped(self.not_added));
        }
        text
    }
}

impl Program {
    fn in_words(&self) -> String {
        let name =
            Path::new(&self.path).file_name().map_or(self.path.as_str().into(), |n| n.to_string_lossy());
        let bursts = count(self.bursts, "burst", "bursts");
        format!("{} {name} ({bursts}, {:.2} s)", self.recorded, self.cpu_seconds)
    }
}
