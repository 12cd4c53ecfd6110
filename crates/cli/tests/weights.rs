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
const TURNS: &str = include_str!("programs/turns.c");
const GENERATED: &str = include_str!("programs/generated.c");
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

/// A run of which the profile's shares are looked at.
struct Shown {
    /// What the program printed first: the share that it measured itself.
    measured: f64,
    report: Value,
}

impl Shown {
    fn new(bench: &Bench, options: &[&str], command: &[&str]) -> Shown {
        let run = [&["run", "--quiet", "-o", "p"], options, &["--"], command].concat();
        let done = bench.sonde(&run).good();
        assert!(done.err.is_empty(), "{}", done.err);
        let measured = done.text().split_whitespace().next().unwrap().parse().unwrap();
        let report = bench.sonde(&["report", "--json", "p"]).good();
        Shown { measured, report: serde_json::from_slice(&report.out).unwrap() }
    }

    /// The share of a function, and how many bursts began in it.
    fn function(&self, name: &str) -> (f64, f64) {
        let functions = self.report["functions"].as_array().unwrap();
        let found = functions.iter().find(|f| f["name"] == name);
        found.map_or((0.0, 0.0), |f| (f["share"].as_f64().unwrap(), f["samples"].as_f64().unwrap()))
    }

    /// The share of the first among both, with what chance allows.
    fn share_of(&self, first: &str, second: &str) -> (f64, f64) {
        let ((a, n), (b, m)) = (self.function(first), self.function(second));
        assert!(n + m > 150.0, "{}", self.report);
        (a / (a + b), 4.0 * 0.5 / (n + m).sqrt())
    }

    /// The share of what a list has for a name: of loops or contexts.
    fn share_in(&self, list: &Value, name: &str) -> f64 {
        let rows =
            list.as_array().unwrap().iter().filter(|row| row["name"].as_str().unwrap().starts_with(name));
        rows.map(|row| row["own_share"].as_f64().unwrap()).sum()
    }
}

/// Code that waits for memory has few instructions for its time, and has its share in every section all the same.
#[test]
fn what_waits_has_its_share() {
    let bench = Bench::new();
    let program = bench.compile("waits", WAITS, &["-O1", "-g"]);
    let shown = Shown::new(&bench, &["--period", "2ms"], &[program.to_str().unwrap(), "300000"]);
    let (share, chance) = shown.share_of("chase", "compute");
    assert!((share - shown.measured).abs() < chance, "{share}, measured {}", shown.measured);
    for list in [&shown.report["loops"]["loops"], &shown.report["calls"]["contexts"]] {
        let (a, b) = (shown.share_in(list, "chase"), shown.share_in(list, "compute"));
        assert!(
            (a / (a + b) - shown.measured).abs() < chance,
            "{a} {b}, measured {}: {list}",
            shown.measured
        );
    }
}

/// Bursts end at system calls: what comes before one is in more of them than what comes after, but takes no more time.
#[test]
fn halves_around_a_system_call_have_equal_shares() {
    let bench = Bench::new();
    let program = bench.compile("turns", TURNS, &["-O1", "-g"]);
    let command = [program.to_str().unwrap(), "halves", "300000"];
    let shown = Shown::new(&bench, &["--period", "2ms"], &command);
    let (share, chance) = shown.share_of("first_half", "second_half");
    assert!(
        (share - shown.measured).abs() < chance,
        "{share}, measured {}: {}",
        shown.measured,
        shown.report
    );
}

/// Code that a program makes while it runs is never recorded, but has its time.
#[test]
fn generated_code_has_its_share() {
    let bench = Bench::new();
    let program = bench.compile("generated", GENERATED, &["-O1", "-g"]);
    let shown = Shown::new(&bench, &["--period", "2ms"], &[program.to_str().unwrap(), "6000"]);
    let (share, chance) = shown.share_of("(generated code)", "compiled");
    assert!(
        (share - shown.measured).abs() < chance,
        "{share}, measured {}: {}",
        shown.measured,
        shown.report
    );
}

/// A page fault is the kernel's time, not that of the instruction that makes it. On a busy machine a stop mostly finds the
/// thread without a processor, and it can only be guessed what it had been doing.
#[test]
fn page_faults_are_the_kernels_time() {
    let bench = Bench::new();
    let program = bench.compile("turns", TURNS, &["-O1", "-g"]);
    let shown = Shown::new(&bench, &["--period", "2ms"], &[program.to_str().unwrap(), "faults", "400"]);
    let (share, _) = shown.share_of("touch", "mix");
    // By perf's samples in user code it is some 3 %; with the kernel's time it was 38.
    assert!(share < 0.2, "{share}: {}", shown.report);
}

/// A burst that is asked for while the kernel works begins behind the system call: that is no time of the code there.
#[test]
fn time_of_the_kernel_is_nobodys() {
    let bench = Bench::new();
    let program = bench.compile("kernel", KERNEL, &["-O1", "-g"]);
    let command = ["run", "--quiet", "--period", "2ms", "-o", "p", program.to_str().unwrap(), "60"];
    bench.sonde(&command).good();
    let report = bench.sonde(&["report", "--json", "p"]).good();
    let report: Value = serde_json::from_slice(&report.out).unwrap();
    let functions = report["functions"].as_array().unwrap();
    let samples = |f: &&Value| f["samples"].as_u64().unwrap_or(0);
    let begun: u64 = functions.iter().map(|f| samples(&f)).sum();
    let behind = functions.iter().find(|f| f["name"] == "ask").as_ref().map_or(0, samples);
    let bursts = report["totals"]["bursts"].as_u64().unwrap();
    assert!(bursts > 50 && 4 * begun < 3 * bursts, "{begun} of {bursts} bursts began in user code");
    assert!(behind < bursts / 20, "{behind} of {bursts} bursts");
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
    // Where lines end depends on how long the name of the folder is.
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("has changed since, or is gone"), "{report}");
}

/// A thread that Sonde stops must not stand at the beginning of a handler more often than the handler takes time.
///
/// The least of three runs: where threads wait for a processor, a signal and a stop are often due at once, and the handler had up
/// to 12 % of a run on a machine with eight times as many threads as processors, next to a run with nothing. With threads stopped
/// wherever they take signals it was 6 to 15 % in every run.
#[test]
fn handlers_have_no_more_than_their_share() {
    let bench = Bench::new();
    let program = bench.compile("alarm", ALARM, &["-O1", "-g"]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (_, report) = bench.report(&["--period", "2ms", "--hot", "1%"], &[program.to_str().unwrap()]);
        let n = report["bursts"].as_f64().unwrap();
        // Two seconds of CPU time at 2 ms; a busy machine or a dear burst makes it fewer.
        assert!(n > 200.0, "{report}");
        let (work, handler) = (share(&report, "spin"), share(&report, "handler"));
        // The handler takes some nanoseconds of each millisecond. Four bursts are chance; none weighs more than twice its part.
        let chance = 0.01 + 2.0 * 4.0 / n;
        if work > 0.99 - chance && handler < chance {
            return;
        }
        seen.push((n, work, handler));
    }
    panic!("bursts, share of the work and of the handler: {seen:?}");
}
