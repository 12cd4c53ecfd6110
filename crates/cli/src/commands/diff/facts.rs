//! What a comparison says, for the text and the JSON alike; the keys are described in docs/diff-json.md.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sonde_place::{OFFSET_BITS, Place, Region, Regions};
use sonde_profile::Profile;
use sonde_profile::diff::{Change, Diff, KindDiff, Shares};
use sonde_report::Namer;
use sonde_summary::{Domain, Kind, Unit};
use sonde_symbol::Symbols;

use super::functions::Functions;

/// Two profiles compared.
#[derive(Debug, Serialize)]
pub struct Facts {
    pub before: Side,
    pub after: Side,
    pub times_as_long: Option<f64>,
    /// Whether that is more than runs of the same program differ by.
    pub takes_as_long: bool,
    pub unit: &'static str,
    pub functions_compared: usize,
    pub functions: Vec<Changed>,
    /// The programs, if the two profiles are of different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub different_programs: Option<[String; 2]>,
    /// Modules that could not be named on one side.
    pub nameless: BTreeMap<String, &'static str>,
    /// Modules of which each side has another build.
    pub rebuilt: Vec<String>,
    pub kinds: Vec<OfKind>,
    pub only_before: Vec<&'static str>,
    pub only_after: Vec<&'static str>,
}

/// One of the profiles.
#[derive(Debug, Serialize)]
pub struct Side {
    pub command: Vec<String>,
    pub runs: u64,
    pub bursts: u64,
    pub cpu_seconds: f64,
    /// CPU time of a run: on average, the least, and the most.
    pub a_run: [f64; 3],
    /// Of the average, what was in user code.
    pub user_seconds_a_run: f64,
}

/// What changed in the summaries of a kind.
#[derive(Debug, Serialize)]
pub struct OfKind {
    pub kind: &'static str,
    pub compared: usize,
    pub resolution: f64,
    /// Values drawn at random in each run, such as that which guards the stack: one on either side is no change.
    pub drawn: usize,
    pub changes: Vec<Changed>,
}

/// Something that got hotter or colder.
#[derive(Debug, Serialize)]
pub struct Changed {
    pub name: String,
    /// Corners of the range, by dimension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lo: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hi: Vec<String>,
    /// Parts of it changed by themselves, and are listed so: this is the rest of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
    pub before: [f64; 2],
    pub after: [f64; 2],
    /// CPU time in it in a run, before and after, where shares are shares of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_a_run: Option<[f64; 2]>,
    /// By how much it certainly changed, chance aside.
    pub at_least: f64,
    /// By how much it may have changed by chance.
    pub noise: f64,
}

impl Facts {
    /// Puts names to what was found.
    pub fn new(sides: [&Profile; 2], functions: Functions, diff: Diff, symbols: &mut Symbols) -> Facts {
        let mut namer = Namer::new(symbols, &diff.regions, &diff.blocks);
        let kinds = diff.kinds.iter().map(|kind| of_kind(kind, &diff, &mut namer)).collect();
        let names = |kinds: &[Kind]| kinds.iter().map(|kind| kind.name()).collect();
        let module = |slot: &u16| {
            let region = diff.regions.get(Place::new(*slot, 0));
            region.map(|region| region.name.clone()).unwrap_or_default()
        };
        let (before, after) = (side(sides[0]), side(sides[1]));
        let user =
            (diff.unit == Unit::Picoseconds).then_some([before.user_seconds_a_run, after.user_seconds_a_run]);
        let functions_of = |f: sonde_profile::diff::Named| changed(f.name, &f.shares, user);
        Facts {
            times_as_long: (before.a_run[0] > 0.0).then(|| after.a_run[0] / before.a_run[0]),
            takes_as_long: takes_as_long(&before, &after),
            before,
            after,
            unit: diff.unit.word(),
            functions_compared: functions.compared,
            functions: functions.changes.into_iter().map(functions_of).collect(),
            different_programs: different_programs(sides),
            nameless: functions.nameless,
            rebuilt: diff.rebuilt.iter().map(module).collect(),
            kinds,
            only_before: names(&diff.only_before),
            only_after: names(&diff.only_after),
        }
    }

    /// Whether anything changed.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.kinds.iter().all(|kind| kind.changes.is_empty())
    }
}

fn side(profile: &Profile) -> Side {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let runs = profile.totals.runs.max(1) as f64;
    let mean = seconds(profile.totals.cpu_ns) / runs;
    let each = || profile.runs.iter().map(|run| seconds(run.cpu_ns));
    // Of very many runs, and of old profiles, only a part tells what the kernel took.
    let told = || profile.runs.iter().filter_map(|run| Some((run.cpu_ns, run.system_ns?.min(run.cpu_ns))));
    let (cpu, system) = told().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let in_kernel = if cpu > 0 { system as f64 / cpu as f64 } else { 0.0 };
    Side {
        command: profile.runs.first().map(|run| run.command.clone()).unwrap_or_default(),
        runs: profile.totals.runs,
        bursts: profile.totals.bursts,
        cpu_seconds: seconds(profile.totals.cpu_ns),
        a_run: [mean, each().fold(mean, f64::min), each().fold(mean, f64::max)],
        user_seconds_a_run: mean * (1.0 - in_kernel),
    }
}

/// The programs of two profiles, if no run of one is of a program of the other: neither by file name nor by build-id.
fn different_programs(sides: [&Profile; 2]) -> Option<[String; 2]> {
    let names =
        sides.map(|p| p.runs.iter().map(|run| sonde_report::short(&run.path)).collect::<BTreeSet<_>>());
    let ids = sides.map(|p| {
        let ran = |region: &&Region| p.runs.iter().any(|run| run.path == region.name);
        let all = p.summary.regions.all().iter().filter(ran).map(|region| &region.build_id);
        all.filter(|id| !id.is_empty()).collect::<BTreeSet<_>>()
    });
    let same = !names[0].is_disjoint(&names[1]) || !ids[0].is_disjoint(&ids[1]);
    (!same && names.iter().all(|names| !names.is_empty()))
        .then(|| names.map(|names| names.into_iter().collect::<Vec<_>>().join(", ")))
}

/// One run can be this much faster or slower than another of the same program on a machine that does other things, too.
const USUAL: f64 = 1.25;
/// And by so many seconds, which is most of a short run: what starting costs depends on what is in memory already.
const USUAL_SECONDS: f64 = 0.05;

/// Whether runs take as long as before, as far as can be told: several runs of each tell it by how they differ.
fn takes_as_long(before: &Side, after: &Side) -> bool {
    let ([_, least, most], [_, other_least, other_most]) = (before.a_run, after.a_run);
    let told = (before.runs, after.runs);
    let (times, more) = if chance_of_apart(told) < 0.05 { (1.0, 0.0) } else { (USUAL, USUAL_SECONDS) };
    other_least <= most * times + more && least <= other_most * times + more
}

/// How likely it is that all of so many runs take longer than all of so many others, or less, by chance: every order of them is
/// as likely as every other.
fn chance_of_apart((before, after): (u64, u64)) -> f64 {
    let (few, many) = (before.min(after), before.max(after) as f64);
    // Beyond some it is next to nothing.
    (1..=few.min(64)).fold(2.0, |chance, i| chance * i as f64 / (many + i as f64))
}

fn changed(name: String, shares: &Shares, user: Option<[f64; 2]>) -> Changed {
    Changed {
        name,
        lo: Vec::new(),
        hi: Vec::new(),
        rest: false,
        before: [shares.before.lower, shares.before.upper],
        after: [shares.after.lower, shares.after.upper],
        seconds_a_run: user.map(|[a, b]| [a * shares.before.lower, b * shares.after.lower]),
        at_least: shares.apart(),
        noise: shares.noise,
    }
}

fn of_kind(kind: &KindDiff, diff: &Diff, namer: &mut Namer<'_>) -> OfKind {
    let change = |change: &Change| {
        let hex = |keys: &[u64]| keys.iter().map(|key| format!("{key:#x}")).collect();
        let name = name(kind.kind, change, &diff.regions, namer);
        let (lo, hi, rest) = (hex(&change.lo), hex(&change.hi), change.is_rest);
        Changed { lo, hi, rest, ..changed(name, &change.shares, None) }
    };
    OfKind {
        kind: kind.kind.name(),
        compared: kind.compared,
        resolution: kind.resolution,
        drawn: kind.drawn,
        changes: kind.changes.iter().map(change).collect(),
    }
}

/// A range in words, by dimension.
fn name(kind: Kind, change: &Change, regions: &Regions, namer: &mut Namer<'_>) -> String {
    let side = |(dim, domain): (usize, &Domain)| {
        let (lo, hi) = (change.lo[dim], change.hi[dim]);
        match domain {
            Domain::Value if lo == hi => format!("{lo:#x}"),
            Domain::Value => format!("{lo:#x} to {hi:#x}"),
            _ if is_region(lo, hi) => region(regions, lo),
            Domain::Code => namer.code(lo, hi, &[]).text,
            Domain::Data => namer.data(lo, hi).text,
        }
    };
    let sides: Vec<String> = kind.domains().iter().enumerate().map(side).collect();
    sides.join(if kind == Kind::Edges { " -> " } else { " x " })
}

fn is_region(lo: u64, hi: u64) -> bool {
    hi - lo == (1 << OFFSET_BITS) - 1 && Place(lo).offset() == 0
}

fn region(regions: &Regions, place: u64) -> String {
    match regions.get(Place(place)) {
        Some(region) if region.name.is_empty() => format!("all of {} memory", region.kind.word()),
        Some(region) => format!("all of {}", region.name),
        None => "nothing known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(runs: u64, a_run: [f64; 3]) -> Side {
        Side { command: Vec::new(), runs, bursts: 1, cpu_seconds: 1.0, a_run, user_seconds_a_run: 1.0 }
    }

    #[test]
    fn several_runs_tell_what_is_usual() {
        assert!(takes_as_long(&of(1, [1.0; 3]), &of(1, [1.2; 3])), "one run each tells no more");
        assert!(!takes_as_long(&of(1, [1.0; 3]), &of(1, [2.0; 3])));
        assert!(!takes_as_long(&of(1, [2.0; 3]), &of(1, [1.0; 3])));
        assert!(!takes_as_long(&of(5, [1.0, 0.98, 1.02]), &of(5, [1.1, 1.08, 1.12])));
        assert!(takes_as_long(&of(5, [1.0, 0.7, 1.6]), &of(5, [1.3, 1.1, 1.9])));
        assert!(
            takes_as_long(&of(2, [1.0, 0.98, 1.02]), &of(2, [1.1, 1.08, 1.12])),
            "a third of all such pairs"
        );
        assert!(takes_as_long(&of(1, [0.1; 3]), &of(1, [0.132; 3])), "too short to tell");
        assert!(!takes_as_long(&of(1, [0.1; 3]), &of(1, [0.2; 3])));
        assert!((chance_of_apart((3, 3)) - 0.1).abs() < 1e-9 && chance_of_apart((1, 1)) == 1.0);
    }
}
