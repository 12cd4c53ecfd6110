//! Files that were written once stay readable, and mean the same.

use sonde_profile::diff::{DiffOptions, Pair};
use sonde_profile::{Ending, MergeOptions, Profile};
use sonde_summary::{Kind, Unit};
use std::path::Path;

fn fixture(name: &str) -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    Profile::read(&path).expect("a fixture is readable for ever")
}

/// A real run: `sonde run --period 2ms -o version-1.sonde -- /opt/example/program 6000` of a program with two functions.
#[test]
fn version_1() {
    let profile = fixture("version-1.sonde");
    assert_eq!(profile.check(), Ok(()));
    assert_eq!((profile.unknown_parts, profile.totals.runs), (0, 1));
    let run = &profile.runs[0];
    assert_eq!(run.command, ["/opt/example/program", "6000"]);
    assert_eq!((run.policy.as_str(), run.record.as_str(), run.period_ns), ("bursts", "values", 2_000_000));
    assert_eq!(run.ending, Ending::Status(0));
    assert!(run.bursts > 100 && profile.summary.bursts.count > 100);
    assert_eq!(profile.summary.unit, Unit::Picoseconds);
    assert!(profile.summary.regions.all().iter().any(|region| region.name == "/opt/example/program"));
    for kind in [Kind::Code, Kind::LoadAddresses, Kind::StoreAddresses, Kind::LoadValues, Kind::Edges] {
        assert!(profile.summary.of(kind).is_some_and(|tree| tree.events > 0), "{}", kind.name());
    }
    assert!(profile.calls.is_some() && profile.loops.is_some());
    let hot = &profile.loops.as_ref().unwrap().hottest()[0];
    assert!(hot.own_weight > 0.3 * profile.loops.as_ref().unwrap().weight);
}

#[test]
fn version_1_can_be_worked_with() {
    let profile = fixture("version-1.sonde");
    let mut twice = profile.clone();
    twice.merge(&profile, &MergeOptions::default()).unwrap();
    assert_eq!(twice.check(), Ok(()));
    let diff = Pair::new(&profile, &twice, DiffOptions::default()).unwrap().diff();
    assert!(diff.kinds.iter().all(|kind| kind.changes.is_empty()), "{diff:?}");
    let again = Profile::read_from(&profile.to_bytes().unwrap()[..], &Default::default()).unwrap();
    assert_eq!(again, profile);
}
