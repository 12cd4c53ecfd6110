//! The readers on a made-up stream, held against the simple way through it.

#[path = "../../event/tests/synthetic/mod.rs"]
mod synthetic;

use sonde_event::{Access, Catalog, Decoder, Detail, Reader, Run};
use sonde_values::race::{Entrant, Race, RaceConfig};
use sonde_values::slots::{SlotConfig, SlotReader};
use sonde_values::{
    ExactConfig, ExactReader, Kinds, Lfsr, Method, SamplingConfig, SamplingReader, TableConfig, ValueProfile,
};
use sonde_x64::plan::ExitKind;
use std::collections::BTreeMap;
use synthetic::{BASE, program};

/// Keeps every load that has a value, by the reader interface alone.
#[derive(Default)]
struct Simple {
    counts: BTreeMap<u64, BTreeMap<u64, u64>>,
    loads: u64,
}

impl Reader for Simple {
    fn run(&mut self, run: &Run<'_>) {
        for r in run.references().filter(|r| r.access == Access::Load) {
            self.loads += 1;
            let is_return = r.pc == BASE + 0x14 || r.pc == BASE + 0x2b;
            if let Some(value) = r.value.filter(|_| r.count == 1 && !is_return) {
                *self.counts.entry(r.pc).or_default().entry(value).or_insert(0) += 1;
            }
        }
    }
}

/// A log in which word `i` of round `n` is what `value` gives.
fn log(rounds: u64, value: impl Fn(u64, usize) -> u64) -> Vec<u64> {
    let [body, after, function] = program(Detail::Values);
    let mut log = synthetic::begin(1, 5, BASE);
    for n in 0..rounds {
        for _ in 0..3 {
            log.extend(body.record(body.exit(ExitKind::Taken), |i| value(n, i)));
        }
        log.extend(body.record(body.exit(ExitKind::Call), |i| value(n, i)));
        log.extend(function.record(function.exit(ExitKind::Return), |i| value(n, i)));
        log.extend(after.record(after.exit(ExitKind::Return), |i| value(n, i)));
    }
    log
}

fn decoder() -> Decoder {
    let mut decoder = Decoder::new(Detail::Values);
    program(Detail::Values).iter().for_each(|s| decoder.describe(&s.words).unwrap());
    decoder
}

fn read<R: Reader, P>(mut reader: R, log: &[u64], finish: impl FnOnce(R, &Catalog) -> P) -> P {
    let mut decoder = decoder();
    decoder.log(1, log, &mut reader).unwrap();
    finish(reader, decoder.catalog())
}

fn exact(config: ExactConfig, log: &[u64]) -> ValueProfile {
    read(ExactReader::new(config).unwrap(), log, ExactReader::finish)
}

#[test]
fn the_exact_reader_finds_what_the_reader_interface_gives() {
    let log = log(500, |n, i| if i % 2 == 0 { n % 3 } else { (n / 100) << 20 | 0x42 });
    let simple = read(Simple::default(), &log, |s, _| s);
    let profile = exact(ExactConfig::default(), &log);
    profile.check().unwrap();
    assert_eq!(profile.method, Method::Exact);
    let found: BTreeMap<u64, BTreeMap<u64, u64>> =
        profile.loads.iter().map(|l| (l.pc, l.values.iter().map(|v| (v.value, v.lower)).collect())).collect();
    assert_eq!(found, simple.counts);
    for load in &profile.loads {
        let n: u64 = simple.counts[&load.pc].values().sum();
        assert_eq!((load.seen, load.executions, load.unlisted), (n, n, 0), "{:#x}", load.pc);
        assert!(load.values.iter().all(|v| v.lower == v.upper));
    }
    let t = profile.totals;
    assert_eq!((t.loads, t.samples), (simple.loads, t.profiled));
    assert_eq!((t.returns, t.without_value), (1000, 500), "two returns a round, and what rep movsb moves");
}

#[test]
fn returns_are_profiled_if_asked_for() {
    let config = ExactConfig { kinds: Kinds { returns: true }, ..ExactConfig::default() };
    let profile = exact(config, &log(100, |n, _| n));
    profile.check().unwrap();
    assert_eq!(profile.totals.returns, 0);
    let of_function = profile.load(BASE + 0x2b).unwrap();
    assert_eq!((of_function.values.len(), of_function.values[0].value), (1, BASE + 0x14));
    // Where the last return went is not in the log any more.
    let last = profile.load(BASE + 0x14).unwrap();
    assert_eq!((last.executions, last.seen, last.values[0].value), (100, 99, BASE));
}

#[test]
fn sampling_every_load_is_exact_and_every_nth_takes_the_nth() {
    let log = log(300, |n, i| n * 10 + i as u64);
    let sampled = |every| {
        let config = SamplingConfig { every, ..SamplingConfig::default() };
        read(SamplingReader::new(config, None).unwrap(), &log, SamplingReader::finish)
    };
    let (all, one) = (exact(ExactConfig::default(), &log), sampled(1));
    assert_eq!(one.totals, all.totals);
    for (a, b) in all.loads.iter().zip(&one.loads) {
        assert_eq!((a.pc, &a.values, a.executions), (b.pc, &b.values, b.executions));
        assert_eq!(b.glacial, None);
    }
    for every in [2, 7, 9, 100, 100_000] {
        let profile = sampled(every);
        profile.check().unwrap();
        assert_eq!(profile.totals.samples, all.totals.profiled / every, "every {every}");
    }
    // 9 loads with a value in a round: every ninth is always the last of them.
    let ninth = sampled(9);
    assert_eq!(all.totals.profiled, 9 * 300);
    assert_eq!(ninth.loads.iter().map(|l| (l.pc, l.seen)).collect::<Vec<_>>(), [(BASE + 0x22, 300)]);
}

#[test]
fn slots_learn_the_values_and_then_want_nothing() {
    let log = log(20_000, |_, i| i as u64);
    let config = SlotConfig { slots: 16, failed_limit: 16, patience: 2000, ..SlotConfig::default() };
    let mut reader = SlotReader::new(config, Lfsr::new(1)).unwrap();
    let mut decoder = decoder();
    decoder.log(1, &log, &mut reader).unwrap();
    assert!(reader.profiler().is_complete());
    let points = reader.recorded().points();
    let last = points.last().unwrap();
    assert_eq!((last.loads, last.recorded), (180_000, 0), "{points:?}");
    assert_eq!(last.skipped, last.passes);
    assert!(points[0].recorded > 0);
    let mask = reader.profiler().source_mask();
    let memory = reader.memory_bytes();
    let profile = reader.finish(decoder.catalog());
    profile.check().unwrap();
    let exact = exact(ExactConfig::default(), &log);
    assert_eq!(profile.loads.iter().map(|l| l.pc).collect::<Vec<_>>(), mask.masked);
    assert_eq!(mask.masked, exact.loads.iter().map(|l| l.pc).collect::<Vec<_>>());
    for (a, b) in exact.loads.iter().zip(&profile.loads) {
        assert_eq!((a.executions, a.values[0].value), (b.executions, b.values[0].value));
        assert!(b.invariance(profile.method).estimate > 0.999);
    }
    assert!(profile.totals.samples < 20_000, "{}", profile.totals.samples);
    assert!(memory > 0 && memory < 1 << 20, "{memory}");
}

#[test]
fn the_same_seed_gives_the_same_profile() {
    let log = log(5000, |n, i| n * i as u64 % 4);
    let run = |seed| {
        let config = SlotConfig { slots: 2, failed_limit: 30, ..SlotConfig::default() };
        read(SlotReader::new(config, Lfsr::new(seed)).unwrap(), &log, SlotReader::finish)
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn a_race_judges_all_on_the_same_stream() {
    let log = log(20_000, |n, i| if n % 10 < 7 { i as u64 } else { n });
    let race = Race::new(RaceConfig { stretch: 10_000, ..RaceConfig::default() }).unwrap();
    let result = read(race, &log, Race::finish);
    assert_eq!(result.exact, exact(ExactConfig::default(), &log));
    assert_eq!(result.rows.len(), 14);
    for row in &result.rows {
        row.profile.check().unwrap();
        // Of 180,000 loads a sampler that takes one in thousands knows little.
        let often = !matches!(&row.entrant, Entrant::Sampling(c, _) if c.every > 1024);
        assert!(row.score.pairs >= 3 && (!often || row.score.rms < 0.2), "{:?} {:?}", row.entrant, row.score);
        assert!(row.curve.len() >= 8 && row.curve.len() < 32);
        assert!(row.curve.windows(2).all(|p| p[0].loads < p[1].loads));
        assert!(row.curve.windows(2).all(|p| p[0].cost.recorded <= p[1].cost.recorded));
    }
    let slots = &result.rows[1];
    let equal = result.sampler_of_equal_overhead(slots).unwrap();
    assert!(equal.overhead >= slots.overhead && equal.stats.is_none());
}

#[test]
fn the_start_can_be_left_out() {
    let log = log(1000, |n, _| u64::from(n >= 500));
    let race = Race::new(RaceConfig { skip: 6000, ..RaceConfig::default() }).unwrap();
    let result = read(race, &log, Race::finish);
    // 12 loads a round, the returns and the moved bytes counted: 500 rounds are left out.
    assert!(result.exact.loads.iter().all(|l| l.values.len() == 1), "{:?}", result.exact.loads);
}

#[test]
fn memory_stays_within_bounds_whatever_the_values() {
    let config = ExactConfig {
        table: TableConfig { counters: 8, ..TableConfig::default() },
        ..ExactConfig::default()
    };
    let mut reader = ExactReader::new(config).unwrap();
    let mut decoder = decoder();
    decoder.log(1, &log(100, |n, i| n * 1000 + i as u64), &mut reader).unwrap();
    let early = reader.memory_bytes();
    decoder.log(1, &log(50_000, |n, i| n * 1000 + i as u64), &mut reader).unwrap();
    assert_eq!(reader.memory_bytes(), early);
    let profile = reader.finish(decoder.catalog());
    profile.check().unwrap();
    assert!(profile.loads.iter().all(|l| l.values.len() <= 8));
}
