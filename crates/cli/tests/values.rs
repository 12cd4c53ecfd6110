//! Load values of a program that is known by construction, from the recorder to the profile, by every method.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::Bench;
use sonde_event::trace::{TraceReader, replay};
use sonde_event::{Decoder, Reader};
use sonde_values::race::{Race, RaceConfig};
use sonde_values::slots::{SlotConfig, SlotReader};
use sonde_values::{
    ExactConfig, ExactReader, Lfsr, LoadValues, SamplingConfig, SamplingReader, ValueProfile, fingerprint,
};
use std::fs::File;

const COUNT: u64 = 20_000;

/// A recorded run, and where its loads are.
struct Recorded {
    bench: Bench,
    pcs: Vec<u64>,
}

fn recorded() -> Recorded {
    let bench = Bench::new();
    let program = bench.compile("values", include_str!("programs/values.c"), &["-O1"]);
    let args = ["trace", "record", "--policy", "always", "--record", "values", "-o", "t", "--"];
    let done = bench.sonde(&[&args[..], &[program.to_str().unwrap()]].concat()).good();
    let text = done.text();
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let pcs = text.lines().next().unwrap().split(' ').map(hex).collect();
    Recorded { bench, pcs }
}

impl Recorded {
    fn read<R: Reader>(&self, reader: &mut R) -> Decoder {
        let file = File::open(self.bench.path("t")).unwrap();
        let mut replayed = replay(&mut TraceReader::new(file).unwrap(), reader).unwrap();
        assert!(replayed.is_whole());
        replayed.decoders.remove(&0).unwrap()
    }

    /// The loads of a profile: invariant, semi-invariant, glacial, random, wide.
    fn loads<'a>(&self, profile: &'a ValueProfile) -> [&'a LoadValues; 5] {
        profile.check().unwrap();
        let find = |pc: &u64| profile.load(*pc).unwrap_or_else(|| panic!("no load at {pc:#x}"));
        self.pcs.iter().map(find).collect::<Vec<_>>().try_into().unwrap()
    }
}

#[test]
fn the_exact_profile_is_what_the_program_was_written_to_do() {
    let recorded = recorded();
    let mut reader = ExactReader::new(ExactConfig::default()).unwrap();
    let decoder = recorded.read(&mut reader);
    let profile = reader.finish(decoder.catalog());
    let loads = recorded.loads(&profile);
    for load in loads {
        assert_eq!((load.executions, load.seen, load.missed), (COUNT, COUNT, 0));
    }
    let [invariant, semi, glacial, random, wide] = loads;
    let counts = |l: &LoadValues| -> Vec<(u64, u64, u64)> {
        l.values.iter().map(|v| (v.value, v.lower, v.upper)).collect()
    };
    assert_eq!(counts(invariant), [(0x1122_3344_5566_7788, COUNT, COUNT)]);
    assert_eq!(invariant.invariance(profile.method).lower, 1.0);
    // 42 is there 14,000 times and once more when i is 42, which is not below 7 of 10.
    assert_eq!(counts(semi)[0], (42, 14_000, 14_000));
    assert_eq!(semi.invariance(profile.method).estimate, 0.7);
    assert_eq!(counts(glacial), [1000, 1001, 1002, 1003].map(|v| (v, 5000, 5000)));
    assert!(random.invariance(profile.method).estimate < 0.01);
    assert!(random.invariance(profile.method).upper < 0.07, "{:?}", random.invariance(profile.method));
    let pairs = [fingerprint(&[7, 0]), fingerprint(&[7, 1])];
    assert_eq!(wide.size, 16);
    assert_eq!(wide.values.len(), 2, "the upper half differs");
    assert!(wide.values.iter().all(|v| pairs.contains(&v.value) && v.lower == COUNT / 2));
    assert_eq!(loads.map(|l| l.glacial), [false, false, true, false, false].map(Some));
    let t = profile.totals;
    assert_eq!((t.evicted_loads, t.gaps, t.unplaced), (0, 0, 0));
    assert_eq!(t.samples, t.profiled);
}

#[test]
fn slots_tell_invariant_semi_invariant_glacial_and_random_loads_apart() {
    let recorded = recorded();
    let config = SlotConfig { slots: 64, resample: 60_000, patience: 10_000, ..SlotConfig::with_slots(64) };
    let mut reader = SlotReader::new(config, Lfsr::new(7)).unwrap();
    let decoder = recorded.read(&mut reader);
    let profile = reader.finish(decoder.catalog());
    let [invariant, semi, glacial, random, wide] = recorded.loads(&profile);
    let share = |l: &LoadValues| l.invariance(profile.method);
    assert_eq!(invariant.values[0].value, 0x1122_3344_5566_7788);
    assert!(share(invariant).estimate > 0.999 && share(invariant).lower > 0.8);
    assert_eq!(semi.values[0].value, 42);
    assert!((share(semi).estimate - 0.7).abs() < 0.1, "{:?}", share(semi));
    assert!(share(semi).lower <= 0.7 && 0.7 <= share(semi).upper, "{:?}", share(semi));
    assert_eq!(glacial.glacial, Some(true), "{glacial:?}");
    assert!(glacial.values.iter().all(|v| (1000..1004).contains(&v.value)));
    assert!(share(random).estimate < 0.25, "{:?}", share(random));
    assert!((share(wide).estimate - 0.5).abs() < 0.15, "{:?}", share(wide));
    assert_eq!([invariant, semi, random, wide].map(|l| l.glacial), [Some(false); 4]);
    assert_eq!(invariant.executions, COUNT, "weights do not depend on what was looked at");
    assert!(profile.totals.samples < profile.totals.profiled, "masked loads are not looked at");
}

#[test]
fn samples_are_a_fair_part_of_all() {
    let recorded = recorded();
    let config = SamplingConfig { every: 50, ..SamplingConfig::default() };
    let mut reader = SamplingReader::new(config, Some(Lfsr::new(7))).unwrap();
    let decoder = recorded.read(&mut reader);
    let profile = reader.finish(decoder.catalog());
    let [invariant, semi, glacial, _, _] = recorded.loads(&profile);
    let share = |l: &LoadValues| l.invariance(profile.method);
    assert_eq!((invariant.values[0].value, semi.values[0].value), (0x1122_3344_5566_7788, 42));
    assert!(share(invariant).estimate == 1.0 && share(invariant).lower < 1.0);
    assert!(share(semi).lower < 0.7 && 0.7 < share(semi).upper, "{:?}", share(semi));
    assert!((200..800).contains(&semi.seen) && semi.executions == COUNT, "{}", semi.seen);
    assert_eq!(glacial.glacial, None, "samples cannot tell");
    let expected = profile.totals.profiled / 50;
    assert!(profile.totals.samples.abs_diff(expected) < expected / 20);
}

#[test]
fn a_race_on_a_real_trace_is_consistent() {
    let recorded = recorded();
    let mut race = Race::new(RaceConfig::default()).unwrap();
    let decoder = recorded.read(&mut race);
    let result = race.finish(decoder.catalog());
    result.exact.check().unwrap();
    for row in &result.rows {
        row.profile.check().unwrap_or_else(|what| panic!("{:?}: {what}", row.entrant));
        assert_eq!(row.profile.totals.profiled, result.exact.totals.profiled);
        assert_eq!(row.score.pairs, result.rows[0].score.pairs);
    }
    // Whoever looks at more knows more.
    let (often, seldom) = (&result.rows[3], result.rows.last().unwrap());
    assert!(often.score.rms < seldom.score.rms && often.overhead > seldom.overhead);
}

#[test]
fn profiles_of_two_runs_are_merged_by_place() {
    let place = |pc: u64, first: u64| if pc.abs_diff(first) < 1 << 12 { 1 << 48 | (pc & 0xfff) } else { 0 };
    let profiles: Vec<(ValueProfile, u64)> = (0..2)
        .map(|_| {
            let recorded = recorded();
            let mut reader = ExactReader::new(ExactConfig::default()).unwrap();
            let decoder = recorded.read(&mut reader);
            let mut profile = reader.finish(decoder.catalog());
            profile.relocate(&mut |pc| place(pc, recorded.pcs[0]));
            (profile, place(recorded.pcs[1], recorded.pcs[0]))
        })
        .collect();
    let (mut both, semi) = profiles[0].clone();
    both.merge(&profiles[1].0);
    both.check().unwrap();
    assert_eq!(semi, profiles[1].1, "the same place in both runs, wherever they were loaded");
    let load = both.load(semi).unwrap();
    assert_eq!((load.executions, load.values[0].value, load.values[0].lower), (2 * COUNT, 42, 28_000));
}
