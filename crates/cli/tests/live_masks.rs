//! Values of loads while the engine records ever fewer of them: the program does what it does, what is known stays right,
//! and every load is counted.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;
use sonde_profile::Profile;
use sonde_values::{LoadValues, ValueProfile};

/// Enough that what is decided still reaches the program: it is ahead by what waits to be read.
const COUNT: u64 = 3_000_000;
const MASKS: [&str; 5] = ["--what", "values", "--value-method", "slots", "--live-masks"];

/// Runs a program and gives its output, the report, and the values.
fn masked(bench: &Bench, program: &str, more: &[&str]) -> (String, Value, ValueProfile) {
    let args =
        [&["run"], &MASKS[..], more, &["--json=r.json", "-o", "p.sonde", "-q", "--", program]].concat();
    let done = bench.sonde(&args).good();
    let json = std::fs::read(bench.path("r.json")).unwrap();
    let profile = Profile::read(&bench.path("p.sonde")).unwrap();
    (done.text(), serde_json::from_slice(&json).unwrap(), profile.values.unwrap())
}

/// The load with this most frequent value that ran most often.
fn with_top(values: &ValueProfile, is: impl Fn(&LoadValues) -> bool) -> &LoadValues {
    let all = values.loads.iter().filter(|l| l.executions == COUNT && l.size == 8 && !l.values.is_empty());
    all.filter(|l| is(l)).max_by_key(|l| l.seen).expect("there is such a load")
}

#[test]
fn masks_let_recording_fall_and_the_values_stay_right() {
    let bench = Bench::new();
    let count = format!("-DCOUNT={COUNT}ul");
    let program = bench.compile("values", include_str!("programs/values.c"), &["-O1", &count]);
    let program = program.to_str().unwrap();
    let native = bench.command(program, &[]).output().unwrap();
    let always = ["--policy", "always", "--mask-step", "20000", "--value-resample", "2000000"];
    let (text, json, values) = masked(&bench, program, &always);
    let sum = |text: &str| text.lines().nth(1).unwrap().to_owned();
    assert_eq!(sum(&text), sum(&String::from_utf8_lossy(&native.stdout)));

    let (t, masks) = (values.totals, &json["live_masks"]);
    assert!(t.profiled > 5 * COUNT && t.masked > 0);
    assert!((t.profiled - t.masked) * 3 < t.profiled, "most loads are not recorded: {t:?}");
    assert_eq!(masks["executed"].as_u64(), Some(t.profiled));
    assert_eq!(masks["recorded"].as_u64(), Some(t.profiled - t.masked));
    assert_eq!(masks["looked_at"].as_u64(), Some(t.samples));
    assert!(masks["changes"].as_u64() > Some(1) && masks["superblocks_given_up"].as_u64() > Some(0));
    let stretches = masks["timeline"].as_array().unwrap();
    let share = |s: &Value| s["recorded"].as_f64().unwrap() / s["executed"].as_f64().unwrap().max(1.0);
    let least = stretches.iter().map(share).fold(1.0, f64::min);
    assert!(share(&stretches[0]) > 0.5 && least < 0.05, "{stretches:?}");

    // Values, and exact counts although nearly all executions were masked.
    let invariance = |l: &LoadValues| l.invariance(values.method);
    let invariant = with_top(&values, |l| l.values[0].value == 0x1122_3344_5566_7788);
    assert!(invariance(invariant).estimate > 0.999 && invariant.seen < COUNT / 2, "{invariant:?}");
    let semi = with_top(&values, |l| l.values[0].value == 42);
    assert!((invariance(semi).estimate - 0.7).abs() < 0.1, "{semi:?}");
    assert!(invariance(semi).lower <= 0.7 && invariance(semi).upper >= 0.7, "{semi:?}");
    let glacial = with_top(&values, |l| (1000..1004).contains(&l.values[0].value));
    assert!(glacial.values.len() > 1, "looking again found another value: {glacial:?}");
}

#[test]
fn bursts_and_counted_bursts_take_masks_too() {
    let bench = Bench::new();
    // A burst ends when the reader falls behind, which may be before it told the masks: the program goes on long enough for
    // others to meet them.
    let bursts = ["--period", "200us", "--burst", "100000000", "--mask-step", "5000"];
    let counter = ["--policy", "counter", "--burst", "1000:20000", "--mask-step", "5000"];
    for (policy, count) in [(bursts, 16 * COUNT), (counter, COUNT)] {
        let count = format!("-DCOUNT={count}ul");
        let program = bench.compile("values", include_str!("programs/values.c"), &["-O1", &count]);
        let (_, json, values) = masked(&bench, program.to_str().unwrap(), &policy);
        values.check().unwrap();
        assert!(json["live_masks"]["changes"].as_u64() > Some(0), "{policy:?}: {}", json["live_masks"]);
        assert!(values.totals.masked > 0 && json["error"].is_null(), "{policy:?}: {json}");
    }
}

#[test]
fn what_needs_every_load_is_refused_beside_masks() {
    let bench = Bench::new();
    let refused = |args: &[&str], why: &str| {
        let done = bench.sonde(&[&["run"], args, &["--", "true"]].concat());
        assert!(done.status == Some(2) && done.err.contains(why), "{args:?}: {:?} {}", done.status, done.err);
    };
    let slots = ["--value-method", "slots", "--live-masks"];
    refused(&[&slots[..], &["--what", "values,streams"]].concat(), "--what streams needs");
    refused(&[&slots[..], &["--what", "values,loops"]].concat(), "--what loops needs");
    refused(&slots, "leaves out what --what");
    refused(&["--live-masks", "--what", "values"], "--value-method slots");
    refused(&["--live-masks", "--what", "calls", "--value-method", "slots"], "is for --what values");
    refused(&[&MASKS[..], &["--record", "addresses"]].concat(), "--record values");
    refused(&[&MASKS[..], &["--follow"]].concat(), "--follow");
    refused(&["--mask-step", "5"], "--live-masks");
}
