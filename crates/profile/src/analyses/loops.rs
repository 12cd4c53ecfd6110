//! Loops, one part of the file each.

use super::MOST_LOOPS;
use super::columns::add_up;
use crate::error::ProfileError;
use crate::wire;
use sonde_loops::{BUCKETS, Cut, Doubts, LoopStats, LoopsProfile, Rounds, Seen, Spread};

pub(crate) fn encode_head(loops: &LoopsProfile) -> wire::Loops {
    let (irregular, doubts) = (&loops.irregular, &loops.doubts);
    wire::Loops {
        instructions: loops.instructions,
        bursts: loops.bursts,
        weight: loops.weight,
        irregular_regions: irregular.regions,
        irregular_executions: irregular.executions,
        irregular_passes: irregular.passes,
        gaps: doubts.gaps,
        unwound: doubts.unwound,
        lost: doubts.lost,
        unplaced: doubts.unplaced,
        overflows: doubts.overflows,
        beyond_blocks: doubts.beyond_blocks,
        beyond_threads: doubts.beyond_threads,
        replaced: doubts.replaced,
    }
}

pub(crate) fn encode_one(l: &LoopStats) -> wire::Loop {
    let filled = l.whole.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    wire::Loop {
        header: l.header,
        function: l.function,
        parent: l.parent,
        depth: l.depth,
        latches: l.latches.clone(),
        low: l.low,
        extent: l.extent,
        body: l.body,
        guessed: l.guessed,
        executions: l.whole.executions,
        iterations: l.whole.iterations,
        least: l.whole.least,
        most: l.whole.most,
        buckets: l.whole.buckets[..filled].to_vec(),
        passes: l.passes,
        single: l.single,
        cut_starts: l.cut.starts,
        cut_ends: l.cut.ends,
        cut_passes: l.cut.passes,
        own: l.own,
        inclusive: l.inclusive,
        own_weight: l.own_weight,
        inclusive_weight: l.inclusive_weight,
        seen_bursts: l.seen.bursts,
        seen_passes: l.seen.passes,
        seen_ends: l.seen.ends,
        passes_squared: l.seen.passes_squared,
        products: l.seen.products,
        ends_squared: l.seen.ends_squared,
        tests_first: l.tests_first,
    }
}

pub(crate) fn decode_head(loops: &wire::Loops) -> LoopsProfile {
    LoopsProfile {
        loops: Vec::new(),
        irregular: Rounds {
            regions: loops.irregular_regions,
            executions: loops.irregular_executions,
            passes: loops.irregular_passes,
        },
        instructions: loops.instructions,
        bursts: loops.bursts,
        weight: loops.weight,
        doubts: Doubts {
            gaps: loops.gaps,
            unwound: loops.unwound,
            lost: loops.lost,
            unplaced: loops.unplaced,
            overflows: loops.overflows,
            beyond_blocks: loops.beyond_blocks,
            beyond_threads: loops.beyond_threads,
            replaced: loops.replaced,
        },
    }
}

pub(crate) fn decode_one(l: wire::Loop) -> Result<LoopStats, ProfileError> {
    let mut buckets = [0; BUCKETS];
    let room = buckets.get_mut(..l.buckets.len());
    room.ok_or_else(|| ProfileError::damaged("a loop has too many buckets"))?.copy_from_slice(&l.buckets);
    Ok(LoopStats {
        header: l.header,
        function: l.function,
        parent: l.parent,
        depth: l.depth,
        latches: l.latches,
        low: l.low,
        extent: l.extent,
        body: l.body,
        guessed: l.guessed,
        whole: Spread {
            executions: l.executions,
            iterations: l.iterations,
            least: l.least,
            most: l.most,
            buckets,
        },
        passes: l.passes,
        single: l.single,
        cut: Cut { starts: l.cut_starts, ends: l.cut_ends, passes: l.cut_passes },
        seen: Seen {
            bursts: l.seen_bursts,
            passes: l.seen_passes,
            ends: l.seen_ends,
            passes_squared: l.passes_squared,
            products: l.products,
            ends_squared: l.ends_squared,
        },
        tests_first: l.tests_first,
        own: l.own,
        inclusive: l.inclusive,
        own_weight: l.own_weight,
        inclusive_weight: l.inclusive_weight,
    })
}

/// What the crate of loops relies on.
pub(super) fn within_bounds(loops: &LoopsProfile) -> Result<(), String> {
    if loops.loops.len() > MOST_LOOPS {
        return Err("there are too many".into());
    }
    let squares = |l: &LoopStats| [l.seen.passes_squared, l.seen.products, l.seen.ends_squared];
    let weights =
        loops.loops.iter().flat_map(|l| [l.own_weight, l.inclusive_weight].into_iter().chain(squares(l)));
    if !weights.chain([loops.weight]).all(|weight| weight.is_finite() && weight >= 0.0) {
        return Err("a weight is no number".into());
    }
    let doubts = &loops.doubts;
    let totals = [
        loops.instructions,
        loops.bursts,
        loops.irregular.executions,
        loops.irregular.passes,
        doubts.gaps,
        doubts.unwound,
        doubts.lost,
        doubts.unplaced,
        doubts.overflows,
        doubts.beyond_blocks,
        doubts.beyond_threads,
        doubts.replaced,
    ];
    totals.into_iter().try_for_each(|total| add_up([total]))?;
    add_up(loops.loops.iter().map(|l| l.own))?;
    for l in &loops.loops {
        let (whole, cut) = (&l.whole, &l.cut);
        let counts = [whole.executions, whole.iterations, l.passes, l.single, l.inclusive];
        counts.into_iter().chain([cut.starts, cut.ends, cut.passes]).try_for_each(|count| add_up([count]))?;
        [l.seen.bursts, l.seen.passes, l.seen.ends].into_iter().try_for_each(|count| add_up([count]))?;
        add_up(whole.buckets)?;
        l.low.checked_add(l.extent).ok_or("a body reaches beyond the last place")?;
    }
    Ok(())
}

/// Keeps the loops with the most own weight, and returns how many went.
pub(crate) fn bound(loops: &mut LoopsProfile, most: usize) -> u64 {
    let gone = loops.loops.len().saturating_sub(most);
    if gone > 0 {
        loops.loops.sort_by(|a, b| b.own_weight.total_cmp(&a.own_weight).then(a.header.cmp(&b.header)));
        loops.loops.truncate(most);
        loops.loops.sort_by_key(|l| l.header);
    }
    gone as u64
}
