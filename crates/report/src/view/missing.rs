//! What was not seen, so that nobody takes what is shown for everything; and what the cache model counted.

use crate::figures::size;
use crate::name::Namer;
use crate::subject::Subject;
use schemars::JsonSchema;
use serde::Serialize;
use sonde_summary::CacheCounts;
use std::collections::BTreeMap;

/// Something that was not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missed {
    /// How often.
    pub count: u64,
    /// What, and what it means.
    pub what: String,
}

/// The cache model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CacheView {
    /// The two levels in words.
    pub levels: Vec<String>,
    /// Loads.
    pub loads: u64,
    /// Share of loads that miss the first level, at least.
    pub first_level_misses: f64,
    /// The same, at most: with those that bursts alone do not tell.
    pub first_level_misses_at_most: f64,
    /// Share of loads that miss both levels, at least.
    pub second_level_misses: f64,
    /// The same, at most.
    pub second_level_misses_at_most: f64,
    /// References to lines that the model had never met.
    pub first_touches: u64,
}

impl CacheView {
    /// What was counted.
    pub fn of(counts: &CacheCounts) -> CacheView {
        let level =
            |g: &sonde_cache::Geometry| format!("{}, {} ways, lines of {} B", size(g.size), g.ways, g.line);
        let s = &counts.statistics;
        let share = |n: u64| n as f64 / s.loads.max(1) as f64;
        CacheView {
            levels: vec![level(&counts.config.first()), level(&counts.config.second())],
            loads: s.loads,
            first_level_misses: share(s.first_load_misses),
            first_level_misses_at_most: share(s.first_load_misses.saturating_add(s.first_load_unknown)),
            second_level_misses: share(s.second_load_misses),
            second_level_misses_at_most: share(s.second_load_misses.saturating_add(s.second_load_unknown)),
            first_touches: s.first_touches,
        }
    }
}

/// Code of files that are not there any more as they were run.
fn lost_files(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<Missed> {
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    for block in subject.blocks {
        if let Some(file) = namer.lost_file(block.place) {
            *lost.entry(file).or_default() += 1;
        }
    }
    let what = |file: &str| {
        format!(
            "blocks are of {file}, which has changed since, or is gone: put it back for their names, or name the folder of a copy with --debug-dir"
        )
    };
    lost.into_iter().map(|(file, count)| Missed { count, what: what(file) }).collect()
}

/// All that was missed.
pub fn view(subject: &Subject<'_>, namer: &mut Namer<'_>) -> Vec<Missed> {
    let m = subject.missing;
    let b = subject.bursts;
    let own = [
        (b.empty, "bursts recorded no instruction: they only tell where the time was up"),
        (b.thinned, "bursts had more references than are kept at once: a random part stands for all"),
        (m.unplaced_code, "blocks lay in no mapping that was seen: they have no name"),
        (m.unplaced_data, "references went to no mapping that was seen: they have no name"),
        (m.without_address, "references have an address form that is not supported"),
        (m.without_value, "loads have no recorded value: they are in no tree over values"),
        (m.conditional, "masked references may not have happened: they are in no tree"),
        (m.without_target, "indirect branches have no recorded target: they are in no tree over edges"),
        (m.gaps, "gaps in the stream: something was damaged or could not be read"),
    ];
    let own = own.into_iter().map(|(count, what)| Missed { count, what: what.into() });
    let runs = subject.runs.iter().flat_map(|run| &run.losses);
    let lost = runs.map(|(count, what)| Missed { count: *count, what: what.clone() });
    let starts = subject.starts.into_iter().flat_map(|s| {
        [
            (
                s.behind_calls.count,
                "bursts began in a system call: their time is the kernel's, which is in no share",
            ),
            (
                s.in_faults.count,
                "bursts began in a page fault: their time is the kernel's, which is in no share",
            ),
            (s.not_kept.count, "bursts began at instructions that did not fit the limit"),
        ]
    });
    let starts = starts.map(|(count, what)| Missed { count, what: what.into() });
    let calls = subject.calls.into_iter().flat_map(|c| {
        [
            (c.not_kept.contexts, "calls went to contexts that did not fit the limit: what they did counts for their nearest caller"),
            (c.not_kept.pairs, "calls were of pairs that did not fit the limit"),
            (c.not_kept.functions, "calls were of functions that did not fit the limit"),
            (c.returns_unmatched, "returns match no call: stacks were switched or unwound by hand"),
        ]
    });
    let calls = calls.map(|(count, what)| Missed { count, what: what.into() });
    let files = lost_files(subject, namer);
    let all = lost.chain(own).chain(starts).chain(calls).chain(files);
    all.filter(|missed| missed.count > 0).collect()
}
