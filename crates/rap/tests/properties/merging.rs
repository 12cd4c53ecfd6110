//! Trees built apart and put together: in any order, in any tree, the error stays `eps * (n1 + n2)`.

use crate::streams::{SHAPES, Shape, key, stream, weights};
use crate::subject::{Subject, assert_within_bounds, count, for_all, worst_miss};
use proptest::prelude::*;
use sonde_rap::textbook::TextbookTree;
use sonde_rap::{Branching, Config, Key, MergeError, Node, Range, Tree};

fn part<K: Key>(shape: Shape, len: usize, seed: u64) -> Vec<(K, u64)> {
    stream(shape, len, seed).into_iter().map(key).zip(weights(len, seed)).collect()
}

fn tree_of<K: Key, S: Subject<K>>(config: &Config, events: &[(K, u64)]) -> S {
    let mut tree = S::start(config.clone());
    events.iter().for_each(|&(key, weight)| tree.push(key, weight));
    tree
}

/// All orders of putting three parts together, then going on counting.
fn any_order<K: Key, S: Subject<K>>(config: &Config, shapes: [Shape; 3], lens: [usize; 3], seed: u64) {
    let parts: Vec<Vec<(K, u64)>> = (0..3).map(|i| part(shapes[i], lens[i], seed + i as u64)).collect();
    let all: Vec<(K, u64)> = parts.concat();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut tree = tree_of::<K, S>(config, &parts[order[0]]);
        for &other in &order[1..] {
            tree.take_in(&tree_of::<K, S>(config, &parts[other]).summary());
        }
        let together = tree.summary();
        assert_eq!(together.eps_effective, config.eps, "{}: equal parameters lose nothing", S::NAME);
        assert_within_bounds(S::NAME, &together, &count(&all));
        parts[0].iter().for_each(|&(key, weight)| tree.push(key, weight));
        let more: Vec<(K, u64)> = [all.as_slice(), &parts[0]].concat();
        assert_within_bounds(S::NAME, &tree.summary(), &count(&more));
    }
}

proptest! {
    #![proptest_config(crate::streams::cases(12))]

    #[test]
    fn parts_in_any_order_keep_the_bound(
        eps in 0.002..0.4,
        branching in 0usize..4,
        shapes in prop::array::uniform3(0..SHAPES.len()),
        lens in prop::array::uniform3(1usize..1500),
        seed: u32,
    ) {
        let config = Config::new().eps(eps).branching(Branching::ALL[branching]).first_merge(64);
        for_all!(any_order(&config, shapes.map(|index| SHAPES[index]), lens, u64::from(seed)));
    }

    #[test]
    fn trees_with_other_parameters_are_taken_in_truthfully(
        eps in prop::array::uniform2(0.002..0.4),
        branching in prop::array::uniform2(0usize..4),
        shape in 0..SHAPES.len(),
        seed: u32,
    ) {
        let config = |i: usize| Config::new().eps(eps[i]).branching(Branching::ALL[branching[i]]);
        for_all!(other_parameters(&[config(0), config(1)], SHAPES[shape], u64::from(seed)));
    }
}

fn other_parameters<K: Key, S: Subject<K>>(configs: &[Config; 2], shape: Shape, seed: u64) {
    let parts: [Vec<(K, u64)>; 2] = [part(shape, 1000, seed), part(Shape::Zipf, 700, seed + 1)];
    let mut tree = tree_of::<K, S>(&configs[0], &parts[0]);
    tree.take_in(&tree_of::<K, S>(&configs[1], &parts[1]).summary());
    let together = tree.summary();
    let miss = worst_miss(&together, &count(&parts.concat()));
    assert!(
        miss <= together.eps_effective * (1.0 + 1e-9),
        "{}: {miss} > {}",
        S::NAME,
        together.eps_effective
    );
}

fn nothing_changes_nothing<K: Key, S: Subject<K>>() {
    let events: Vec<(K, u64)> = part(Shape::Value, 2000, 5);
    let mut tree = tree_of::<K, S>(&Config::new(), &events);
    tree.take_in(&S::start(Config::new()).summary());
    assert_within_bounds(S::NAME, &tree.summary(), &count(&events));
    let mut empty = S::start(Config::new());
    empty.take_in(&tree.summary());
    assert_within_bounds(S::NAME, &empty.summary(), &count(&events));
}

#[test]
fn an_empty_tree_changes_nothing() {
    for_all!(nothing_changes_nothing());
}

#[test]
fn a_tree_goes_on_from_its_snapshot() {
    let events: Vec<(u64, u64)> = part(Shape::Pc, 30_000, 5);
    let mut tree = tree_of::<u64, Tree<u64>>(&Config::new(), &events);
    let mut next = Tree::from_snapshot(tree.snapshot()).unwrap();
    assert_eq!(next.events(), tree.events());
    events.iter().for_each(|&(key, weight)| next.push(key, weight));
    let twice = [events.as_slice(), &events].concat();
    assert_within_bounds("resumed", &next.summary(), &count(&twice));
}

#[test]
fn what_is_no_tree_is_refused_and_leaves_the_tree_as_it_was() {
    let mut good = TextbookTree::<u64>::new(Config::new()).unwrap();
    good.add_slice(&[1, 2, 3]);
    let good = good.snapshot();
    let broken = |change: &dyn Fn(&mut sonde_rap::Snapshot<u64>)| {
        let mut snapshot = good.clone();
        change(&mut snapshot);
        snapshot
    };
    let cases = [
        (broken(&|s| s.nodes[1].range = Range { lo: 5, hi: 6 }), MergeError::Range(1)),
        (broken(&|s| s.nodes[1].own = 0), MergeError::Range(1)),
        (broken(&|s| s.nodes.swap(0, 1)), MergeError::Range(1)),
        (broken(&|s| s.events = 4), MergeError::Events),
        (
            broken(&|s| s.nodes.push(Node { range: Range { lo: 9, hi: 9 }, own: u64::MAX })),
            MergeError::Events,
        ),
    ];
    for (snapshot, error) in cases {
        let mut tree = Tree::<u64>::new(Config::new()).unwrap();
        tree.add(7);
        assert_eq!(tree.merge(&snapshot), Err(error.clone()));
        assert_eq!(tree.events(), 1);
        assert_eq!(Tree::from_snapshot(snapshot.clone()).err(), Some(error.clone()));
        let mut plain = TextbookTree::<u64>::new(Config::new()).unwrap();
        assert_eq!(plain.merge(&snapshot), Err(error));
    }
}
