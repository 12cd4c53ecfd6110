//! Shares of time from bursts: two loops that take the same time get the same share, however long their bodies are.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;

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
