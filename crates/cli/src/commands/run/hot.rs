//! Hot ranges with names: where in which module or mapping they lie.

use serde::Serialize;
use sonde_event::maps::{Mapping, Mappings};
use sonde_rap::{Snapshot, Tree};

/// A hot range of code or data.
#[derive(Debug, Serialize)]
pub struct Hot {
    pub lo: String,
    pub hi: String,
    pub own: u64,
    pub total: u64,
    pub own_share: f64,
    pub total_share: f64,
    pub place: String,
}

/// The hot ranges of a tree, the hottest first.
pub fn ranges(tree: &mut Tree<u64>, threshold: f64, mappings: &Mappings) -> Vec<Hot> {
    let snapshot: Snapshot<u64> = tree.snapshot();
    let share = |count: u64| count as f64 / snapshot.events.max(1) as f64;
    let mut hot: Vec<Hot> = snapshot
        .hot(threshold)
        .iter()
        .map(|found| Hot {
            lo: format!("{:#x}", found.range.lo),
            hi: format!("{:#x}", found.range.hi),
            own: found.own,
            total: found.total,
            own_share: share(found.own),
            total_share: share(found.total),
            place: place(mappings, found.range.lo, found.range.hi),
        })
        .collect();
    hot.sort_by_key(|h| std::cmp::Reverse(h.own));
    hot
}

fn short(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, file)| file)
}

fn place(mappings: &Mappings, lo: u64, hi: u64) -> String {
    let within = |m: &&Mapping| m.start <= hi && lo < m.end;
    let mut names: Vec<&str> = mappings.all().iter().filter(within).map(|m| m.name.as_str()).collect();
    names.dedup();
    match (mappings.find(lo), names.as_slice()) {
        (Some(m), [_]) if m.is_file() => {
            let from = lo - m.start + m.offset;
            let to = hi.min(m.end - 1) - m.start + m.offset;
            format!("{}+{from:#x}..{to:#x}", short(&m.name))
        }
        (_, []) => "unmapped when looked at".into(),
        (_, [""]) => "anonymous memory".into(),
        (_, [one]) => short(one).to_string(),
        (_, many) => format!("{} mappings", many.len()),
    }
}
