//! Shares of time from bursts: two loops that take the same time get the same share, however long their bodies are.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;

const WAITS: &str = include_str!("programs/waits.c");
const TWO_LOOPS: &str = include_str!("programs/two_loops.c");

fn share(report: &Value, function: &str) -> f64 {
    let hot = report["hot_code"].as_array().expect("a list");
    let its = hot.iter().filter(|hot| hot["function"] == function);
    its.map(|hot| hot["own_share"].as_f64().expect("a share")).sum()
}

#[test]
fn loops_of_equal_time_have_equal_shares() {
    let bench = Bench::new();
    let program = bench.compile("two_loops", TWO_LOOPS, &["-O1", "-g"]);
    let command = [program.to_str().unwrap(), "100"];
    // Default bursts but for the period: with n bursts the standard error of a share of one half is 0.5 / sqrt(n).
    let (_, bursts) = bench.report(&["--period", "2ms"], &command);
    let n = bursts["bursts"].as_f64().unwrap();
    assert!(n > 200.0, "{bursts}");
    let allowed = 4.0 * 0.5 / n.sqrt();
    let (tight, unrolled) = (share(&bursts, "tight_loop"), share(&bursts, "unrolled_loop"));
    assert!((tight - 0.5).abs() < allowed && (unrolled - 0.5).abs() < allowed, "{tight} {unrolled} of {n}");
    assert_eq!(bursts["unit"], "picoseconds");
    // The same where the period is adapted: each burst then stands for the time since the one before.
    let (_, adapted) = bench.report(&["--rate", "1%"], &command);
    let n = adapted["bursts"].as_f64().unwrap();
    let tight = share(&adapted, "tight_loop");
    assert!(n > 20.0 && (tight - 0.5).abs() < 6.0 * 0.5 / n.sqrt(), "{tight} of {n}: {adapted}");
    // Counted as they were recorded, the same bursts would say 5 instructions of one for 130 of the other.
    let (_, counted) = bench.report(&["--policy", "counter", "--burst", "1000000:1000"], &[command[0], "10"]);
    assert_eq!(counted["unit"], "events");
}

/// Code that waits for memory has few instructions for its time; beginnings of bursts give it its share all the same.
#[test]
fn beginnings_of_bursts_tell_what_waits() {
    let bench = Bench::new();
    let program = bench.compile("waits", WAITS, &["-O1", "-g"]);
    let command = ["run", "--quiet", "--period", "2ms", "-o", "p", program.to_str().unwrap(), "300000"];
    let own = bench.sonde(&command).good().text();
    let measured: f64 = own.split_whitespace().next().unwrap().parse().unwrap();
    let report = bench.sonde(&["report", "--json", "p"]).good();
    let report: Value = serde_json::from_slice(&report.out).unwrap();
    let functions = report["functions"].as_array().unwrap();
    let of = |name: &str| functions.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("{report}"));
    let number = |value: &Value| value.as_f64().unwrap();
    let begun = |name: &str| number(&of(name)["starts"]["share"]);
    let (waits, computes) = (begun("chase"), begun("compute"));
    let bursts = number(&of("chase")["starts"]["bursts"]) + number(&of("compute")["starts"]["bursts"]);
    assert!(bursts > 200.0, "{bursts}");
    // The setup is in neither.
    let share = waits / (waits + computes);
    assert!(
        (share - measured).abs() < 4.0 * 0.5 / bursts.sqrt(),
        "{share} of {bursts} bursts, measured {measured}"
    );
    let inside = number(&of("chase")["share"]);
    assert!(inside < 0.5 * waits, "by instructions {inside}, by beginnings {waits}");
    assert_eq!(of("chase")["starts"]["differs"], true);
    assert!(bench.sonde(&["report", "p"]).good().text().contains("chase waits for memory"));
}
