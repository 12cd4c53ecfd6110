//! Shares of time from bursts: two loops that take the same time get the same share, however long their bodies are, and
//! two phases theirs, however the pace of the bursts changes between them.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;

const WAITS: &str = include_str!("programs/waits.c");
const TWO_LOOPS: &str = include_str!("programs/two_loops.c");
const ALARM: &str = include_str!("programs/alarm.c");
const KERNEL: &str = include_str!("programs/kernel.c");
const SHORT_THREADS: &str = include_str!("programs/short_threads.c");
const PHASES: &str = include_str!("programs/phases.c");

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
    let done = bench.sonde(&command).good();
    assert!(done.err.is_empty(), "{}", done.err);
    let own = done.text();
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
    // The run itself says so, too.
    let (_, run) = bench.report(&["--period", "2ms"], &[program.to_str().unwrap(), "150000"]);
    assert!(
        run["waiting"][0]["function"] == "chase" && run["waiting"].as_array().unwrap().len() == 1,
        "{run}"
    );
    let waits = &run["waiting"][0];
    assert!(number(&waits["share"]) > 2.0 * number(&waits["recorded_share"]), "{waits}");
    let told = bench.sonde(&["run", "--period", "2ms", "--", program.to_str().unwrap(), "150000"]).good();
    assert!(told.err.contains("chase waits for memory"), "{}", told.err);
}

/// A burst that is asked for while the kernel works begins behind the system call: that code does not wait.
#[test]
fn time_of_the_kernel_is_nobodys_waiting() {
    let bench = Bench::new();
    let program = bench.compile("kernel", KERNEL, &["-O1", "-g"]);
    let command = ["run", "--quiet", "--period", "2ms", "-o", "p", program.to_str().unwrap(), "60"];
    bench.sonde(&command).good();
    let report = bench.sonde(&["report", "--json", "p"]).good();
    let report: Value = serde_json::from_slice(&report.out).unwrap();
    let functions = report["functions"].as_array().unwrap();
    let starts = |f: &&Value| f["starts"]["bursts"].as_u64().unwrap_or(0);
    let begun: u64 = functions.iter().map(|f| starts(&f)).sum();
    let behind = functions.iter().find(|f| f["name"] == "ask").as_ref().map_or(0, starts);
    let bursts = report["totals"]["bursts"].as_u64().unwrap();
    assert!(bursts > 50 && 4 * begun < 3 * bursts, "{begun} of {bursts} bursts began in user code");
    assert!(behind < bursts / 20, "{behind} of {bursts} bursts");
    assert!(!bench.sonde(&["report", "p"]).good().text().contains("ask waits"));
}

/// The pace starts slow, so that the first phase has too few bursts: counted as equals they would say half of the truth.
/// Weighed by the time since the one before, they are off by no more than the gaps at the borders.
#[test]
fn phases_have_their_shares_however_the_pace_adapts() {
    let bench = Bench::new();
    let program = bench.compile("phases", PHASES, &["-O1", "-g"]);
    let command = [program.to_str().unwrap(), "1", "500000000"];
    let (done, report) = bench.report(&["--rate", "1%"], &command);
    let printed = String::from_utf8(done.out).unwrap();
    let truth: f64 = printed.split_whitespace().next().unwrap().parse().unwrap();
    let seen = share(&report, "memory_phase");
    assert!((seen - truth).abs() < 0.06, "{seen}, not {truth}: {report}");
}

/// Threads that are gone before a period is over are seen in proportion to their time.
#[test]
fn short_threads_have_their_share() {
    let bench = Bench::new();
    let program = bench.compile("short_threads", SHORT_THREADS, &["-O1", "-g", "-pthread"]);
    // Some 4 ms each, and no gap of one that runs on is shorter than 10 ms.
    let (done, report) = bench.report(&["--period", "20ms"], &[program.to_str().unwrap(), "400", "2000000"]);
    let truth: f64 = done.text().split_whitespace().next().unwrap().parse().unwrap();
    let n = report["bursts"].as_f64().unwrap();
    assert!(n > 50.0, "{report}");
    let seen = share(&report, "short_life");
    assert!((seen - truth).abs() < 4.0 * 0.5 / n.sqrt(), "{seen} of {n} bursts, not {truth}: {report}");
}

/// Without the file that ran there are no functions: all of its code is one, and the report says why.
#[test]
fn a_file_that_is_gone_has_no_functions_but_a_share() {
    let bench = Bench::new();
    let program = bench.compile("two_loops", TWO_LOOPS, &["-O1", "-g"]);
    let options = ["run", "--quiet", "--period", "2ms", "-o", "p", program.to_str().unwrap(), "20"];
    bench.sonde(&options).good();
    std::fs::remove_file(&program).unwrap();
    let report = bench.sonde(&["report", "--section", "functions,missing", "p"]).good().text();
    let rows: Vec<&str> =
        report.lines().filter(|line| line.contains("two_loops (changed or gone)")).collect();
    assert_eq!(rows.len(), 1, "{report}");
    assert!(
        report.contains("has changed since, or is gone") && !report.contains("waits for memory"),
        "{report}"
    );
}

/// A thread that Sonde stops must not stand at the beginning of a handler more often than the handler takes time.
#[test]
fn handlers_have_no_more_than_their_share() {
    let bench = Bench::new();
    let program = bench.compile("alarm", ALARM, &["-O1", "-g"]);
    let (_, report) = bench.report(&["--period", "2ms", "--hot", "1%"], &[program.to_str().unwrap()]);
    assert!(report["bursts"].as_u64() > Some(50), "{report}");
    let (work, handler) = (share(&report, "spin"), share(&report, "handler"));
    assert!(work > 0.95 && handler < 0.04, "{work} {handler}: {report}");
}
