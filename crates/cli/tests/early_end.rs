//! Sonde is killed while it starts a program, at moments all over the start: nothing of it may stay behind, and a program that has
//! begun goes on to its end. `sonde-bench early-kill` does the same at every moment.

use std::path::Path;

use sonde_harness::early_end::{Trials, ways};
use sonde_harness::support::Sonde;

/// Moments of each way to start.
const MOMENTS: u64 = 24;

#[test]
fn a_sonde_that_is_killed_while_it_starts_leaves_nothing_behind() {
    let sonde = Sonde::probe(Path::new(env!("CARGO_BIN_EXE_sonde")));
    let mut wrong = Vec::new();
    for way in ways(&sonde) {
        let folder = tempfile::tempdir().unwrap();
        let name = way.name;
        let mut trials = Trials::new(&sonde, way, folder.path()).unwrap();
        let all = trials.kill_at(u64::MAX).unwrap().expect("it ends by itself");
        assert!(all > MOMENTS, "{name}: {all} moments");
        for i in 0..MOMENTS {
            // Closer together at the begin, where something changes with each.
            let moment = all * i * i / (MOMENTS * MOMENTS) + i;
            trials.kill_at(moment).unwrap();
        }
        wrong.extend(trials.wrong());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
