//! Runs added up: by what addresses are in, not by where that happened to lie.

use crate::error::ProfileError;
use crate::profile::Profile;
use crate::relocate::{Moves, relocated};
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_rap::{Key, MergeError, Snapshot, Tree};
use sonde_summary::{BlockWeight, Kind, Ranges, Summary, Trees, add_up_light};

/// How profiles are put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeOptions {
    /// Modules with the same file name are one, even if they are different builds. Offsets of different builds are then
    /// mixed, which is of use where the code is nearly the same, and where whole modules are looked at.
    pub by_name: bool,
}

impl Profile {
    /// Adds other runs: the profile is then that of all together, with errors of at most `eps` of all events where
    /// that held for both. Weight of ranges that reach over several regions goes to the root where regions have other
    /// numbers there; it is counted as the loss `merge_widened`. Nothing is changed on an error.
    pub fn merge(&mut self, other: &Profile, options: &MergeOptions) -> Result<(), ProfileError> {
        let (ours, theirs) = (&self.summary, &other.summary);
        if ours.unit != theirs.unit {
            return Err(ProfileError::Units { ours: ours.unit, theirs: theirs.unit });
        }
        if let (Some(a), Some(b)) = (&ours.cache, &theirs.cache)
            && a.config != b.config
        {
            let (ours, theirs) = (a.config.to_string(), b.config.to_string());
            return Err(ProfileError::CacheModels { ours, theirs });
        }
        let mut sum = self.clone();
        let mut moves = sum.moves(other, options);
        sum.merge_trees(other, &mut moves)?;
        sum.add_loss("merge_widened", moves.widened);
        sum.merge_blocks(theirs, &moves);
        sum.merge_analyses(other, &moves);
        merge_counts(&mut sum.summary, theirs);
        sum.totals.add(&other.totals);
        sum.totals.pooled_by_name |= options.by_name && moves.pooled > 0;
        let room = Profile::MOST_RUNS - sum.runs.len().min(Profile::MOST_RUNS);
        sum.runs.extend(other.runs.iter().take(room).cloned());
        sum.unknown_parts = sum.unknown_parts.saturating_add(other.unknown_parts);
        *self = sum;
        Ok(())
    }

    /// The numbers that the other's regions have here.
    fn moves(&mut self, other: &Profile, options: &MergeOptions) -> Moves {
        let regions = &mut self.summary.regions;
        let left_out = regions.left_out();
        let mut pooled = 0;
        let slots = other.summary.regions.all().iter().map(|region| {
            let alike = options.by_name.then(|| alike(regions, region)).flatten();
            pooled += u64::from(alike.is_some());
            alike.unwrap_or_else(|| regions.number(region))
        });
        let slots: Vec<u16> = slots.collect();
        let more = (regions.left_out() - left_out) + other.summary.regions.left_out();
        if let Some(all) = Regions::from_parts(regions.all().to_vec(), left_out.saturating_add(more)) {
            *regions = all;
        }
        Moves { slots, widened: 0, pooled }
    }

    fn merge_trees(&mut self, other: &Profile, moves: &mut Moves) -> Result<(), ProfileError> {
        for kind in Kind::ALL {
            let ours = self.summary.ranges.iter().position(|ranges| ranges.kind == kind);
            let theirs = other.summary.of(kind).map(|ranges| relocated(ranges, moves));
            match (ours, theirs) {
                (Some(ours), Some(theirs)) => unite(&mut self.summary.ranges[ours], theirs)
                    .map_err(|cause| ProfileError::Trees { kind, cause })?,
                (Some(_), None) => self.lack(kind, other.totals.runs),
                (None, Some(theirs)) => {
                    self.lack(kind, self.totals.runs);
                    self.summary.ranges.push(theirs);
                }
                (None, None) => {}
            }
        }
        self.summary.ranges.sort_by_key(|ranges| ranges.kind);
        Ok(())
    }

    fn merge_analyses(&mut self, other: &Profile, moves: &Moves) {
        let runs = (self.totals.runs, other.totals.runs);
        let mut place = |at| moves.place(at);
        let lack =
            join(&mut self.starts, &other.starts, runs, |new| new.relocate(&mut place), |a, b| a.merge(b));
        self.add_loss("runs_without_starts", lack);
        let lack =
            join(&mut self.calls, &other.calls, runs, |new| new.relocate(&mut place), |a, b| a.merge(b));
        self.add_loss("runs_without_calls", lack);
        let lack =
            join(&mut self.streams, &other.streams, runs, |new| new.relocate(&mut place), |a, b| a.merge(b));
        self.add_loss("runs_without_streams", lack);
        let lack =
            join(&mut self.loops, &other.loops, runs, |new| new.relocate(&mut place), |a, b| a.merge(b));
        self.add_loss("runs_without_loops", lack);
        let lack =
            join(&mut self.values, &other.values, runs, |new| new.relocate(&mut place), |a, b| a.merge(b));
        self.add_loss("runs_without_values", lack);
        self.bound_lists();
    }

    /// A tree is that of some of the runs only.
    fn lack(&mut self, kind: Kind, runs: u64) {
        self.add_loss(&format!("runs_without_{}", kind.name()), runs);
    }

    /// Of one run the blocks are counted exactly. Of several, one that is in the list of some runs only may have been
    /// executed in the others as well.
    fn merge_blocks(&mut self, other: &Summary, moves: &Moves) {
        let moved = |block: &BlockWeight| BlockWeight { place: Place(moves.place(block.place.0)), ..*block };
        let mut blocks = std::mem::take(&mut self.summary.blocks);
        blocks.extend(other.blocks.iter().map(moved));
        blocks.sort_by_key(|block| (block.place, block.bytes));
        blocks.dedup_by(|next, first| {
            let same = (next.place, next.bytes) == (first.place, first.bytes);
            if same {
                first.weight = first.weight.saturating_add(next.weight);
            }
            same
        });
        add_up_light(&mut blocks, Summary::MOST_BLOCKS);
        self.summary.blocks = blocks;
    }
}

/// Adds what both have, theirs in our places, and returns how many of the runs lack it, if others have it.
fn join<T: Clone>(
    ours: &mut Option<T>,
    theirs: &Option<T>,
    runs: (u64, u64),
    relocate: impl FnOnce(&mut T),
    add: impl FnOnce(&mut T, &T),
) -> u64 {
    let Some(mut theirs) = theirs.clone() else { return if ours.is_some() { runs.1 } else { 0 } };
    relocate(&mut theirs);
    match ours {
        Some(ours) => {
            add(ours, &theirs);
            0
        }
        None => {
            *ours = Some(theirs);
            runs.0
        }
    }
}

/// The region that another build of the same module has here.
fn alike(regions: &Regions, region: &Region) -> Option<u16> {
    let file = |region: &Region| region.name.rsplit('/').next().map(str::to_owned);
    let named = |known: &Region| known.kind == RegionKind::Module && file(known) == file(region);
    let is_known = regions.all().iter().any(|known| known.is_same_as(region));
    if region.kind != RegionKind::Module || is_known {
        return None;
    }
    regions.all().iter().position(named).map(|slot| slot as u16)
}

fn unite(ours: &mut Ranges, theirs: Ranges) -> Result<(), MergeError> {
    ours.events = ours.events.saturating_add(theirs.events);
    match (&mut ours.tree, theirs.tree) {
        (Trees::One(a), Trees::One(b)) => *a = sum(a, &b)?,
        (Trees::Two(a), Trees::Two(b)) => *a = sum(a, &b)?,
        // Both are of the same kind, and kinds have dimensions.
        _ => return Err(MergeError::Range(0)),
    }
    Ok(())
}

fn sum<K: Key>(ours: &Snapshot<K>, theirs: &Snapshot<K>) -> Result<Snapshot<K>, MergeError> {
    let mut tree = Tree::from_snapshot(ours.clone())?;
    tree.merge(theirs)?;
    let mut sum = tree.snapshot();
    sum.nodes_max = sum.nodes_max.max(theirs.nodes_max);
    Ok(sum)
}

/// What is only added up.
fn merge_counts(ours: &mut Summary, theirs: &Summary) {
    ours.counts.add(&theirs.counts);
    ours.bursts.add(&theirs.bursts);
    ours.missing.add(&theirs.missing);
    match (&mut ours.cache, &theirs.cache) {
        (Some(ours), Some(theirs)) => ours.statistics.add(&theirs.statistics),
        (ours, theirs) => *ours = ours.or(*theirs),
    }
    ours.memory.limit = ours.memory.limit.max(theirs.memory.limit);
    ours.memory.used = ours.memory.used.max(theirs.memory.used);
}
