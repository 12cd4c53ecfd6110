//! Calls as columns.

use super::MOST_CALLS;
use super::columns::{add_up, differences, even, sums};
use crate::error::ProfileError;
use crate::wire;
use sonde_calls::{Backward, CallProfile, Context, Invoked, NotKept, Pair, Region};
use std::cmp::Reverse;

/// Number of the context that stands for those that were not kept.
const ELSEWHERE: usize = sonde_calls::ELSEWHERE as usize;

pub(crate) fn encode(calls: &CallProfile) -> wire::Calls {
    wire::Calls {
        instructions: calls.instructions,
        weight: calls.weight,
        bursts: calls.bursts,
        calls: calls.calls,
        tail_calls: calls.tail_calls,
        returns: calls.returns,
        returns_beyond: calls.returns_beyond,
        returns_unmatched: calls.returns_unmatched,
        unwound: calls.unwound,
        split_bursts: calls.split_bursts,
        gaps: calls.gaps,
        contexts_not_kept: calls.not_kept.contexts,
        pairs_not_kept: calls.not_kept.pairs,
        functions_not_kept: calls.not_kept.functions,
        regions: Some(wire::Counted {
            instructions: calls.regions.iter().map(|r| r.instructions).collect(),
            ..counted(calls.regions.iter().map(|r| (r.branch, r.count, r.weight)))
        }),
        backward: Some(counted(calls.backward.iter().map(|b| (b.branch, b.count, b.weight)))),
        functions: Some(counted(calls.functions.iter().map(|f| (f.entry, f.count, f.weight)))),
        pairs: Some(wire::Counted {
            callee: calls.pairs.iter().map(|p| p.callee).collect(),
            ..counted(calls.pairs.iter().map(|p| (p.site, p.count, p.weight)))
        }),
        contexts: Some(contexts(&calls.contexts)),
    }
}

fn counted(entries: impl Iterator<Item = (u64, u64, u64)> + Clone) -> wire::Counted {
    wire::Counted {
        place: differences(entries.clone().map(|entry| entry.0)),
        count: entries.clone().map(|entry| entry.1).collect(),
        weight: entries.map(|entry| entry.2).collect(),
        ..wire::Counted::default()
    }
}

fn contexts(contexts: &[Context]) -> wire::Contexts {
    let column = |of: fn(&Context) -> u64| contexts.iter().map(of).collect();
    wire::Contexts {
        parent: contexts.iter().map(|c| c.parent).collect(),
        function: column(|c| c.function),
        around: contexts.iter().map(|c| c.around).collect(),
        calls: column(|c| c.calls),
        calls_weight: column(|c| c.calls_weight),
        instructions: column(|c| c.instructions),
        weight: column(|c| c.weight),
        rest: if contexts.iter().any(|c| c.rest > 0) { column(|c| c.rest) } else { Vec::new() },
    }
}

pub(crate) fn decode(calls: wire::Calls) -> Result<CallProfile, ProfileError> {
    let (regions, backward) = (calls.regions.unwrap_or_default(), calls.backward.unwrap_or_default());
    let (functions, pairs) = (calls.functions.unwrap_or_default(), calls.pairs.unwrap_or_default());
    even("calls", &[regions.place.len(), regions.instructions.len()])?;
    even("calls", &[pairs.place.len(), pairs.callee.len()])?;
    let region = |((branch, count, weight), instructions): ((u64, u64, u64), &u64)| Region {
        branch,
        count,
        instructions: *instructions,
        weight,
    };
    let pair = |((site, count, weight), callee): ((u64, u64, u64), &u64)| Pair {
        site,
        callee: *callee,
        count,
        weight,
    };
    Ok(CallProfile {
        instructions: calls.instructions,
        weight: calls.weight,
        bursts: calls.bursts,
        calls: calls.calls,
        tail_calls: calls.tail_calls,
        returns: calls.returns,
        returns_beyond: calls.returns_beyond,
        returns_unmatched: calls.returns_unmatched,
        unwound: calls.unwound,
        split_bursts: calls.split_bursts,
        gaps: calls.gaps,
        regions: entries(&regions)?.zip(&regions.instructions).map(region).collect(),
        backward: entries(&backward)?
            .map(|(branch, count, weight)| Backward { branch, count, weight })
            .collect(),
        functions: entries(&functions)?
            .map(|(entry, count, weight)| Invoked { entry, count, weight })
            .collect(),
        pairs: entries(&pairs)?.zip(&pairs.callee).map(pair).collect(),
        contexts: decode_contexts(&calls.contexts.unwrap_or_default())?,
        not_kept: NotKept {
            contexts: calls.contexts_not_kept,
            pairs: calls.pairs_not_kept,
            functions: calls.functions_not_kept,
        },
    })
}

fn entries(list: &wire::Counted) -> Result<impl Iterator<Item = (u64, u64, u64)> + '_, ProfileError> {
    even("calls", &[list.place.len(), list.count.len(), list.weight.len()])?;
    let rest = list.count.iter().zip(&list.weight);
    Ok(sums(&list.place).zip(rest).map(|(place, (count, weight))| (place, *count, *weight)))
}

fn decode_contexts(list: &wire::Contexts) -> Result<Vec<Context>, ProfileError> {
    let lengths = [
        list.parent.len(),
        list.function.len(),
        list.around.len(),
        list.calls.len(),
        list.calls_weight.len(),
        list.instructions.len(),
        list.weight.len(),
    ];
    even("contexts", &lengths)?;
    if !list.rest.is_empty() {
        even("contexts", &[list.parent.len(), list.rest.len()])?;
    }
    let context = |i: usize| Context {
        parent: list.parent[i],
        function: list.function[i],
        around: list.around[i],
        calls: list.calls[i],
        calls_weight: list.calls_weight[i],
        instructions: list.instructions[i],
        weight: list.weight[i],
        // Older profiles have one context that stands for the rest.
        rest: list.rest.get(i).copied().unwrap_or(0),
    };
    Ok((0..list.parent.len()).map(context).collect())
}

/// What the crate of calls relies on.
pub(super) fn within_bounds(calls: &CallProfile) -> Result<(), String> {
    let lengths = [calls.regions.len(), calls.backward.len(), calls.functions.len(), calls.pairs.len()];
    if lengths.iter().chain([&calls.contexts.len()]).any(|length| *length > MOST_CALLS) {
        return Err("a list is too long".into());
    }
    if calls.contexts.len() == 1 || calls.contexts.iter().take(2).any(|context| context.parent > 0) {
        return Err("the first contexts are missing".into());
    }
    let totals = [
        calls.bursts,
        calls.returns,
        calls.returns_beyond,
        calls.returns_unmatched,
        calls.unwound,
        calls.split_bursts,
        calls.gaps,
        calls.calls,
        calls.instructions,
        calls.weight,
    ];
    totals.into_iter().try_for_each(|total| add_up([total]))?;
    add_up(calls.regions.iter().map(|r| r.count))?;
    add_up(calls.regions.iter().map(|r| r.instructions))?;
    add_up(calls.regions.iter().map(|r| r.weight))?;
    add_up(calls.backward.iter().map(|b| b.count))?;
    add_up(calls.backward.iter().map(|b| b.weight))?;
    add_up(calls.functions.iter().map(|f| f.count).chain([calls.not_kept.functions]))?;
    add_up(calls.functions.iter().map(|f| f.weight))?;
    add_up(calls.pairs.iter().map(|p| p.count).chain([calls.not_kept.pairs]))?;
    add_up(calls.pairs.iter().map(|p| p.weight))?;
    add_up(calls.contexts.iter().map(|c| c.calls).chain([calls.not_kept.contexts]))?;
    add_up(calls.contexts.iter().map(|c| c.calls_weight))?;
    add_up(calls.contexts.iter().map(|c| c.instructions))?;
    add_up(calls.contexts.iter().map(|c| c.weight))
}

/// Keeps the heaviest entries of each list; what goes is counted as not kept. Returns how many regions and branches went.
pub(crate) fn bound(calls: &mut CallProfile, most: usize) -> u64 {
    let regions = heaviest(&mut calls.regions, most, |r| r.weight, |r| r.branch);
    let backward = heaviest(&mut calls.backward, most, |b| b.weight, |b| b.branch);
    let functions = heaviest(&mut calls.functions, most, |f| f.weight, |f| f.entry);
    calls.not_kept.functions += functions.iter().map(|f| f.count).sum::<u64>();
    let pairs = heaviest(&mut calls.pairs, most, |p| p.weight, |p| (p.site, p.callee));
    calls.not_kept.pairs += pairs.iter().map(|p| p.count).sum::<u64>();
    calls.keep_contexts(most.max(ELSEWHERE + 1));
    (regions.len() + backward.len()) as u64
}

/// Leaves the heaviest, in order, and returns the others.
fn heaviest<T: Copy, K: Ord>(
    all: &mut Vec<T>,
    most: usize,
    weight: fn(&T) -> u64,
    key: fn(&T) -> K,
) -> Vec<T> {
    if all.len() <= most {
        return Vec::new();
    }
    all.sort_by_key(|entry| (Reverse(weight(entry)), key(entry)));
    let gone = all.split_off(most);
    all.sort_by_key(key);
    gone
}
