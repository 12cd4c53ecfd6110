//! Trees as columns of numbers, which compress well and are read in any language, and back.

use crate::error::ProfileError;
use crate::wire;
use sonde_rap::{Branching, Buffer, Config, Key, Node, Range, Snapshot};
use sonde_summary::{Kind, Ranges, Trees, Unit};

/// The most that ranges of more than one key hold along one path: what the count of any range can miss.
pub(crate) fn heaviest_path<K: Key>(tree: &Snapshot<K>) -> u64 {
    let mut path: Vec<(Range<K>, u64)> = Vec::new();
    let mut heaviest = 0;
    for node in tree.nodes.iter().filter(|node| node.range.lo != node.range.hi) {
        while path.last().is_some_and(|(above, _)| !above.contains(&node.range)) {
            path.pop();
        }
        let above = path.last().map_or(0, |&(_, sum)| sum);
        let sum = node.own.saturating_add(above);
        heaviest = heaviest.max(sum);
        path.push((node.range, sum));
    }
    heaviest
}

pub(crate) fn encode(ranges: &Ranges) -> wire::Tree {
    match &ranges.tree {
        Trees::One(tree) => encode_snapshot(ranges, tree),
        Trees::Two(tree) => encode_snapshot(ranges, tree),
    }
}

fn encode_snapshot<K: Key>(ranges: &Ranges, tree: &Snapshot<K>) -> wire::Tree {
    wire::Tree {
        kind: ranges.kind as i32 + 1,
        unit: ranges.unit as i32,
        events: ranges.events,
        weight: tree.events,
        eps: tree.config.eps,
        eps_effective: tree.eps_effective,
        nodes_max: tree.nodes_max,
        branching: tree.config.branching.factor(),
        merge_ratio: tree.config.merge_ratio,
        first_merge: tree.config.first_merge,
        max_memory: tree.config.max_memory.unwrap_or(0) as u64,
        dimensions: (0..K::DIMS).map(|dim| encode_dimension(tree, dim)).collect(),
        own: tree.nodes.iter().map(|node| node.own).collect(),
    }
}

fn encode_dimension<K: Key>(tree: &Snapshot<K>, dim: usize) -> wire::Dimension {
    let mut before = 0u64;
    let mut delta = |node: &Node<K>| {
        let start = node.range.lo.coordinate(dim) as u64;
        let delta = start.wrapping_sub(before) as i64;
        before = start;
        delta
    };
    let width = |node: &Node<K>| {
        let (lo, hi) = (node.range.lo.coordinate(dim), node.range.hi.coordinate(dim));
        u128::BITS - (lo ^ hi).leading_zeros()
    };
    wire::Dimension {
        start: tree.nodes.iter().map(&mut delta).collect(),
        width: tree.nodes.iter().map(width).collect(),
    }
}

/// The kind of a tree, if this version knows it.
pub(crate) fn kind(tree: &wire::Tree) -> Option<Kind> {
    Kind::ALL.get(usize::try_from(tree.kind).ok()?.checked_sub(1)?).copied()
}

/// The unit of weights.
pub(crate) fn unit(code: i32) -> Result<Unit, ProfileError> {
    let unit = usize::try_from(code).ok().and_then(|code| Unit::ALL.get(code).copied());
    unit.ok_or_else(|| ProfileError::damaged(format!("weights in unit {code}, which is not known")))
}

pub(crate) fn decode(kind: Kind, tree: &wire::Tree) -> Result<Ranges, ProfileError> {
    let trees = match kind.domains().len() {
        1 => Trees::One(decode_snapshot(kind, tree)?),
        _ => Trees::Two(decode_snapshot(kind, tree)?),
    };
    Ok(Ranges { kind, unit: unit(tree.unit)?, events: tree.events, tree: trees })
}

fn decode_snapshot<K: Key>(kind: Kind, tree: &wire::Tree) -> Result<Snapshot<K>, ProfileError> {
    let bad = |what: &str| ProfileError::damaged(format!("tree over {}: {what}", kind.name()));
    let nodes = tree.own.len();
    let even = |dim: &wire::Dimension| dim.start.len() == nodes && dim.width.len() == nodes;
    if tree.dimensions.len() != K::DIMS || !tree.dimensions.iter().all(even) {
        return Err(bad("its columns are of different lengths"));
    }
    let branching = Branching::try_from(tree.branching).map_err(|error| bad(&error.to_string()))?;
    let max_memory = usize::try_from(tree.max_memory).map_err(|_| bad("its memory limit is no size"))?;
    let config = Config {
        branching,
        eps: tree.eps,
        merge_ratio: tree.merge_ratio,
        first_merge: tree.first_merge,
        max_memory: Some(max_memory).filter(|bytes| *bytes > 0),
        buffer: Buffer::Auto,
    };
    Ok(Snapshot {
        config,
        events: tree.weight,
        eps_effective: tree.eps_effective,
        nodes_max: tree.nodes_max,
        nodes: decode_nodes(tree).ok_or_else(|| bad("a range reaches beyond the last key"))?,
    })
}

/// Only puts the columns together: whether the ranges are those of a tree is judged by the checker.
fn decode_nodes<K: Key>(tree: &wire::Tree) -> Option<Vec<Node<K>>> {
    let mut lo = [0u128; 2];
    let mut hi = [0u128; 2];
    let mut nodes = Vec::with_capacity(tree.own.len());
    for (index, own) in tree.own.iter().enumerate() {
        for (dim, column) in tree.dimensions.iter().enumerate() {
            let start = (lo[dim] as u64).wrapping_add(column.start[index] as u64);
            lo[dim] = start.into();
            let last = 1u128.checked_shl(column.width[index]).filter(|_| column.width[index] <= 64)? - 1;
            hi[dim] = lo[dim].checked_add(last).filter(|hi| *hi <= u64::MAX.into())?;
        }
        let range =
            Range { lo: K::from_coordinates(&lo[..K::DIMS]), hi: K::from_coordinates(&hi[..K::DIMS]) };
        nodes.push(Node { range, own: *own });
    }
    Some(nodes)
}
