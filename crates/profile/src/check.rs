//! The invariants of a profile: checked whenever one is read, and over every profile that tests make.

use crate::analyses;
use crate::profile::Profile;
use crate::run::{Named, Run};
use crate::timeline::Timeline;
use crate::trees::heaviest_path;
use sonde_place::{Kind as RegionKind, OFFSET_BITS, Regions};
use sonde_rap::{Key, Snapshot};
use sonde_summary::{CacheCounts, Domain, Ranges, Summary, Trees};

/// What cannot be true of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {what}")]
pub struct Invalid {
    /// Where.
    pub part: String,
    /// What.
    pub what: String,
}

fn ensure(holds: bool, part: impl FnOnce() -> String, what: &str) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(Invalid { part: part(), what: what.into() }) }
}

impl Profile {
    /// Checks everything that holds for a true profile.
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_totals()?;
        self.runs.iter().enumerate().try_for_each(|(i, run)| check_run(i, run))?;
        check_summary(&self.summary)?;
        analyses::check(self)
    }

    fn check_totals(&self) -> Result<(), Invalid> {
        let totals = || "totals".to_owned();
        let described = self.runs.len() as u64;
        ensure(self.runs.len() <= Profile::MOST_RUNS, totals, "there are too many runs")?;
        ensure(self.totals.runs >= described, totals, "there are more runs than were counted")?;
        let all = self.totals.runs == described;
        ensure(all || described == Profile::MOST_RUNS as u64, totals, "runs are missing")?;
        let sum = |of: fn(&Run) -> u64| self.runs.iter().map(of).fold(0, u64::saturating_add);
        let fits = |total: u64, sum: u64| if all { total == sum } else { total >= sum };
        ensure(
            fits(self.totals.bursts, sum(|r| r.bursts)),
            totals,
            "the bursts of the runs do not add up to them",
        )?;
        ensure(
            fits(self.totals.cpu_ns, sum(|r| r.cpu_ns)),
            totals,
            "the CPU times of the runs do not add up to them",
        )?;
        ensure(
            fits(self.totals.wall_ns, sum(|r| r.wall_ns)),
            totals,
            "the wall times of the runs do not add up to them",
        )?;
        let mut losses = Named::new();
        for (name, count) in self.runs.iter().flat_map(|run| &run.losses) {
            let sum = losses.entry(name.clone()).or_default();
            *sum = u64::saturating_add(*sum, *count);
        }
        let counted = losses.iter().all(|(name, n)| self.totals.losses.get(name).is_some_and(|all| all >= n));
        ensure(counted, totals, "a loss of a run is missing in them")
    }
}

fn check_run(index: usize, run: &Run) -> Result<(), Invalid> {
    let part = || format!("run {index}");
    let share = |x: f64| (0.0..=1.0).contains(&x);
    ensure(share(run.random_gap), part, "the random part of its period is no share")?;
    ensure(run.rate.is_none_or(share), part, "its rate is no share")?;
    let limited = run.max_overhead.is_none_or(|limit| limit.is_finite() && limit > 0.0);
    ensure(limited, part, "the limit on what it may cost is no share")?;
    ensure(run.mean_period_ns.is_none_or(|ns| ns > 0), part, "its mean period is nothing")?;
    let line = &run.timeline;
    ensure(line.interval_ns > 0, part, "the intervals of its time line have no length")?;
    ensure(line.intervals.len() <= Timeline::MOST, part, "its time line is too long")?;
    ensure(line.bursts() <= run.bursts, part, "its time line has more bursts than it")?;
    let bytes: usize = run.command.iter().map(|word| word.len() + 1).sum();
    ensure(bytes <= Run::COMMAND_BYTES, part, "its command line is too long")
}

fn check_summary(summary: &Summary) -> Result<(), Invalid> {
    check_regions(&summary.regions)?;
    let trees = || "trees".to_owned();
    let ordered = summary.ranges.is_sorted_by(|a, b| a.kind < b.kind);
    ensure(ordered, trees, "they are not ordered by kind, or one is there twice")?;
    let united = summary.ranges.iter().all(|tree| tree.unit == summary.unit);
    ensure(united, trees, "one counts in another unit")?;
    summary.ranges.iter().try_for_each(|tree| check_tree(tree, &summary.regions))?;
    check_blocks(summary)?;
    let bursts = &summary.bursts;
    ensure(bursts.empty <= bursts.count, || "bursts".into(), "more are empty than there are")?;
    ensure(bursts.kernel_time <= bursts.time, || "bursts".into(), "the kernel has more time than all")?;
    summary.cache.as_ref().map_or(Ok(()), check_cache)
}

fn check_blocks(summary: &Summary) -> Result<(), Invalid> {
    let blocks = || "blocks".to_owned();
    let (all, known) = (&summary.blocks, &summary.regions);
    ensure(all.len() <= Summary::MOST_BLOCKS, blocks, "there are too many")?;
    let ordered = all.is_sorted_by(|a, b| (a.place, a.bytes) < (b.place, b.bytes));
    ensure(ordered, blocks, "they are not ordered by place, or one is there twice")?;
    ensure(all.iter().all(|block| known.get(block.place).is_some()), blocks, "one is in no region")
}

fn check_regions(regions: &Regions) -> Result<(), Invalid> {
    let all = regions.all();
    let unknown = |index: usize| all[index].kind == RegionKind::Unknown;
    ensure(!all.is_empty() && unknown(0), || "region 0".into(), "it is not the unknown one")?;
    let mut seen = std::collections::HashSet::new();
    for (index, region) in all.iter().enumerate() {
        let part = || format!("region {index}");
        ensure(index == 0 || !unknown(index), part, "there is a second unknown one")?;
        let name = if region.build_id.is_empty() { region.name.as_str() } else { "" };
        let new = seen.insert((region.kind, &region.build_id, name));
        ensure(new, part, "it is there twice")?;
    }
    Ok(())
}

fn check_tree(ranges: &Ranges, regions: &Regions) -> Result<(), Invalid> {
    match &ranges.tree {
        Trees::One(tree) => check_snapshot(ranges, tree, regions),
        Trees::Two(tree) => check_snapshot(ranges, tree, regions),
    }
}

fn check_snapshot<K: Key>(ranges: &Ranges, tree: &Snapshot<K>, regions: &Regions) -> Result<(), Invalid> {
    let part = || format!("tree over {}", ranges.kind.name());
    let domains = ranges.kind.domains();
    ensure(domains.len() == K::DIMS, part, "it has another number of dimensions")?;
    tree.check().map_err(|error| Invalid { part: part(), what: error.to_string() })?;
    ensure(tree.nodes.len() <= Profile::MOST_NODES, part, "it has too many nodes")?;
    ensure(tree.nodes_max >= tree.nodes.len() as u64, part, "it has more nodes than it ever had")?;
    ensure(ranges.events >= tree.nodes.len() as u64, part, "it has more nodes than events were added")?;
    let eps = tree.eps_effective;
    ensure(eps >= tree.config.eps && eps <= 1.0, part, "its error is below what was asked for, or above 1")?;
    let lost = heaviest_path(tree) as f64 / tree.events.max(1) as f64;
    ensure(lost <= eps * (1.0 + 1e-9), part, "ranges around some range hold more than its error")?;
    for (index, node) in tree.nodes.iter().enumerate() {
        let places = (0..K::DIMS).filter(|dim| domains[*dim] != Domain::Value);
        let known = |dim| region_exists(node.range.lo.coordinate(dim), regions);
        ensure(places.clone().all(known), || format!("{}, node {index}", part()), "it is in no region")?;
    }
    Ok(())
}

/// A node inside a region must be in one that is there; a wider one need only touch one.
fn region_exists(lo: u128, regions: &Regions) -> bool {
    ((lo >> OFFSET_BITS) as usize) < regions.all().len()
}

fn check_cache(cache: &CacheCounts) -> Result<(), Invalid> {
    let part = || "cache model".to_owned();
    let counted = &cache.statistics;
    let falls = |all: u64, first: u64, second: u64| all >= first && first >= second;
    let loads = falls(counted.loads, counted.first_load_misses, counted.second_load_misses);
    let stores = falls(counted.stores, counted.first_store_misses, counted.second_store_misses);
    // At most as many, too: what reached the second level missed the first.
    let c = counted;
    let most = |misses: u64, unknown: u64| misses.saturating_add(unknown);
    let loads = loads
        && falls(
            c.loads,
            most(c.first_load_misses, c.first_load_unknown),
            most(c.second_load_misses, c.second_load_unknown),
        );
    let stores = stores
        && falls(
            c.stores,
            most(c.first_store_misses, c.first_store_unknown),
            most(c.second_store_misses, c.second_store_unknown),
        );
    ensure(loads && stores, part, "a level has more misses than references reached it")
}
