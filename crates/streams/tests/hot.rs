//! The one-pass analysis against the worked example, and against brute force on small inputs for all that is claimed.

use proptest::prelude::*;
use sonde_streams::grammar::{Grammar, Symbol};
use sonde_streams::hot::{Analysis, Lengths, cut};
use sonde_streams::sequitur::Sequitur;
use std::collections::HashMap;

use Symbol::{Rule, Terminal};

fn word(grammar: &Grammar, rule: usize) -> Vec<u32> {
    let mut word = Vec::new();
    grammar.expand(grammar.body(rule), &mut |s| word.extend(s));
    word
}

#[test]
fn the_worked_example() {
    let (a, b, c) = (Terminal(0), Terminal(1), Terminal(2));
    // S -> A a B B, A -> a b, B -> C C, C -> A c
    let rules = [vec![Rule(1), a, Rule(2), Rule(2)], vec![a, b], vec![Rule(3), Rule(3)], vec![Rule(1), c]];
    let grammar = Grammar::new(1, &rules).unwrap();
    let heat = Analysis::new(&grammar, Lengths { min: 2, max: 7 }).pass(8);
    let rule = |w: &[u32]| (1..4).find(|r| word(&grammar, *r) == w).unwrap();
    let (of_a, of_b, of_c) = (rule(&[0, 1]), rule(&[0, 1, 2, 0, 1, 2]), rule(&[0, 1, 2]));
    assert_eq!(heat.hot, [of_b as u32]);
    assert_eq!(grammar.length(of_b) * heat.cold_uses[of_b], 12);
    assert_eq!((heat.uses[of_a], heat.uses[of_b], heat.uses[of_c]), (5, 2, 4));
    assert_eq!((heat.cold_uses[of_c], heat.cold_uses[of_a]), (0, 1));
    assert_eq!(heat.covered, 12);
    // In reverse post-order every user comes before what it uses.
    for r in 0..grammar.rules() {
        assert!(grammar.children(r).all(|c| c as usize > r));
    }
}

#[test]
fn grammars_that_are_none_are_refused() {
    assert!(Grammar::new(1, &[vec![Rule(1)], vec![Rule(2)], vec![Rule(1)]]).is_err());
    assert!(Grammar::new(1, &[vec![Rule(7)]]).is_err());
    assert!(Grammar::new(1, &[vec![Rule(0)]]).is_err());
}

/// Occurrences in the derivation that are not inside a hot stream, by walking all of it.
fn walk(grammar: &Grammar, rule: usize, hot: &[u32], counts: &mut HashMap<usize, u64>) {
    *counts.entry(rule).or_default() += 1;
    if !hot.contains(&(rule as u32)) {
        grammar.children(rule).for_each(|c| walk(grammar, c as usize, hot, counts));
    }
}

/// The most occurrences of a word that do not overlap: taking each as soon as it ends is best.
fn frequency(trace: &[u32], word: &[u32]) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at + word.len() <= trace.len() {
        if trace[at..].starts_with(word) {
            count += 1;
            at += word.len();
        } else {
            at += 1;
        }
    }
    count
}

fn grammar_of(trace: &[u32]) -> Grammar {
    let mut sequitur = Sequitur::new();
    let sequence = sequitur.sequence();
    trace.iter().for_each(|s| sequitur.push(sequence, *s));
    sequitur.grammar()
}

fn traces() -> impl Strategy<Value = Vec<u32>> {
    let words = prop::collection::vec(prop::collection::vec(0..12u32, 1..15), 1..6);
    (words, prop::collection::vec((0..6usize, 1..6usize), 1..30)).prop_map(|(words, plan)| {
        let times = |(w, n): (usize, usize)| words[w % words.len()].repeat(n);
        plan.into_iter().flat_map(times).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn heat_is_what_the_derivation_says_and_at_most_the_truth(
        trace in traces(), threshold in 4..60u64, min in 2..6u64, extra in 0..12u64, cutting in any::<bool>(),
    ) {
        let lengths = Lengths { min, max: min + extra };
        let plain = grammar_of(&trace);
        let grammar = if cutting { cut(&plain, lengths) } else { plain };
        prop_assert_eq!(word(&grammar, 0), trace.clone());
        let analysis = Analysis::new(&grammar, lengths);
        prop_assert_eq!(analysis.references(), trace.len() as u64);
        let heat = analysis.pass(threshold);
        let mut counts = HashMap::new();
        walk(&grammar, 0, &heat.hot, &mut counts);
        let mut covered = 0;
        for rule in 1..grammar.rules() {
            let cold = counts.get(&rule).copied().unwrap_or(0);
            prop_assert_eq!(heat.cold_uses[rule], cold);
            let long = (lengths.min..=lengths.max).contains(&grammar.length(rule));
            prop_assert_eq!(heat.hot.contains(&(rule as u32)), long && grammar.length(rule) * cold >= threshold);
        }
        for rule in &heat.hot {
            let stream = word(&grammar, *rule as usize);
            let cold = heat.cold_uses[*rule as usize];
            prop_assert!(cold <= frequency(&trace, &stream));
            covered += stream.len() as u64 * cold;
        }
        prop_assert_eq!(covered, heat.covered);
        prop_assert!(covered <= trace.len() as u64);
    }

    #[test]
    fn the_threshold_found_covers_enough_and_the_next_does_not(trace in traces(), coverage in 0.05..1.0f64) {
        let lengths = Lengths { min: 3, max: 9 };
        let grammar = cut(&grammar_of(&trace), lengths);
        let analysis = Analysis::new(&grammar, lengths);
        let found = analysis.search(coverage);
        let enough = |covered: u64| covered as f64 >= coverage * trace.len() as f64;
        prop_assert_eq!(&analysis.pass(found.threshold), &found);
        if enough(found.covered) {
            prop_assert!(found.hot.is_empty() || !enough(analysis.pass(found.threshold + 1).covered));
        } else {
            prop_assert_eq!(found.threshold, 6);
        }
    }
}

#[test]
fn a_long_sequence_that_repeats_as_a_whole_is_cut_into_pieces() {
    let trace: Vec<u32> = (0..100).collect::<Vec<_>>().repeat(50);
    let lengths = Lengths { min: 10, max: 40 };
    let plain = grammar_of(&trace);
    assert_eq!(Analysis::new(&plain, lengths).search(0.9).covered, 0);
    let cut = cut(&plain, lengths);
    let heat = Analysis::new(&cut, lengths).search(0.9);
    let lengths: Vec<u64> = heat.hot.iter().map(|r| cut.length(*r as usize)).collect();
    assert_eq!(lengths.iter().sum::<u64>(), 100);
    assert!(heat.covered as usize >= trace.len() * 9 / 10);
}
