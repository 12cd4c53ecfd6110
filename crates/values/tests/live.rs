//! Slots whose masks are applied at the source give what they give when their reader applies them to the full stream.

#[path = "../../event/tests/synthetic/mod.rs"]
mod synthetic;

use proptest::prelude::*;
use sonde_event::check::Check;
use sonde_event::{Access, Decoder, Detail, Reader};
use sonde_values::filter::SourceFilter;
use sonde_values::slots::table::Learned;
use sonde_values::slots::{SlotConfig, SlotProfiler, SlotReader};
use sonde_values::{ExactConfig, ExactReader, Lfsr};
use sonde_wire::unwatched::place;
use sonde_x64::memory::Value;
use sonde_x64::plan::{Detail as PlanDetail, ExitKind, Watch};
use std::collections::BTreeMap;
use synthetic::{BASE, CODE, Described, describe_watched};

/// A pass through the program: which superblock and exit, what each of its loads gives, and whether what is masked by
/// then is told to the source before it.
#[derive(Clone, Debug)]
struct Pass {
    kind: u8,
    values: [u64; 2],
    publish: bool,
}

fn passes() -> impl Strategy<Value = Vec<Pass>> {
    let value = || prop_oneof![Just(7u64), 0..3u64, any::<u64>()];
    let pass = (0..4u8, value(), value(), prop::bool::weighted(0.05));
    // Runs of equal passes: otherwise no slot ever gets sure of anything.
    prop::collection::vec((pass, 1..40usize), 1..60).prop_map(|runs| {
        let one = |(kind, a, b, publish)| Pass { kind, values: [a, b], publish };
        runs.into_iter().flat_map(|(pass, n)| std::iter::repeat_n(one(pass), n)).collect()
    })
}

/// What the source was told: hash function and bits.
type Told = Option<(u8, Vec<u64>)>;

fn wants(told: &Told, pc: u64) -> bool {
    told.as_ref().is_none_or(|(function, bits)| {
        let (word, bit) = place(pc, *function, bits.len());
        bits[word] & bit == 0
    })
}

/// A program that records what it was last told to.
struct Source {
    decoder: Decoder,
    blocks: Vec<Described>,
    next_exit: u32,
}

impl Source {
    fn new() -> Source {
        let mut source = Source { decoder: Decoder::new(Detail::Values), blocks: Vec::new(), next_exit: 0 };
        source.translate(&None, true);
        source
    }

    /// Makes new copies of all code.
    fn translate(&mut self, told: &Told, everything: bool) {
        let wanted = |pc: u64| wants(told, pc);
        let watch = if everything { Watch::All } else { Watch::Loads(&wanted) };
        self.blocks.clear();
        for pc in [BASE, BASE + 0x14, BASE + 0x20] {
            let block = describe_watched(&CODE, pc, self.next_exit, PlanDetail::Values, watch);
            self.decoder.describe(&block.words).unwrap();
            self.next_exit += 10;
            self.blocks.push(block);
        }
    }

    /// Records a pass.
    fn run(&mut self, pass: &Pass, reader: &mut impl Reader) {
        let (block, kind) = match pass.kind {
            0 => (&self.blocks[0], ExitKind::Taken),
            1 => (&self.blocks[0], ExitKind::Call),
            2 => (&self.blocks[1], ExitKind::Return),
            _ => (&self.blocks[2], ExitKind::Return),
        };
        let mut values = BTreeMap::new();
        for (r, value) in block.plan.refs.iter().filter(|r| r.access == Access::Load).zip(pass.values) {
            if let Value::Word { index, .. } = r.value {
                values.insert(usize::from(index), value);
            }
        }
        let record = block.record(block.exit(kind), |i| values.get(&i).copied().unwrap_or(0x1_0000));
        let log = [synthetic::begin(1, 5, BASE), record].concat();
        self.decoder.log(1, &log, reader).unwrap();
    }
}

/// The loads of a pass that have a value, in order. What repeats has none and comes before the function's other load.
fn loads(pass: &Pass) -> Vec<(u64, u64)> {
    match pass.kind {
        0 | 1 => vec![(BASE, pass.values[0]), (BASE + 3, pass.values[1])],
        2 => vec![],
        _ => vec![(BASE + 0x22, pass.values[1] & 0xff)],
    }
}

fn config(resample: u64, slots: usize) -> SlotConfig {
    SlotConfig {
        slots,
        failed_limit: 4,
        patience: 40,
        resample,
        least: 1,
        visits: 2,
        ever_later: true,
        ..SlotConfig::default()
    }
}

fn learned(profiler: &SlotProfiler) -> BTreeMap<u64, Learned> {
    profiler.table().loads().map(|(pc, learned)| (pc, learned.clone())).collect()
}

fn told_by(reader: &SlotReader) -> Told {
    let table = reader.profiler().filters().masked();
    Some((table.function(), table.bits().to_vec()))
}

/// The simple way: all loads by themselves, filtered by what the source was told and by what is wanted now.
fn twin(passes: &[Pass], told: &[Told], config: SlotConfig, seed: u32) -> SlotProfiler {
    let mut profiler = SlotProfiler::new(config, Lfsr::new(seed)).unwrap();
    for (pass, told) in passes.iter().zip(told) {
        let all = loads(pass);
        let at_first: Vec<bool> = all.iter().map(|(pc, _)| profiler.filters().wants(*pc)).collect();
        for ((pc, value), wanted) in all.iter().zip(at_first) {
            if wanted && wants(told, *pc) && profiler.filters().wants(*pc) {
                profiler.sample(*pc, *value);
            }
        }
        profiler.elapsed(all.len() as u64);
    }
    profiler
}

proptest! {
    // Each case has tables of 128 KiB.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn masks_at_the_source_are_masks_at_the_reader(
        passes in passes(),
        resample in prop_oneof![Just(0u64), 100..1500u64],
        slots in 1..4usize,
        seed: u32,
    ) {
        let config = config(resample, slots);
        let reader = || SlotReader::new(config, Lfsr::new(seed)).unwrap();
        let (mut full, mut live) = (Source::new(), Source::new());
        let (mut on_full, mut on_live, mut check) = (reader(), reader(), Check::default());
        let mut exact = ExactReader::new(ExactConfig::default()).unwrap();
        let mut told: Vec<Told> = Vec::new();
        let mut now = None;
        live.translate(&now, false);
        for pass in &passes {
            if pass.publish {
                now = told_by(&on_live);
                live.translate(&now, false);
            }
            told.push(now.clone());
            live.run(pass, &mut (&mut on_live, (&mut exact, &mut check)));
            full.run(pass, &mut on_full);
        }
        let simple = twin(&passes, &told, config, seed);
        prop_assert_eq!(on_live.profiler().stats(), simple.stats());
        prop_assert_eq!(learned(on_live.profiler()), learned(&simple));
        if resample == 0 {
            // Masks only grow: what is wanted was recorded, however late the source was told.
            prop_assert_eq!(on_live.profiler().stats(), on_full.profiler().stats());
            prop_assert_eq!(learned(on_live.profiler()), learned(on_full.profiler()));
        }
        prop_assert_eq!(check.by_rule.keys().filter(|r| **r == sonde_event::check::Rule::Unrecorded).count(), 0);
        let values = |passes: &[Pass]| passes.iter().map(loads).map(|l| l.len() as u64).sum::<u64>();
        let (full, exact) = (on_full.finish(full.decoder.catalog()), exact.finish(live.decoder.catalog()));
        let live = on_live.finish(live.decoder.catalog());
        live.check().map_err(TestCaseError::fail)?;
        exact.check().map_err(TestCaseError::fail)?;
        prop_assert_eq!((full.totals.masked, full.totals.profiled), (0, values(&passes)));
        prop_assert_eq!(live.totals.profiled, full.totals.profiled);
        prop_assert_eq!(live.totals.loads, full.totals.loads);
        let logged: u64 = live.timeline.iter().map(|s| s.logged).sum();
        prop_assert_eq!(logged + live.totals.masked, live.totals.profiled, "nothing is lost silently");
        prop_assert_eq!(live.timeline.last().map_or(0, |s| s.loads), live.totals.profiled);
        for load in &live.loads {
            prop_assert_eq!(Some(load.executions), full.load(load.pc).map(|l| l.executions).or(Some(load.executions)));
        }
        // What the exact reader did not see may have been anything, and it says so.
        let mut truth: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        passes.iter().flat_map(loads).for_each(|pair| *truth.entry(pair).or_default() += 1);
        for ((pc, value), count) in truth {
            if let Some(load) = exact.load(pc) {
                let bound = load.value(value);
                prop_assert!(bound.lower <= count && count <= bound.upper, "{pc:#x} {value:#x} {count} {bound:?}");
            }
        }
    }
}

#[test]
fn a_source_is_told_when_masks_spare_enough() {
    let config = SlotConfig { publish_after: 1000, ..config(0, 4) };
    let mut reader = SlotReader::new(config, Lfsr::new(1)).unwrap();
    let mut source = Source::new();
    let pass = Pass { kind: 0, values: [7, 8], publish: false };
    assert_eq!(reader.unwatched(), None);
    for _ in 0..2000 {
        source.run(&pass, &mut reader);
    }
    let told = reader.unwatched().map(|u| (u.function, u.bits.to_vec()));
    assert!(!wants(&told, BASE) && !wants(&told, BASE + 3) && wants(&told, BASE + 0x22));
    assert_eq!(reader.unwatched(), None);
    assert_eq!(reader.publications(), 1);
    source.translate(&told, false);
    for _ in 0..2000 {
        source.run(&pass, &mut reader);
    }
    let profile = reader.finish(source.decoder.catalog());
    assert_eq!((profile.totals.profiled, profile.totals.masked), (8000, 4000));
    assert_eq!(profile.load(BASE).map(|l| (l.executions, l.values[0].value)), Some((4000, 7)));
}
