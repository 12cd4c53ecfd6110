//! A hard memory limit: it is kept at every moment, and the error that it costs is told.

use crate::streams::{SHAPES, Shape, key, stream};
use crate::subject::{Subject, count, for_all, worst_miss};
use proptest::prelude::*;
use sonde_rap::{Config, Key};

fn kept_and_told<K: Key, S: Subject<K>>(config: &Config, shape: Shape, len: usize, seed: u64) {
    let limit = config.max_memory.expect("a limit is what is tested");
    let events: Vec<(K, u64)> = stream(shape, len, seed).into_iter().map(|number| (key(number), 1)).collect();
    let mut tree = S::start(config.clone());
    for (index, &(key, weight)) in events.iter().enumerate() {
        tree.push(key, weight);
        assert!(
            tree.bytes() <= limit,
            "{}: {} bytes, limit {limit}, n = {}",
            S::NAME,
            tree.bytes(),
            index + 1
        );
        if (index + 1) % 700 == 0 || index + 1 == len {
            let summary = tree.summary();
            assert!(tree.bytes() <= limit, "{}: {} bytes after a query", S::NAME, tree.bytes());
            let told = summary.eps_effective;
            assert!(told >= config.eps);
            let miss = worst_miss(&summary, &count(&events[..=index]));
            assert!(miss <= told * (1.0 + 1e-9), "{}: misses {miss}, tells {told}", S::NAME);
        }
    }
}

proptest! {
    #![proptest_config(crate::streams::cases(16))]

    #[test]
    fn the_limit_is_kept_and_the_error_is_told(
        limit in 4096usize..40_000,
        eps in 0.001..0.1,
        shape in 0..SHAPES.len(),
        len in 1usize..5000,
        seed: u64,
    ) {
        let config = Config::new().eps(eps).max_memory(limit);
        for_all!(kept_and_told(&config, SHAPES[shape], len, seed));
    }
}

fn costs<S: Subject<u64>>() {
    let keys = stream(Shape::Random, 50_000, 9);
    let run = |config: Config| {
        let mut tree = S::start(config);
        tree.push_all(&keys);
        tree.summary().eps_effective
    };
    let fine = Config::new().eps(0.001);
    assert_eq!(run(fine.clone()), 0.001);
    assert_eq!(
        run(fine.clone().max_memory(64 << 20)),
        0.001,
        "{}: a limit that never binds costs nothing",
        S::NAME
    );
    let tight = run(fine.max_memory(8 << 10));
    assert!(tight > 0.001 && tight <= 1.0, "{}: {tight}", S::NAME);
}

#[test]
fn only_a_limit_that_binds_costs_precision() {
    costs::<sonde_rap::Tree<u64>>();
    costs::<sonde_rap::textbook::TextbookTree<u64>>();
}

/// Around the sizes from which on a tree has its top and its automatic front, which take most of what there is.
fn kept_with_a_front<K: Key>() {
    let keys: Vec<K> = stream(Shape::Random, 60_000, 4).into_iter().map(key).collect();
    for kib in [255, 256, 319, 320, 512, 640, 960, 1280] {
        let limit = kib << 10;
        let mut tree = sonde_rap::Tree::<K>::new(Config::new().eps(0.0001).max_memory(limit)).expect("valid");
        for part in keys.chunks(1500) {
            tree.add_slice(part);
            assert!(tree.memory_bytes() <= limit, "{} bytes, limit {kib} KiB", tree.memory_bytes());
        }
        tree.snapshot();
        assert!(tree.memory_bytes() <= limit, "{} bytes, limit {kib} KiB", tree.memory_bytes());
    }
}

#[test]
fn the_limit_is_kept_with_a_front() {
    kept_with_a_front::<u32>();
    kept_with_a_front::<u64>();
    kept_with_a_front::<u128>();
    kept_with_a_front::<[u32; 2]>();
    kept_with_a_front::<[u32; 3]>();
    kept_with_a_front::<[u64; 2]>();
    kept_with_a_front::<[u64; 3]>();
}

/// Six events in ten are one value: however little memory there is, its count must stay at it.
fn keeps_the_hot_value<S: Subject<u64>>(limit: usize) {
    const HOT: u64 = 0x7f12_3456_7890;
    let tail = stream(Shape::Random, 200_000, 5);
    let keys: Vec<u64> =
        tail.iter().enumerate().map(|(i, &x)| if i % 5 < 3 { HOT } else { key(x) }).collect();
    let mut tree = S::start(Config::new().eps(0.01).max_memory(limit));
    tree.push_all(&keys);
    let summary = tree.summary();
    assert!(summary.eps_effective <= 0.02, "{}, {limit} bytes: {}", S::NAME, summary.eps_effective);
    let hot = summary.hot(0.3);
    assert_eq!(hot.iter().filter(|one| one.range.lo == HOT && one.range.hi == HOT).count(), 1, "{}", S::NAME);
}

#[test]
fn a_hot_value_is_kept_in_little_memory() {
    for kib in [8, 64, 256, 320] {
        keeps_the_hot_value::<sonde_rap::Tree<u64>>(kib << 10);
    }
}
