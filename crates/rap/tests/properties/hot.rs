//! Hot ranges against the true ones.
//!
//! Which ranges are hot depends on which inner ranges are: if an inner range just misses the threshold in one of two counts,
//! its weight goes to an outer one, which then differs too. So "every range hotter than threshold + eps is reported" is
//! checked in two exact forms: (1) for all streams, no range that is not reported has threshold + eps outside the reported
//! ranges inside it; (2) an exactly hot range hotter than threshold + eps is reported itself, unless a range inside it is
//! so close to the threshold that its hotness is open.

use crate::streams::{SHAPES, Shape, key, stream};
use crate::subject::{Subject, count, for_all};
use proptest::prelude::*;
use sonde_rap::code::Code;
use sonde_rap::exact::SortedCounts;
use sonde_rap::{Config, HotRange, Key, Range};
use std::collections::HashSet;

/// True weight of every range of the tree's levels, without the given hot ranges inside: level by level, from keys up.
fn open_weights<K: Key>(
    exact: &SortedCounts<K>,
    config: &Config,
    is_hot: impl Fn(&Range<K>, u64) -> bool,
) -> Vec<(Range<K>, u64)> {
    let mut ranges = Vec::new();
    let mut level: Vec<(K::Code, u64)> =
        exact.keys().iter().map(|&(key, count)| (key.encode(), count)).collect();
    let step = config.branching.bits();
    let mut free = 0;
    loop {
        let next = (free + step).min(K::BITS);
        let mut above: Vec<(K::Code, u64)> = Vec::new();
        for &(start, weight) in &level {
            let range = Range::aligned(start, free);
            ranges.push((range, weight));
            let rest = if is_hot(&range, weight) { 0 } else { weight };
            let around = start.shr(next).shl(next);
            match above.last_mut().filter(|last| last.0 == around) {
                Some(last) => last.1 += rest,
                None => above.push((around, rest)),
            }
        }
        if free == K::BITS {
            return ranges;
        }
        (level, free) = (above, next);
    }
}

fn checked_hot_ranges<K: Key, S: Subject<K>>(
    config: &Config,
    exact: &SortedCounts<K>,
    keys: &[K],
    threshold: f64,
) -> usize {
    let mut tree = S::start(config.clone());
    tree.push_all(keys);
    let summary = tree.summary();
    let n = exact.events() as f64;
    let hot: Vec<HotRange<K>> = summary.hot(threshold);
    assert!(hot.len() as f64 <= 1.0 / threshold);
    for range in &hot {
        let truth = exact.count(range.range.lo, range.range.hi);
        assert!(range.lower <= truth && truth <= range.upper, "{}: {truth} outside {range:?}", S::NAME);
        assert!(range.own as f64 >= threshold * n && range.total >= range.own);
        assert!(range.upper - range.lower <= (config.eps * n) as u64 + 1);
    }
    let reported: HashSet<Range<K>> = hot.iter().map(|hot| hot.range).collect();
    for (range, open) in open_weights(exact, config, |range, _| reported.contains(range)) {
        let missed = open as f64 >= (threshold + config.eps) * n && !reported.contains(&range);
        assert!(!missed, "{}: {range:?} with {open} of {n} is hot and not reported", S::NAME);
    }
    equal_where_certain(S::NAME, config, exact, &reported, threshold)
}

/// Form (2); returns how many ranges were certain, so that the tests can see that there were any.
fn equal_where_certain<K: Key>(
    name: &str,
    config: &Config,
    exact: &SortedCounts<K>,
    reported: &HashSet<Range<K>>,
    threshold: f64,
) -> usize {
    let n = exact.events() as f64;
    let truth = open_weights(exact, config, |_, weight| weight as f64 >= threshold * n);
    // An estimate without its hot sub-ranges can be too low by eps, and too high by eps for each of these.
    let slack = config.eps * n * (1.0 + 1.0 / threshold);
    let is_open = |weight: f64| weight >= threshold * n - slack && weight < (threshold + config.eps) * n;
    let open: Vec<&Range<K>> =
        truth.iter().filter(|(_, w)| is_open(*w as f64)).map(|(range, _)| range).collect();
    let certain = |range: &Range<K>| !open.iter().any(|inner| range.contains(inner));
    let mut checked = 0;
    for (range, weight) in truth.iter().filter(|(range, _)| certain(range)) {
        let hot = *weight as f64 >= (threshold + config.eps) * n;
        assert_eq!(hot, reported.contains(range), "{name}: {range:?} has {weight} of {n}");
        checked += usize::from(hot);
    }
    checked
}

fn one_case<K: Key, S: Subject<K>>(
    config: &Config,
    shape: Shape,
    len: usize,
    seed: u64,
    threshold: f64,
) -> usize {
    let keys: Vec<K> = stream(shape, len, seed).into_iter().map(key).collect();
    let events: Vec<(K, u64)> = keys.iter().map(|&key| (key, 1)).collect();
    checked_hot_ranges::<K, S>(config, &count(&events), &keys, threshold)
}

proptest! {
    #![proptest_config(crate::streams::cases(8))]

    #[test]
    fn no_hot_range_is_missed(
        eps in 0.001..0.05,
        threshold in 0.02..0.4,
        branching in 0usize..4,
        shape in 0..SHAPES.len(),
        len in 1usize..1500,
        seed: u64,
    ) {
        let config = Config::new().eps(eps).branching(sonde_rap::Branching::ALL[branching]);
        for_all!(one_case(&config, SHAPES[shape], len, seed, threshold));
    }
}

fn paper_like<S: Subject<u64>>() {
    let config = Config::new().eps(0.001);
    for (shape, least) in [(Shape::Pc, 3), (Shape::Value, 3), (Shape::OneKey, 1), (Shape::Zipf, 1)] {
        let certain = one_case::<u64, S>(&config, shape, 200_000, 1, 0.1);
        assert!(certain >= least, "{}: {shape:?} has {certain} ranges that are certainly hot", S::NAME);
    }
}

#[test]
fn hot_ranges_equal_the_exact_ones_on_the_papers_kinds_of_streams() {
    paper_like::<sonde_rap::Tree<u64>>();
    paper_like::<sonde_rap::textbook::TextbookTree<u64>>();
}
