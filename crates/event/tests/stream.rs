//! The catalog and the decoder on a made-up program, and on nonsense.

mod synthetic;

use proptest::prelude::*;
use sonde_event::check::Check;
use sonde_event::{Access, Count, Counts, Decoder, Detail, Reader, Ref, Run, StreamError};
use sonde_wire::marker::{self, Kind};
use sonde_x64::plan::ExitKind;
use synthetic::{BASE, CODE, burst, describe, program, program_watched};

const DETAILS: [Detail; 3] = [Detail::Blocks, Detail::Addresses, Detail::Values];

/// A decoder that knows the program.
fn decoder(detail: Detail) -> Decoder {
    let mut decoder = Decoder::new(detail);
    for superblock in program(detail) {
        decoder.describe(&superblock.words).unwrap();
    }
    decoder
}

/// Keeps all references.
#[derive(Default)]
struct Kept(Vec<Ref>);

impl Reader for Kept {
    fn run(&mut self, run: &Run<'_>) {
        self.0.extend(run.references());
    }
}

#[test]
fn a_burst_is_counted_in_every_detail() {
    for detail in DETAILS {
        let mut count = Count::default();
        decoder(detail).log(7, &burst(&program(detail), 7, 1000), &mut count).unwrap();
        let c = count.counts;
        // Two rounds leave by the branch, the third goes on to the call; then the function and the return.
        assert_eq!((c.bursts, c.runs, c.blocks), (1, 5, 6), "{detail:?}");
        assert_eq!(c.instructions, 5 + 5 + 6 + 3 + 1, "{detail:?}");
    }
}

#[test]
fn addresses_are_computed_from_the_words() {
    let [body, ..] = program(Detail::Values);
    let taken = body.exit(ExitKind::Taken);
    let mut kept = Kept::default();
    let log = body.record(taken, |i| 0x5000 + i as u64);
    decoder(Detail::Values).log(1, &log, &mut kept).unwrap();
    let made: Vec<(u64, Access, u16)> = kept.0.iter().map(|r| (r.pc, r.access, r.size)).collect();
    assert_eq!(made, [(BASE, Access::Load, 8), (BASE + 3, Access::Load, 8), (BASE + 3, Access::Store, 8)]);
    assert!(kept.0.iter().all(|r| r.address.is_some() && r.count == 1));
    assert_eq!(kept.0[1].address, kept.0[2].address, "read and written in the same place");
}

#[test]
fn repeats_and_thread_local_addresses() {
    let [.., function] = program(Detail::Values);
    let exit = function.exit(ExitKind::Return);
    let mut kept = Kept::default();
    let mut log = synthetic::begin(3, 1, BASE + 0x20);
    log.extend(function.record(exit, |i| 100 * i as u64));
    decoder(Detail::Values).log(3, &log, &mut kept).unwrap();
    let thread_local = kept.0.iter().find(|r| r.pc == BASE + 0x22).unwrap();
    assert_eq!(thread_local.address, Some(0x7f00_0000_0010), "the fs base of the burst and 0x10");
    let copied: Vec<&Ref> = kept.0.iter().filter(|r| r.pc == BASE + 0x20).collect();
    assert_eq!(copied.len(), 2);
    assert!(copied.iter().all(|r| r.size == 1 && r.count == copied[0].count), "{copied:?}");
}

#[test]
fn repetitions_are_counted_as_tools_that_loop_do() {
    use sonde_x64::memory::Repeat;
    let [.., function] = program(Detail::Addresses);
    let exit = function.exit(ExitKind::Return);
    let Repeat::Counted { before, after } = function.plan.refs[0].repeat else { panic!("rep movsb") };
    // Rcx before and after. Once for each repetition, and once more to find none left: less the instruction itself.
    for (had, left, again) in [(10, 0, 10), (1, 0, 1), (0, 0, 0), (10, 4, 5)] {
        let mut log = synthetic::begin(3, 1, BASE + 0x20);
        let at = log.len();
        log.extend(function.record(exit, |_| 0x1000));
        log[at + before as usize] = had;
        log[at + after as usize] = left;
        let mut count = Count::default();
        decoder(Detail::Addresses).log(3, &log, &mut count).unwrap();
        let counts = count.counts;
        assert_eq!((counts.instructions, counts.repetitions), (3, again), "{had} {left}");
        assert_eq!(counts.stores, had - left);
    }
}

#[test]
fn true_bursts_pass_the_checker() {
    for detail in DETAILS {
        let mut check = Check::default();
        let mut decoder = decoder(detail);
        for (tid, time) in [(1, 1000), (2, 900), (1, 2000)] {
            decoder.log(tid, &burst(&program(detail), tid, time), &mut check).unwrap();
        }
        assert!(check.is_clean(), "{detail:?}: {:?}", check.violations);
        assert_eq!((check.bursts, check.calls, check.matched), (3, 3, 3), "{detail:?}");
    }
}

#[test]
fn the_checker_finds_what_cannot_be() {
    use sonde_event::check::Rule;
    use sonde_wire::marker::Cause;
    let all = program(Detail::Addresses);
    let [body, _, function] = &all;
    let address = |_| 0x1_0000;
    let taken = body.record(body.exit(ExitKind::Taken), address);
    let call = body.record(body.exit(ExitKind::Call), address);
    let returns = function.record(function.exit(ExitKind::Return), address);
    let begin = synthetic::begin(1, 10, BASE);
    let end = synthetic::end(20, Cause::Checks, BASE);
    let wild = body.record(body.exit(ExitKind::Taken), |_| 0x1234_5678_9abc_def0);
    let early = synthetic::end(5, Cause::Checks, BASE);
    let cases: [(Rule, Vec<&[u64]>); 8] = [
        (Rule::Successor, vec![&begin, &taken, &returns]),
        (Rule::Successor, vec![&begin, &call, &taken]),
        (Rule::FirstPc, vec![&begin, &returns]),
        (Rule::RunOutsideBurst, vec![&taken]),
        (Rule::BeginInBurst, vec![&begin, &taken, &begin]),
        (Rule::EndOutsideBurst, vec![&end]),
        (Rule::Address, vec![&begin, &wild]),
        (Rule::Time, vec![&begin, &taken, &early]),
    ];
    for (rule, records) in cases {
        let mut check = Check::default();
        decoder(Detail::Addresses).log(1, &records.concat(), &mut check).unwrap();
        assert!(check.by_rule.contains_key(&rule), "{rule:?}: {:?}", check.violations);
    }
}

#[test]
fn returns_are_matched_unwound_or_counted() {
    let all = program(Detail::Addresses);
    let [body, _, function] = &all;
    let address = |_| 0x1_0000;
    let call = body.record(body.exit(ExitKind::Call), address);
    let returns = function.record(function.exit(ExitKind::Return), address);
    // The function returns into the loop's start: nobody called from there.
    let mut check = Check::default();
    let log = [synthetic::begin(1, 10, BASE), call, returns, body.record(0, address)].concat();
    decoder(Detail::Addresses).log(1, &log, &mut check).unwrap();
    assert_eq!((check.matched, check.unmatched, check.is_clean()), (0, 1, true), "{:?}", check.violations);
}

#[test]
fn a_gap_makes_the_checker_forget() {
    let mut check = Check::default();
    let mut decoder = decoder(Detail::Addresses);
    let all = program(Detail::Addresses);
    let log = burst(&all, 1, 10);
    let (head, _) = log.split_at(5);
    decoder.log(1, head, &mut check).unwrap();
    check.gap();
    decoder.log(1, &burst(&all, 1, 5), &mut check).unwrap();
    assert!(check.is_clean(), "{:?}", check.violations);
}

#[test]
fn records_that_make_no_sense_are_errors_with_their_place() {
    let mut count = Count::default();
    let mut decoder = decoder(Detail::Values);
    let whole = burst(&program(Detail::Values), 1, 10);
    let unknown = [&whole[..5], &[77]].concat();
    assert_eq!(decoder.log(1, &unknown, &mut count), Err(StreamError::UnknownExit { at: 5, exit: 76 }));
    let cut = &whole[..6];
    assert!(matches!(decoder.log(1, cut, &mut count), Err(StreamError::CutOff { at: 5, .. })));
    let odd = [u64::from(marker::FIRST | 0x7f << 16 | 2), 0];
    assert!(matches!(decoder.log(1, &odd, &mut count), Err(StreamError::UnknownMarker { at: 0, .. })));
    let empty = [u64::from(marker::header(Kind::FsBase, 0))];
    assert!(decoder.log(1, &empty, &mut count).is_err());
    assert_eq!(decoder.lost().buffers, 4);
    assert_eq!(decoder.lost().words, 1 + 1 + 2 + 1);
}

#[test]
fn descriptions_that_make_no_sense_are_refused() {
    let good = describe(&CODE, BASE, 0, Detail::Values).words;
    let change = |at: usize, by: u64| {
        let mut words = good.clone();
        words[at] = words[at].wrapping_add(by);
        Decoder::new(Detail::Values).describe(&words)
    };
    assert_eq!(Decoder::new(Detail::Values).describe(&good), Ok(()));
    for (what, result) in [
        ("empty", Decoder::new(Detail::Values).describe(&[])),
        ("shorter than it says", Decoder::new(Detail::Values).describe(&good[..good.len() - 1])),
        ("length", change(0, 8)),
        ("a far exit number", change(0, 1 << 62)),
        ("exits", change(2, 1)),
        ("instructions", change(2, 1 << 16)),
        ("segments", change(2, 1 << 32)),
        ("a long segment", change(5, 1 << 40)),
        ("code", change(6, 0x0f0f_0f0f)),
    ] {
        assert!(matches!(result, Err(StreamError::BadDescription { .. })), "{what}: {result:?}");
    }
}

/// A reader that looks at everything there is to see.
#[derive(Default)]
struct Everything(u64);

impl Reader for Everything {
    fn run(&mut self, run: &Run<'_>) {
        for block in run.blocks() {
            self.0 = self.0.wrapping_add(block.block.pc).wrapping_add(u64::from(block.insns));
        }
        for (i, r) in run.references().enumerate() {
            self.0 ^= r.address.unwrap_or(1) ^ r.value.unwrap_or(2) ^ r.count ^ r.pc;
            self.0 ^= run.wide_value(i).iter().fold(0, |a, w| a ^ w);
        }
        self.0 ^= run.exit().map_or(0, u64::from) ^ run.insns().len() as u64;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_logs_never_panic(
        // Small numbers are exits, large ones markers: both must be met often.
        words in prop::collection::vec(prop_oneof![
            0u64..40, 0xf000_0000u64..0xf008_0010, any::<u64>(), Just(1u64), Just(11u64), Just(21u64),
        ], 0..200),
        detail in prop::sample::select(DETAILS.to_vec()),
    ) {
        let mut readers = ((Everything::default(), Count::default()), Check::default());
        let mut decoder = decoder(detail);
        let result = decoder.log(1, &words, &mut readers);
        prop_assert_eq!(result.is_ok(), decoder.lost().buffers == 0);
    }

    #[test]
    fn changed_logs_never_panic(at in 0usize..200, with in any::<u64>(), detail in prop::sample::select(DETAILS.to_vec())) {
        let mut log = burst(&program(detail), 1, 10);
        let at = at % log.len();
        log[at] = with;
        let mut readers = ((Everything::default(), Count::default()), Check::default());
        let _ = decoder(detail).log(1, &log, &mut readers);
    }

    #[test]
    fn arbitrary_descriptions_never_panic(words in prop::collection::vec(any::<u64>(), 0..40)) {
        let mut decoder = Decoder::new(Detail::Values);
        let _ = decoder.describe(&words);
    }

    #[test]
    fn arbitrary_code_is_described_as_it_was_planned(
        code in prop::collection::vec(any::<u8>(), 1..200),
        detail in prop::sample::select(DETAILS.to_vec()),
        value in any::<u64>(),
    ) {
        let described = describe(&code, BASE, 0, detail);
        prop_assume!(!described.plan.insns.is_empty());
        let mut decoder = Decoder::new(detail);
        prop_assert_eq!(decoder.describe(&described.words), Ok(()));
        for exit in 0..described.plan.exits.len() {
            let log = described.record(exit, |i| value.rotate_left(i as u32));
            let mut readers = (Everything::default(), Count::default());
            prop_assert_eq!(decoder.log(1, &log, &mut readers), Ok(()));
            prop_assert_eq!(readers.1.counts.instructions, u64::from(described.plan.exits[exit].insns));
        }
    }
}

#[test]
fn what_is_not_recorded_is_counted_and_has_neither_address_nor_value() {
    let full = program(Detail::Values);
    // Of the loop only the first load, of the function nothing but what repeats.
    let masked = program_watched(&|pc| pc == BASE);
    let mut all = Count::default();
    decoder(Detail::Values).log(7, &burst(&full, 7, 1000), &mut all).unwrap();
    let mut decoder = Decoder::new(Detail::Values);
    masked.iter().for_each(|s| decoder.describe(&s.words).unwrap());
    let (log, mut read) = (burst(&masked, 7, 1000), (Count::default(), (Kept::default(), Check::default())));
    decoder.log(7, &log, &mut read).unwrap();
    let (count, (kept, check)) = read;
    assert!(log.len() < burst(&full, 7, 1000).len());
    // The loop's add has a load and a store; call, fs: load and the two returns one reference each.
    assert_eq!(count.counts, Counts { unrecorded: 3 * 2 + 4, ..all.counts });
    assert_eq!(
        (check.unrecorded, check.is_clean()),
        (count.counts.unrecorded, true),
        "{:?}",
        check.violations
    );
    for r in &kept.0 {
        let recorded = r.pc == BASE || r.pc == BASE + 0x20;
        assert_eq!((r.recorded, r.address.is_some()), (recorded, recorded), "{r:?}");
        let is_return = r.pc == BASE + 0x14 || r.pc == BASE + 0x2b;
        assert!(recorded || r.value.is_none() || is_return || r.access == Access::Store, "{r:?}");
    }
}

#[test]
fn a_pass_that_was_cut_short_counts_what_was_not_recorded() {
    let [body, ..] = program_watched(&|_| false);
    let mut decoder = Decoder::new(Detail::Values);
    decoder.describe(&body.words).unwrap();
    // Two instructions done: a load, and a load and a store.
    let partial = [u64::from(marker::header(Kind::Partial, 2)), 2];
    let mut count = Count::default();
    decoder.log(1, &partial, &mut count).unwrap();
    let c = count.counts;
    assert_eq!((c.instructions, c.loads, c.stores, c.unrecorded, c.without_address), (2, 2, 1, 3, 0));
}
