use super::*;
use proptest::prelude::*;

fn context(parent: u32, function: u64, instructions: u64) -> Context {
    Context { parent, function, calls: 1, instructions, weight: instructions, ..Context::default() }
}

/// A profile whose tree is given as (parent, function, instructions).
fn profile(tree: &[(u32, u64, u64)]) -> CallProfile {
    let mut p = CallProfile { contexts: vec![Context::default(); 2], ..CallProfile::default() };
    for (parent, function, instructions) in tree {
        p.contexts.push(context(*parent, *function, *instructions));
        p.instructions += instructions;
        p.weight += instructions;
        p.calls += 1;
        p.functions.push(Invoked { entry: *function, count: 1, weight: 1 });
    }
    p.sort();
    p
}

#[test]
fn equal_contexts_are_united_and_the_rest_is_in_preorder() {
    // main calls b and a; another run of main calls a, which calls c.
    let mut p = profile(&[(0, 10, 1), (2, 30, 2), (2, 20, 4)]);
    p.merge(&profile(&[(0, 10, 8), (2, 20, 16), (3, 40, 32)]));
    p.check().unwrap();
    let tree: Vec<_> = p.contexts[2..].iter().map(|c| (c.parent, c.function, c.instructions)).collect();
    assert_eq!(tree, [(0, 10, 9), (2, 20, 20), (3, 40, 32), (2, 30, 2)]);
    assert_eq!(p.inclusive()[2..], [63, 52, 32, 2]);
}

#[test]
fn modules_that_moved_come_together() {
    let mut here = profile(&[(0, 0x1010, 1), (2, 0x1020, 2)]);
    let mut there = profile(&[(0, 0x5010, 4), (2, 0x5020, 8)]);
    here.relocate(&mut |a| a - 0x1000);
    there.relocate(&mut |a| a - 0x5000);
    here.merge(&there);
    here.check().unwrap();
    assert_eq!(here.contexts.len(), 4);
    assert_eq!(here.contexts[3].instructions, 10);
}

#[test]
fn a_profile_whose_numbers_do_not_fit_is_refused() {
    let good = profile(&[(0, 10, 1), (2, 30, 2)]);
    good.check().unwrap();
    let bad: [fn(&mut CallProfile); 4] =
        [|p| p.instructions += 1, |p| p.calls += 1, |p| p.contexts[2].parent = 3, |p| p.functions.reverse()];
    for change in bad {
        let mut p = good.clone();
        change(&mut p);
        assert!(p.check().is_err());
    }
}

proptest! {
    #[test]
    fn merging_is_adding_and_its_order_does_not_matter(
        a in proptest::collection::vec((0u32..4, 1u64..6, 0u64..9), 0..12),
        b in proptest::collection::vec((0u32..4, 1u64..6, 0u64..9), 0..12),
    ) {
        let tree = |list: &[(u32, u64, u64)]| -> Vec<(u32, u64, u64)> {
            let number = |i: usize, p: u32| if p == 0 || i == 0 { 0 } else { 2 + p % i as u32 };
            list.iter().enumerate().map(|(i, (p, f, n))| (number(i, *p), *f, *n)).collect()
        };
        let (a, b) = (profile(&tree(&a)), profile(&tree(&b)));
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.merge(&b);
        ba.merge(&a);
        ab.check().unwrap();
        prop_assert_eq!(&ab, &ba);
        prop_assert_eq!(ab.instructions, a.instructions + b.instructions);
        let mut with_nothing = a.clone();
        with_nothing.merge(&CallProfile::default());
        prop_assert_eq!(&with_nothing, &a);
        let mut nothing = CallProfile::default();
        nothing.merge(&a);
        prop_assert_eq!(&nothing, &a);
    }
}

#[test]
fn absurd_counts_neither_overflow_nor_become_small() {
    let most = u64::MAX;
    let mut p = CallProfile {
        calls: most,
        instructions: most,
        weight: most,
        functions: vec![Invoked { entry: 1, count: most, weight: most }],
        pairs: vec![Pair { site: 1, callee: 2, count: most, weight: most }],
        regions: vec![Region { branch: 1, count: most, instructions: most, weight: most }],
        contexts: vec![Context::default(), Context::default(), context(0, 1, most)],
        ..CallProfile::default()
    };
    assert_eq!(p.check(), Ok(()));
    p.merge(&p.clone());
    assert_eq!((p.functions[0].count, p.inclusive()[0]), (most, most));
    assert_eq!(p.check(), Ok(()));
}
