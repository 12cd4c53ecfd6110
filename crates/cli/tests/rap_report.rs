//! `sonde rap` from end to end: what the reports say, and that they keep their promises.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod common;

use common::{lines, rap};
use serde_json::Value;

/// 60 % at one value, 25 % spread over a page around it, the rest spread over 2^32.
fn skewed(events: u64) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let random = |state: &mut u64| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    };
    (0..events)
        .map(|_| match random(&mut state) % 100 {
            0..60 => 0x40_1000,
            60..85 => 0x40_1000 + random(&mut state) % 4096,
            _ => random(&mut state) >> 32,
        })
        .collect()
}

fn text(numbers: &[u64]) -> String {
    numbers.iter().map(|number| format!("{number}\n")).collect()
}

fn number(hex: &Value) -> u64 {
    u64::from_str_radix(hex.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

#[test]
fn json_keys_are_stable_and_bounds_hold() {
    let numbers = skewed(200_000);
    let report = rap(&["--json", "--eps", "1%"], text(&numbers)).json();
    let events = report["events"].as_u64().unwrap();
    assert_eq!(events, 200_000);
    assert_eq!((&report["eps"], &report["branching"]), (&0.01.into(), &4.into()));
    for key in ["eps_effective", "nodes", "nodes_max", "memory_bytes", "skipped", "coverage"] {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert!(!report["hot"].as_array().unwrap().is_empty());
    for hot in report["hot"].as_array().unwrap() {
        let (lo, hi) = (number(&hot["lo"]), number(&hot["hi"]));
        let truth = numbers.iter().filter(|&&number| lo <= number && number <= hi).count() as u64;
        let [lower, upper, total, own] =
            ["lower", "upper", "total", "own"].map(|key| hot[key].as_u64().unwrap());
        assert!(lower <= truth && truth <= upper, "{hot}: {truth}");
        assert!(upper - lower <= events / 100, "{hot}");
        assert!(own <= total && hot["own_share"].as_f64().unwrap() >= 0.1);
        assert_eq!(hot["total_share"].as_f64().unwrap(), total as f64 / events as f64);
    }
}

#[test]
fn exact_shows_the_true_error() {
    let numbers = skewed(100_000);
    let report = rap(&["--json", "--exact", "--eps", "5%"], text(&numbers)).json();
    for hot in report["hot"].as_array().unwrap() {
        let (lo, hi) = (number(&hot["lo"]), number(&hot["hi"]));
        let truth = numbers.iter().filter(|&&number| lo <= number && number <= hi).count() as u64;
        assert_eq!(hot["exact_total"], truth);
        let error = (truth - hot["total"].as_u64().unwrap()) as f64 / 100_000.0;
        assert!((hot["error_share"].as_f64().unwrap() - error).abs() < 1e-12 && error <= 0.05);
    }
    let shown = rap(&["--exact"], text(&numbers)).out;
    assert!(shown.contains("true     error"), "{shown}");
}

#[test]
fn the_text_report_has_facts_bars_and_branches() {
    let report = rap(&["--hot", "10%"], text(&skewed(200_000))).out;
    let mut facts = report.lines();
    assert!(facts.next().unwrap().starts_with("events    200,000 of u64"), "{report}");
    for part in
        ["error     eps 1 %", "memory    ", "coverage  50 % in 1 single value", "80 % in ", "95 % in "]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    let hottest = report.lines().find(|line| line.ends_with("0x401000")).expect(&report);
    assert!(hottest.contains("████████████") && hottest.contains("─ 0x401000"), "{report}");
}

#[test]
fn networks_are_shown_in_cidr_form() {
    let text: String = (0..4096).map(|n| format!("10.7.{}.{}\n", n / 256, n % 256)).collect();
    let report = rap(&["--hot", "90%"], &text).out;
    assert!(report.contains("10.7.0.0/20"), "{report}");
    let text: String = (0..256).map(|n| format!("2001:db8::{n:x}\n")).collect();
    let report = rap(&["--hot", "100%"], &text).out;
    assert!(report.contains("2001:db8::/120"), "{report}");
}

#[test]
fn wrong_usage_has_status_2_and_says_what_to_do() {
    for (args, hint) in [
        (&["--eps", "0"][..], "above 0"),
        (&["--eps", "100%"], "below 1"),
        (&["--hot", "x"], "1%"),
        (&["-b", "3"], "2, 4, 8 or 16"),
        (&["-q", "1"], "above 1"),
        (&["--max-memory", "12"], "at least"),
        (&["--buffer", "lots"], "unlimited"),
        (&["--column", "0"], "from 1"),
        (&["--columns", "1"], "--column"),
        (&["--columns", "1,2,3,4"], "two or three"),
        (&["--columns", "1,2", "--type", "ipv6"], "not 128-bit"),
        (&["--column", "1", "--columns", "1,2"], "cannot be used"),
        (&["--format", "u64le", "--column", "1"], "binary"),
        (&["--format", "u64le", "--columns", "2,1"], "successive"),
        (&["--format", "u64le", "--type", "ipv4"], "u64"),
        (&["--separator", "ab"], "one ASCII character"),
        (&["--json", "--dump"], "cannot be used"),
        (&["--nonsense"], "--help"),
    ] {
        let run = rap(args, "1\n");
        assert_eq!(run.status, 2, "{args:?}: {}", run.err);
        assert!(run.err.contains(hint), "{args:?}: {}", run.err);
    }
}

#[test]
fn a_cold_stream_says_that_nothing_is_hot() {
    let input = text(&(0..1000).map(|n| n * 1_000_003).collect::<Vec<_>>());
    let report = rap(&["--hot", "100%", "--type", "u128"], &input).out;
    assert!(report.contains("100 %"), "{report}");
}

#[test]
fn dump_prints_the_whole_tree() {
    let dump = rap(&["--dump"], lines("7", 3) + "9\n").out;
    assert!(dump.lines().count() >= 2 && dump.contains('7') && dump.contains('9'), "{dump}");
}

#[test]
fn help_has_examples_and_pipes_stay_quiet() {
    let help = rap(&["--help"], "").out;
    assert!(help.contains("Examples:") && help.contains("Exit status"), "{help}");
    let run = rap(&[], lines("1", 1000));
    assert_eq!(run.err, "");
}
#[test]
fn options_reach_the_tree() {
    let input = text(&skewed(100_000));
    for b in ["2", "4", "8", "16"] {
        assert_eq!(rap(&["--json", "-b", b], &input).json()["branching"].to_string(), b);
    }
    assert_eq!(rap(&["--json", "-q", "4", "--eps", "0.05"], &input).json()["merge_ratio"], 4.0);
    for buffer in ["none", "auto", "unlimited", "1K", "64K"] {
        assert_eq!(rap(&["--json", "--buffer", buffer], &input).json()["events"], 100_000);
    }
    let tight = rap(&["--json", "--max-memory", "16K", "--eps", "0.01%"], &input).json();
    assert!(tight["memory_bytes"].as_u64().unwrap() <= 16 << 10, "{tight}");
    assert!(tight["eps_effective"].as_f64().unwrap() > 0.0001, "{tight}");
    let said = rap(&["--max-memory", "16K", "--eps", "0.01%"], &input).out;
    assert!(said.contains("eps 0.01 % was asked for"), "{said}");
}

#[test]
fn a_smaller_eps_takes_more_nodes() {
    let input = text(&skewed(100_000));
    let nodes = |eps| rap(&["--json", "--eps", eps], &input).json()["nodes_max"].as_u64().unwrap();
    assert!(nodes("10%") < nodes("1%") && nodes("1%") < nodes("0.1%"));
}
