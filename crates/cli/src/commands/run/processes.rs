//! `--follow`: what the recorded child processes came to, added up program by program.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;
use sonde_event::{Counts, Reader};
use sonde_launch::{Counter, Followed, Options, Part, Parts, Totals};
use sonde_report::half_width;
use sonde_report::view::HotView;
use sonde_summary::{BurstTime, Bursts, Unit};

use super::args::Args;
use super::seen::Seen;
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
    pub hot_code: Vec<HotView>,
    pub hot_data: Vec<HotView>,
    pub bursts: Bursts,
    pub code_weight: u64,
    pub data_weight: u64,
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
            cpu_seconds: followed.cpu.as_secs_f64(),
            programs,
        }
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
        let (code, data) = kept.hot(self.args.hot);
        add_hot(&mut self.pool.hot_code, code);
        add_hot(&mut self.pool.hot_data, data);
        add_bursts(&mut self.pool.bursts, &kept.bursts());
        self.pool.code_weight = self.pool.code_weight.saturating_add(kept.code_weight());
        self.pool.data_weight = self.pool.data_weight.saturating_add(kept.data_weight());
        self.pool.counts = sum(self.pool.counts, counts);
        self.pool.totals.add(&part.totals);
    }
}

/// Both counted together.
pub fn sum(a: Counts, b: Counts) -> Counts {
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

/// Adds hot ranges of another process. Addresses differ from process to process, so that the same place is known by its
/// name; what was not hot in one process is missing from the sum, which is a lower bound therefore.
pub fn add_hot(all: &mut Vec<HotView>, more: Vec<HotView>) {
    for hot in more {
        match all.iter_mut().find(|known| key(known) == key(&hot)) {
            Some(known) => {
                known.own_weight += hot.own_weight;
                known.weight += hot.weight;
            }
            None => all.push(hot),
        }
    }
}

/// What makes two ranges the same to a person.
fn key(hot: &HotView) -> Option<(&str, &Option<String>, &Option<String>)> {
    hot.sides.first().map(|side| (side.name.as_str(), &side.hottest, &side.region))
}

/// As far as errors of sampling depend on it.
pub fn add_bursts(sum: &mut Bursts, more: &Bursts) {
    sum.count += more.count;
    sum.empty += more.empty;
}

/// Makes shares of weights again, and leaves out what is not hot in the whole.
pub fn weigh(hot: &mut Vec<HotView>, whole: u64, threshold: f64, unit: Unit, bursts: &Bursts) {
    let share = |weight: u64| weight as f64 / whole.max(1) as f64;
    for one in hot.iter_mut() {
        (one.own_share, one.share, one.depth) = (share(one.own_weight), share(one.weight), 0);
        one.plus_minus = half_width(one.share, unit, bursts);
    }
    hot.retain(|one| one.own_share >= threshold);
    hot.sort_by_key(|one| std::cmp::Reverse(one.own_weight));
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

#[cfg(test)]
mod tests {
    use super::*;
    use sonde_report::view::SideView;

    fn hot(place: &str, own: u64) -> HotView {
        let side = SideView { name: place.into(), ..SideView::default() };
        HotView { sides: vec![side], own_weight: own, weight: own, ..HotView::default() }
    }

    #[test]
    fn places_are_added_up_by_name() {
        let mut all = vec![hot("a", 60), hot("b", 30)];
        add_hot(&mut all, vec![hot("b", 50), hot("c", 1)]);
        weigh(&mut all, 200, 0.05, Unit::Events, &Bursts::default());
        let names: Vec<(&str, u64, f64)> =
            all.iter().map(|h| (h.sides[0].name.as_str(), h.own_weight, h.own_share)).collect();
        assert_eq!(names, [("b", 80, 0.4), ("a", 60, 0.3)]);
    }
}
