//! What profiling costs is kept within `--max-overhead`, and told; shares of time stay right where bursts get rarer.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;

const PHASES: &str = include_str!("programs/phases.c");

/// Bursts so long that each takes a large part of the time between them to record and to read.
const DEAR: [&str; 4] = ["--burst", "20000", "--what", "all"];

fn number(report: &Value, key: &str) -> f64 {
    report[key].as_f64().unwrap_or_else(|| panic!("{key}: {report}"))
}

#[test]
fn dear_bursts_are_made_rarer_and_that_is_told() {
    let bench = Bench::new();
    let program = bench.compile("phases", PHASES, &["-O1", "-g"]);
    let command = [program.to_str().unwrap(), "20", "40000000"];
    let (_, free) = bench.report(&[&DEAR[..], &["--max-overhead", "off"]].concat(), &command);
    let (_, held) = bench.report(&[&DEAR[..], &["--max-overhead", "2%", "-o", "p"]].concat(), &command);
    assert!(free["max_overhead"].is_null() && free["bursts_left_out"] == 0, "{free}");
    assert_eq!(number(&held, "max_overhead"), 0.02);
    // What was due is had or left out; at the start bursts come as asked for.
    let (had, left_out) = (number(&held, "bursts"), number(&held, "bursts_left_out"));
    let asked_for = number(&held, "cpu_seconds") / number(&held, "period_seconds");
    assert!(had >= 20.0 && had < 0.7 * number(&free, "bursts"), "{held}\n{free}");
    assert!((0.6..1.2).contains(&((had + left_out) / asked_for)), "{had} {left_out} {asked_for}");
    let mean = number(&held, "mean_period_seconds") / number(&held, "period_seconds");
    assert!(mean > 1.4 && mean <= 16.01, "{held}");
    assert!(number(&held, "total_overhead") < 0.7 * number(&free, "total_overhead"), "{held}\n{free}");
    // The profile tells the same.
    let told = bench.sonde(&["report", "p", "--section", "runs"]).good().text();
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("one every 20 ms, made rarer to every"), "{told}");
    assert!(told.contains("to keep within 2 % (--max-overhead)") && told.contains("in all"), "{told}");
}

/// Bursts of one phase take many times as long to read as those of the other, and get rarer: counted one by one they would
/// have a small part of what they stand for.
#[test]
fn phases_have_their_shares_whatever_their_bursts_cost() {
    let bench = Bench::new();
    let program = bench.compile("phases", PHASES, &["-O1", "-g"]);
    for turns in [["1", "800000000"], ["20", "40000000"]] {
        let options = ["--period", "2ms", "--burst", "5000", "--max-overhead", "10%"];
        let (done, report) = bench.report(&options, &[&[program.to_str().unwrap()], &turns[..]].concat());
        let truth: f64 = done.text().split_whitespace().next().unwrap().parse().unwrap();
        let hot = report["hot_code"].as_array().unwrap();
        let its: Vec<&Value> = hot.iter().filter(|hot| hot["function"] == "memory_phase").collect();
        let share: f64 = its.iter().map(|hot| number(hot, "own_share")).sum();
        let plus_minus = its.iter().map(|hot| number(hot, "plus_minus")).fold(0.0, f64::max);
        assert!(number(&report, "bursts_left_out") > 0.0, "{report}");
        // The ± is 95 %: twice that hardly ever fails by chance.
        assert!(
            plus_minus < 0.2 && (share - truth).abs() < 2.0 * plus_minus,
            "{share} ± {plus_minus}, not {truth}"
        );
    }
}

#[test]
fn a_limit_is_for_bursts_and_gives_way_to_what_is_asked_for() {
    let bench = Bench::new();
    let of = |options: &[&str]| bench.report(options, &["true"]).1["max_overhead"].as_f64();
    assert_eq!(of(&[]), Some(0.025));
    assert_eq!(of(&["--period", "20ms"]), None);
    assert_eq!(of(&["--rate", "1%"]), None);
    assert_eq!(of(&["--period", "20ms", "--max-overhead", "4"]), Some(0.04));
    assert_eq!(of(&["--rate", "1%", "--max-overhead", "0.5%"]), Some(0.005));
    assert_eq!(of(&["--max-overhead", "0"]), None);
    assert_eq!(of(&["--policy", "always"]), None);
    let refused = |options: &[&str]| bench.sonde(&[&["run"], options, &["--", "true"]].concat()).err;
    assert!(refused(&["--policy", "always", "--max-overhead", "3%"]).contains("for --policy bursts"));
    assert!(refused(&["--max-overhead", "0.04"]).contains("write 0.04% or 4%"));
    assert!(refused(&["--max-overhead", "much"]).contains("such as 4%"));
}

/// The other triggers are told the period through the shared memory, or by the kernel.
#[test]
fn timers_and_perf_events_get_rarer_too() {
    let bench = Bench::new();
    let program = bench.compile("phases", PHASES, &["-O1", "-g"]);
    let command = [program.to_str().unwrap(), "20", "40000000"];
    for trigger in ["timer", "perf"] {
        if trigger == "perf" && !sonde::perf_is_allowed(&bench) {
            continue;
        }
        let of = |limit: &str| {
            bench.report(&[&DEAR[..], &["--trigger", trigger, "--max-overhead", limit]].concat(), &command).1
        };
        let (free, held) = (of("off"), of("1%"));
        assert!(number(&held, "bursts") < 0.7 * number(&free, "bursts"), "{trigger}: {held}\n{free}");
    }
}
