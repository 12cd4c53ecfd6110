//! The fast analysis against the definitions, on random graphs.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that can be reached from the roots without passing `without`.
fn reached(graph: &Rows, roots: &[u32], without: u32) -> BTreeSet<u32> {
    let mut work: Vec<u32> = roots.iter().copied().filter(|r| *r != without).collect();
    let mut seen: BTreeSet<u32> = work.iter().copied().collect();
    while let Some(node) = work.pop() {
        for to in graph.of(node) {
            if *to != without && seen.insert(*to) {
                work.push(*to);
            }
        }
    }
    seen
}

/// Bodies by header, from the definitions: an edge whose target dominates its source is a back-edge; the loop is the
/// target and what reaches the source without passing it.
fn by_definition(graph: &Rows, roots: &[u32]) -> BTreeMap<u32, BTreeSet<u32>> {
    let all = reached(graph, roots, NONE);
    let backwards = graph.reversed();
    let mut loops: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (a, b) in graph.edges().filter(|(a, _)| all.contains(a)) {
        if a != b && reached(graph, roots, b).contains(&a) {
            continue;
        }
        let body = loops.entry(b).or_insert_with(|| BTreeSet::from([b]));
        let mut work = vec![a];
        while let Some(node) = work.pop() {
            if all.contains(&node) && body.insert(node) {
                work.extend(backwards.of(node));
            }
        }
    }
    loops
}

fn graph(nodes: usize, edges: &[(u32, u32)]) -> Rows {
    Rows::new(nodes, &mut edges.to_vec())
}

#[test]
fn nested_loops_and_a_side_entry() {
    // 0 -> 1 { 2 { 3 } 4 } 5, and 6 <-> 7 entered at both.
    let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1), (1, 5), (5, 6), (5, 7), (6, 7), (7, 6)];
    let forest = natural_loops(&graph(8, &edges), &[0], &[]);
    let loops: Vec<(u32, u32, u32)> = forest.loops.iter().map(|l| (l.header, l.parent, l.depth)).collect();
    assert_eq!(loops, [(1, NONE, 1), (2, 0, 2)]);
    assert_eq!(forest.irregular.len(), 1);
    assert_eq!(forest.nest(3), Some(vec![1, 2]));
    assert_eq!(forest.nest(8), None);
    assert!(forest.holds(0, 3) && forest.holds(1, 3) && !forest.holds(1, 4) && !forest.holds(0, 5));
}

#[test]
fn a_guess_is_a_root_only_where_nothing_else_leads() {
    let edges = [(0, 1), (1, 0), (2, 3), (3, 2)];
    let forest = natural_loops(&graph(4, &edges), &[0], &[1, 3, 2]);
    let headers: BTreeSet<u32> = forest.loops.iter().map(|l| l.header).collect();
    assert_eq!(headers, BTreeSet::from([0, 3]));
    assert_eq!(forest.certain, [true, true, false, false]);
}

proptest! {
    #[test]
    fn loops_are_those_of_the_definition(
        edges in prop::collection::vec((0u32..14, 0u32..14), 0..40),
        roots in prop::collection::btree_set(0u32..14, 1..3),
    ) {
        let graph = graph(14, &edges);
        let roots: Vec<u32> = roots.into_iter().collect();
        let forest = natural_loops(&graph, &roots, &[]);
        let expected = by_definition(&graph, &roots);
        let got: BTreeMap<u32, BTreeSet<u32>> = forest
            .loops
            .iter()
            .enumerate()
            .map(|(i, l)| (l.header, (0..14).filter(|n| forest.holds(i as u32, *n)).collect()))
            .collect();
        prop_assert_eq!(&got, &expected);
        for (i, l) in forest.loops.iter().enumerate() {
            prop_assert_eq!(forest.headed[l.header as usize], i as u32);
            prop_assert!(l.latches.iter().all(|n| graph.has(*n, l.header)));
            if l.parent != NONE {
                let outer = &expected[&forest.loops[l.parent as usize].header];
                prop_assert!(expected[&l.header].is_subset(outer));
            }
        }
    }
}
