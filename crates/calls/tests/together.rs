//! Passes that are told of together give what they give one by one.

#[path = "../../event/tests/synthetic/mod.rs"]
mod synthetic;

use proptest::prelude::*;
use sonde_calls::{CallsReader, Limits};
use sonde_event::{Begin, Cause, Decoder, Detail, End, Reader, Run};
use synthetic::{BASE, begin, end, program};

/// Lets a reader see one pass at a time.
struct OneByOne<R>(R);

impl<R: Reader> Reader for OneByOne<R> {
    fn begin(&mut self, begin: &Begin) {
        self.0.begin(begin);
    }
    fn run(&mut self, run: &Run<'_>) {
        self.0.run(run);
    }
    fn end(&mut self, end: &End) {
        self.0.end(end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn both_ways_agree(
        bursts in prop::collection::vec(prop::collection::vec((0..3usize, 0..4usize), 0..80), 1..8),
        weight in prop::option::of(1_000_000u64..1_000_000_000),
    ) {
        let program = program(Detail::Blocks);
        let mut decoder = Decoder::new(Detail::Blocks);
        program.iter().for_each(|d| decoder.describe(&d.words).unwrap());
        let make = || CallsReader::new(Limits::default(), weight);
        let mut both = (make(), OneByOne(make()));
        for passes in &bursts {
            let mut log = begin(1, 1, BASE);
            for &(block, exit) in passes {
                let described = &program[block];
                log.extend(described.record(exit % described.plan.exits.len(), |_| 0));
            }
            log.extend(end(100, Cause::Checks, 0x40_2000));
            decoder.log(1, &log, &mut both).unwrap();
        }
        let (together, OneByOne(one_by_one)) = both;
        let (together, one_by_one) = (together.finish(), one_by_one.finish());
        prop_assert!(together.instructions > 0 || bursts.iter().all(Vec::is_empty));
        prop_assert_eq!(together, one_by_one);
    }
}
