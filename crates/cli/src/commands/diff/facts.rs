//! What a comparison says, for the text and the JSON alike; the keys are described in docs/diff-json.md.

use std::collections::BTreeMap;

use serde::Serialize;
use sonde_place::{OFFSET_BITS, Place, Regions};
use sonde_profile::Profile;
use sonde_profile::diff::{Change, Diff, KindDiff, Shares};
use sonde_report::Namer;
use sonde_summary::{Domain, Kind};
use sonde_symbol::Symbols;

use super::functions::Functions;

/// Two profiles compared.
#[derive(Debug, Serialize)]
pub struct Facts {
    pub before: Side,
    pub after: Side,
    pub unit: &'static str,
    pub functions_compared: usize,
    pub functions: Vec<Changed>,
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
}

/// What changed in the summaries of a kind.
#[derive(Debug, Serialize)]
pub struct OfKind {
    pub kind: &'static str,
    pub compared: usize,
    pub resolution: f64,
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
    pub before: [f64; 2],
    pub after: [f64; 2],
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
        Facts {
            before: side(sides[0]),
            after: side(sides[1]),
            unit: diff.unit.word(),
            functions_compared: functions.compared,
            functions: functions.changes.into_iter().map(|f| changed(f.name, &f.shares)).collect(),
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
    Side {
        command: profile.runs.first().map(|run| run.command.clone()).unwrap_or_default(),
        runs: profile.totals.runs,
        bursts: profile.totals.bursts,
        cpu_seconds: profile.totals.cpu_ns as f64 / 1e9,
    }
}

fn changed(name: String, shares: &Shares) -> Changed {
    Changed {
        name,
        lo: Vec::new(),
        hi: Vec::new(),
        before: [shares.before.lower, shares.before.upper],
        after: [shares.after.lower, shares.after.upper],
        at_least: shares.apart(),
        noise: shares.noise,
    }
}

fn of_kind(kind: &KindDiff, diff: &Diff, namer: &mut Namer<'_>) -> OfKind {
    let change = |change: &Change| {
        let hex = |keys: &[u64]| keys.iter().map(|key| format!("{key:#x}")).collect();
        let name = name(kind.kind, change, &diff.regions, namer);
        Changed { lo: hex(&change.lo), hi: hex(&change.hi), ..changed(name, &change.shares) }
    };
    OfKind {
        kind: kind.kind.name(),
        compared: kind.compared,
        resolution: kind.resolution,
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
