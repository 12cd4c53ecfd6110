//! The guarantee on small streams that are checked in full, at every n.

use std::collections::BTreeMap;

use super::*;
use crate::code::Code;
use crate::config::{Branching, Buffer};

/// A small generator of test streams (xorshift*).
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Checks order, sums, alignment, and the bound for every aligned range around every key.
fn check<K: Key>(snapshot: &Snapshot<K>, exact: &BTreeMap<K::Code, u64>, eps: f64) {
    let events: u64 = exact.values().sum();
    assert_eq!(snapshot.events, events);
    assert_eq!(snapshot.nodes.iter().map(|node| node.own).sum::<u64>(), events);
    let order = |node: &Node<K>| (node.range.start(), std::cmp::Reverse(node.range.free_bits()));
    assert!(snapshot.nodes.is_sorted_by(|a, b| order(a) < order(b)), "preorder, no range twice");
    let branch_bits = snapshot.config.branching.bits();
    for node in &snapshot.nodes {
        let bits = node.range.free_bits();
        assert!(node.range.is_aligned() && (bits == K::BITS || bits % branch_bits == 0) && node.own > 0);
    }
    let allowed = eps * events as f64 + 1e-9;
    for bits in (0..=K::BITS).step_by(branch_bits as usize) {
        let mut truth = BTreeMap::<K::Code, u64>::new();
        exact.iter().for_each(|(code, count)| *truth.entry(code.shr(bits)).or_default() += count);
        let mut lower = BTreeMap::<K::Code, u64>::new();
        let inside = snapshot.nodes.iter().filter(|node| node.range.free_bits() <= bits);
        inside.for_each(|node| *lower.entry(node.range.start().shr(bits)).or_default() += node.own);
        for (range, &count) in &truth {
            let estimate = lower.remove(range).unwrap_or(0);
            assert!(estimate <= count, "{estimate} > {count} at {range:?}/{bits}");
            assert!(
                (count - estimate) as f64 <= allowed,
                "{count} - {estimate} > {allowed} at {range:?}/{bits}"
            );
        }
        assert!(lower.is_empty(), "counts where no event was: {lower:?}");
    }
}

fn exact_of<K: Key>(keys: &[K]) -> BTreeMap<K::Code, u64> {
    let mut exact = BTreeMap::new();
    keys.iter().for_each(|key| *exact.entry(key.encode()).or_default() += 1);
    exact
}

fn streams(len: u64) -> Vec<Vec<u64>> {
    let mut random = Random(7);
    let hot: Vec<u64> = (0..40).map(|_| random.next()).collect();
    vec![
        (0..len).map(|_| random.next()).collect(),
        (0..len).map(|_| random.below(1 << 32)).collect(),
        (0..len).map(|_| (1 << 20) / (1 + random.below(1 << 20))).collect(),
        (0..len).map(|_| hot[(random.below(40) * random.below(40) / 40) as usize]).collect(),
        (0..len).map(|i| 0x40_1000 + i / 1000 % 5 * 0x1000 + i % 23 * 4).collect(),
        (0..len).map(|i| if i % 50 == 0 { random.next() } else { 0x7fff_0000 + random.below(300) }).collect(),
        vec![u64::MAX; len as usize],
        (0..len).collect(),
        (0..len).map(|i| if i < len / 2 { random.below(1 << 12) } else { !random.below(1 << 30) }).collect(),
    ]
}

#[test]
fn bound_holds_for_every_branching_and_buffer() {
    for keys in streams(12_000) {
        let exact = exact_of(&keys);
        for branching in Branching::ALL {
            for buffer in [Buffer::Auto, Buffer::None, Buffer::Bytes(1024), Buffer::Unlimited] {
                let mut tree =
                    Tree::new(Config::new().eps(0.05).branching(branching).buffer(buffer)).unwrap();
                keys.chunks(1777).for_each(|part| tree.add_slice(part));
                let snapshot = tree.snapshot();
                check(&snapshot, &exact, 0.05);
                assert_eq!(snapshot.eps_effective, 0.05);
            }
        }
    }
}

#[test]
fn bound_holds_at_every_n() {
    for keys in streams(3_600) {
        for eps in [0.3, 0.01] {
            let mut tree = Tree::new(Config::new().eps(eps)).unwrap();
            let mut exact = BTreeMap::new();
            for (i, &key) in keys.iter().enumerate() {
                tree.add(key);
                *exact.entry(key).or_default() += 1;
                if i < 20 || i % 211 == 0 {
                    check(&tree.snapshot(), &exact, eps);
                }
            }
        }
    }
}

#[test]
fn bound_holds_for_weights() {
    let mut random = Random(3);
    let mut tree = Tree::<u64>::new(Config::new()).unwrap();
    let mut exact = BTreeMap::new();
    for i in 0..8_000 {
        let (key, weight) = (random.below(1 << 40) >> random.below(40), 1 << random.below(30));
        tree.add_weighted(key, weight);
        *exact.entry(key).or_default() += weight;
        if i % 1999 == 0 {
            check(&tree.snapshot(), &exact, 0.01);
        }
    }
    check(&tree.snapshot(), &exact, 0.01);
}

#[test]
fn huge_weights_do_not_overflow_slots() {
    let mut tree = Tree::<u64>::new(Config::new()).unwrap();
    let mut exact = BTreeMap::new();
    let mut random = Random(5);
    for i in 0..3_000u64 {
        let (key, weight) = (random.below(1 << 20), (1 << 40) + random.below(1 << 45));
        tree.add_weighted(key, weight);
        tree.add_slice(&[key; 300]);
        *exact.entry(key).or_default() += weight + 300;
        if i % 500 == 0 {
            check(&tree.snapshot(), &exact, 0.01);
        }
    }
    check(&tree.snapshot(), &exact, 0.01);
    tree.add_weighted(1, u64::MAX);
    tree.add_weighted(1, u64::MAX);
    assert_eq!(tree.events(), u64::MAX);
}

#[test]
fn other_keys_hold_the_bound() {
    let mut random = Random(11);
    let mut pairs = |len: usize| -> Vec<(u64, u64)> {
        (0..len).map(|_| (random.below(1 << 20) >> random.below(20), 0x7f00 + random.below(9) * 8)).collect()
    };
    fn run<K: Key>(keys: Vec<K>, branching: Branching) {
        let mut tree = Tree::new(Config::new().eps(0.05).branching(branching)).unwrap();
        tree.add_slice(&keys);
        check(&tree.snapshot(), &exact_of(&keys), 0.05);
    }
    let pairs = pairs(6_000);
    for branching in Branching::ALL {
        run(pairs.iter().map(|&(a, b)| [a, b]).collect(), branching);
        run(pairs.iter().map(|&(a, b)| [a as u32, b as u32]).collect(), branching);
        run(pairs.iter().map(|&(a, b)| [a as u32, b as u32, 5]).collect(), branching);
        run(pairs.iter().map(|&(a, b)| [a, b, a]).collect(), branching);
        run(pairs.iter().map(|&(a, b)| [a, b, a, !b]).collect(), branching);
        run(pairs.iter().map(|&(a, b)| u128::from(a) << 77 | u128::from(b)).collect(), branching);
        run(pairs.iter().map(|&(a, b)| a as u32 ^ (b as u32) << 12).collect(), branching);
    }
}

#[test]
fn scattered_keys_keep_the_node_bound() {
    let mut random = Random(1);
    let keys: Vec<u64> = (0..1400).map(|_| random.next()).collect();
    let stream: Vec<u64> = (0..400_000).map(|_| keys[random.below(1400) as usize]).collect();
    let mut tree = Tree::new(Config::new()).unwrap();
    tree.add_slice(&stream);
    let snapshot = tree.snapshot();
    check(&snapshot, &exact_of(&stream), 0.01);
    assert!(snapshot.nodes_max <= 12_800, "{}", snapshot.nodes_max);
    assert!(tree.core.arena.used() <= 3 * 1400, "{} lines", tree.core.arena.used());
}

/// Batches let the tree grow by up to `q` = 2 before it is merged again.
#[test]
fn node_bound_holds() {
    for keys in streams(100_000) {
        for branching in Branching::ALL {
            let mut tree = Tree::new(Config::new().branching(branching)).unwrap();
            tree.add_slice(&keys);
            let bound = 2.0 * f64::from(branching.factor() * branching.levels(64)) / 0.01;
            let nodes_max = tree.nodes_max() as f64;
            assert!(nodes_max <= bound, "{nodes_max} > {bound} at b = {branching}");
            if branching == Branching::Four {
                assert!(nodes_max <= 12_800.0, "{nodes_max}");
            }
        }
    }
}

#[test]
fn memory_limit_is_kept_and_told() {
    for keys in streams(30_000) {
        let exact = exact_of(&keys);
        for limit in [4 << 10, 16 << 10, 64 << 10, 300 << 10] {
            let mut tree = Tree::new(Config::new().eps(1e-4).max_memory(limit)).unwrap();
            for part in keys.chunks(5000) {
                tree.add_slice(part);
                assert!(tree.memory_bytes() <= limit, "{} > {limit}", tree.memory_bytes());
            }
            let snapshot = tree.snapshot();
            assert!(tree.memory_bytes() <= limit, "{} > {limit}", tree.memory_bytes());
            check(&snapshot, &exact, snapshot.eps_effective);
        }
    }
}

#[test]
fn memory_limit_is_kept_when_snapshots_are_merged() {
    let keys = streams(20_000).swap_remove(0);
    let mut large = Tree::new(Config::new().eps(0.001)).unwrap();
    large.add_slice(&keys);
    let mut other = Tree::new(Config::new().eps(0.001).branching(Branching::Sixteen)).unwrap();
    other.add_slice(&keys);
    for limit in [8 << 10, 300 << 10] {
        let mut small = Tree::new(Config::new().max_memory(limit)).unwrap();
        small.merge(&large.snapshot()).unwrap();
        assert!(small.memory_bytes() <= limit, "{} > {limit}", small.memory_bytes());
        small.merge(&other.snapshot()).unwrap();
        assert!(small.memory_bytes() <= limit, "{} > {limit}", small.memory_bytes());
        let both: Vec<u64> = [&keys[..], &keys[..]].concat();
        let snapshot = small.snapshot();
        check(&snapshot, &exact_of(&both), snapshot.eps_effective);
    }
}

#[test]
fn snapshots_restore_and_merge() {
    for branching in Branching::ALL {
        let config = Config::new().eps(0.05).branching(branching);
        let streams = streams(8_000);
        for pair in streams.windows(2) {
            let mut first = Tree::new(config.clone()).unwrap();
            first.add_slice(&pair[0]);
            let mut second = Tree::new(config.clone()).unwrap();
            second.add_slice(&pair[1]);
            let mut restored = Tree::from_snapshot(first.snapshot()).unwrap();
            check(&restored.snapshot(), &exact_of(&pair[0]), 0.05);
            restored.merge(&second.snapshot()).unwrap();
            let mut all = pair.concat();
            check(&restored.snapshot(), &exact_of(&all), 0.05);
            restored.add_slice(&pair[0]);
            all.extend_from_slice(&pair[0]);
            check(&restored.snapshot(), &exact_of(&all), 0.05);
        }
    }
}

#[test]
fn bad_snapshots_are_refused() {
    let mut tree = Tree::<u64>::new(Config::new()).unwrap();
    tree.add(5);
    let good = tree.snapshot();
    let mut bad = good.clone();
    bad.events = 2;
    assert_eq!(tree.merge(&bad), Err(MergeError::Events));
    let mut bad = good.clone();
    bad.nodes[0].range = Range { lo: 1, hi: 2 };
    assert_eq!(tree.merge(&bad), Err(MergeError::Range(0)));
    let mut bad = good.clone();
    bad.nodes[0].range = Range { lo: 0, hi: 1 };
    assert_eq!(tree.merge(&bad), Err(MergeError::Range(0)), "halves are no ranges at b = 4");
    let mut bad = good;
    bad.config.eps = 2.0;
    assert!(matches!(Tree::from_snapshot(bad), Err(MergeError::Config(_))));
    assert_eq!(tree.events(), 1);
}

#[test]
fn empty_trees_have_empty_snapshots() {
    let mut tree = Tree::<u64>::new(Config::new()).unwrap();
    tree.add_slice(&[]);
    tree.add_weighted(9, 0);
    let snapshot = tree.snapshot();
    assert_eq!((snapshot.events, snapshot.nodes.len(), snapshot.eps_effective), (0, 0, 0.01));
    assert_eq!(Tree::from_snapshot(snapshot).unwrap().events(), 0);
}

#[test]
fn the_node_count_is_a_saw_tooth() {
    let mut tree = Tree::new(Config::new()).unwrap();
    tree.add_slice(&streams(300_000)[2]);
    tree.finish();
    let stats = tree.stats();
    assert_eq!(stats.samples.len() as u64, 2 * stats.merge_batches);
    assert!(stats.merge_batches >= 8 && stats.splits > 0 && stats.merges > 0);
    assert!(stats.samples.chunks(2).all(|pair| pair[1].nodes <= pair[0].nodes));
}

#[test]
fn weighted_slices_keep_the_bound() {
    for keys in streams(8_000) {
        let mut tree = Tree::<u64>::new(Config::new().eps(0.02)).unwrap();
        let mut exact = BTreeMap::new();
        for (burst, keys) in keys.chunks(300).enumerate() {
            let weight = [1_000_000, 0, 1, 7, 40_000_000][burst % 5];
            let entries: Vec<(u64, u64)> = keys.iter().map(|key| (*key, weight)).collect();
            tree.add_weighted_slice(&entries);
            keys.iter().for_each(|key| *exact.entry(key.encode()).or_default() += weight);
        }
        exact.retain(|_, weight| *weight > 0);
        check(&tree.snapshot(), &exact, 0.02);
    }
}
