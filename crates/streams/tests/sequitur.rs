//! Sequitur against its definition: the input comes back, both invariants hold, memory follows the grammar.

use proptest::prelude::*;
use sonde_streams::sequitur::{Sequence, Sequitur};

/// Pushes to one sequence and checks all that is promised; returns the size of the grammar.
fn hold(input: &[u32], every: usize) -> usize {
    let mut sequitur = Sequitur::new();
    let sequence = sequitur.sequence();
    for (i, symbol) in input.iter().enumerate() {
        sequitur.push(sequence, *symbol);
        if i % every == 0 {
            sequitur.check().unwrap_or_else(|e| panic!("after {i} of {input:?}: {e}"));
        }
    }
    sequitur.check().unwrap_or_else(|e| panic!("{input:?}: {e}"));
    let expanded: Vec<u32> = sequitur.grammar().expand_root(0).into_iter().flatten().collect();
    assert_eq!(expanded, input);
    sequitur.size()
}

/// What nasty inputs are made of: runs, repeated phrases, and variations of them.
fn phrases(symbols: u32) -> impl Strategy<Value = Vec<u32>> {
    let phrase = prop::collection::vec(0..symbols, 1..12);
    let words = prop::collection::vec(phrase, 1..6);
    (words, prop::collection::vec((0..6usize, 1..5usize, any::<bool>()), 1..40)).prop_map(|(words, plan)| {
        let mut out = Vec::new();
        for (word, times, cut) in plan {
            let word = &words[word % words.len()];
            for _ in 0..times {
                out.extend(&word[usize::from(cut && word.len() > 1)..]);
            }
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn few_symbols(input in prop::collection::vec(0..3u32, 0..200)) {
        hold(&input, 1);
        hold(&input, usize::MAX);
    }

    #[test]
    fn repeated_phrases(input in (1..9u32).prop_flat_map(phrases)) {
        hold(&input, 1);
        hold(&input, usize::MAX);
    }

    #[test]
    fn several_at_once_are_the_same_as_one_by_one(
        input in (1..9u32).prop_flat_map(phrases), cut in 1..80usize,
    ) {
        let (mut whole, mut single) = (Sequitur::new(), Sequitur::new());
        let (a, b) = (whole.sequence(), single.sequence());
        for batch in input.chunks(cut) {
            whole.extend(a, batch);
        }
        input.iter().for_each(|s| single.push(b, *s));
        whole.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!(whole.symbols(), input.len() as u64);
        prop_assert_eq!(whole.grammar(), single.grammar());
    }

    #[test]
    fn sequences_share_rules_and_breaks_are_not_bridged(
        steps in prop::collection::vec((0..3usize, prop::option::weighted(0.95, 0..4u32)), 0..300),
    ) {
        let mut sequitur = Sequitur::new();
        let ids: Vec<Sequence> = (0..3).map(|_| sequitur.sequence()).collect();
        let mut want: Vec<Vec<Option<u32>>> = vec![Vec::new(); 3];
        for (which, step) in &steps {
            match step {
                Some(symbol) => sequitur.push(ids[*which], *symbol),
                None => sequitur.break_off(ids[*which]),
            }
            if step.is_some() || want[*which].last().is_some_and(|l| l.is_some()) {
                want[*which].push(*step);
            }
        }
        sequitur.check().unwrap();
        let grammar = sequitur.grammar();
        for (i, want) in want.iter().enumerate() {
            prop_assert_eq!(&grammar.expand_root(i), want);
        }
        // A rule never holds a break: nothing in it was ever apart.
        for rule in grammar.roots()..grammar.rules() {
            let mut whole = true;
            grammar.expand(grammar.body(rule), &mut |s| whole &= s.is_some());
            prop_assert!(whole);
        }
    }
}

#[test]
fn long_inputs_of_every_kind() {
    let mut state = 7u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for symbols in [1, 2, 3, 5, 17, 300] {
        let input: Vec<u32> = (0..30_000).map(|_| random(symbols) as u32).collect();
        hold(&input, 5_000);
    }
    let words: Vec<Vec<u32>> =
        (0..30).map(|_| (0..1 + random(60)).map(|_| random(200) as u32).collect()).collect();
    let nested: Vec<u32> = (0..4_000).flat_map(|_| words[random(30) as usize].clone()).collect();
    hold(&nested, 20_000);
}

#[test]
fn a_repeated_sequence_takes_logarithmic_space() {
    let input: Vec<u32> = (0..100_000u32).map(|i| i % 100).collect();
    // One rule of 100 symbols, then pairs of pairs: 1,000 repetitions are ten doublings.
    assert!(hold(&input, usize::MAX) <= 100 + 10 * 4, "{}", hold(&input, usize::MAX));
    let run = vec![5; 1 << 16];
    assert!(hold(&run, usize::MAX) <= 16 * 4);
}

#[test]
fn what_never_repeats_is_kept_as_it_is() {
    let input: Vec<u32> = (0..10_000).collect();
    assert_eq!(hold(&input, usize::MAX), 10_001);
}

#[test]
fn cleared_grammars_begin_anew() {
    let mut sequitur = Sequitur::new();
    for _ in 0..3 {
        let sequence = sequitur.sequence();
        for i in 0..50_000u32 {
            sequitur.push(sequence, i * 7 % 1013);
        }
        sequitur.check().unwrap();
        let held = sequitur.memory_bytes();
        sequitur.clear();
        assert_eq!((sequitur.size(), sequitur.symbols()), (0, 0));
        assert_eq!(sequitur.memory_bytes(), held);
    }
}

#[test]
fn digrams_that_come_and_go_do_not_fill_the_table() {
    // Two phrases in an order that never repeats: rules are made and given up all the time, few stand.
    let mut state = 9u64;
    let mut sequitur = Sequitur::new();
    let sequence = sequitur.sequence();
    let (mut pushed, mut most) = (0usize, 0);
    while pushed < 1_000_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = 2 + (state >> 60) as u32;
        let phrase: Vec<u32> = (0..length).map(|i| (state >> 33) as u32 % 3 + 5 * i).collect();
        sequitur.extend(sequence, &phrase);
        pushed += phrase.len();
        most = most.max(sequitur.size());
    }
    sequitur.check().unwrap();
    // 12 bytes a node and at most 4 slots of 4 bytes for each, twice that where vectors grow by doubling.
    let bound = 2 * most * (12 + 16) + (1 << 16);
    assert!(sequitur.memory_bytes() < bound, "{} of {bound}", sequitur.memory_bytes());
}
