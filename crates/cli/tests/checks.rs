//! `--policy counter --checks SCHEME`: what leaves checks out changes nothing but the number of checks.

#[path = "common/sonde.rs"]
mod sonde;

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use sonde::Bench;
use sonde_harness::support::Sonde;
use sonde_harness::trial::Subject;
use sonde_harness::{compile, manifest};

const SCHEMES: [&str; 8] = ["orig", "EL", "EC", "EN", "L4", "L10", "LN", "EC+L4"];

/// What could go wrong where control goes unusual ways, code changes, threads and signals meet loops without checks.
const HOSTILE: [&str; 8] = [
    "tail_calls",
    "jump_table",
    "long_jump",
    "exceptions",
    "all_signals",
    "plugins",
    "self_modify",
    "odd_code",
];

#[test]
fn hostile_programs_do_the_same_under_every_scheme() {
    let programs: Vec<_> = manifest::programs().unwrap();
    let is_used = |p: &manifest::Program| p.ending.is_none() || HOSTILE.contains(&p.name.as_str());
    let programs: Vec<_> = programs.into_iter().filter(is_used).collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("checks");
    compile::build(&programs, &folder, 2).unwrap();
    let sonde = Sonde::probe(Path::new(env!("CARGO_BIN_EXE_sonde")));
    let subject = |name: &str| {
        let program = programs.iter().find(|p| p.name == name).unwrap();
        Subject::hostile(program, &folder, Duration::from_secs(20)).unwrap().with_work(3)
    };
    for name in HOSTILE {
        let subject = subject(name);
        let native = subject.native().unwrap_or_else(|failure| panic!("{failure}"));
        for scheme in SCHEMES {
            let job =
                subject.observed_job(&sonde, &words(&["--policy", "counter", "--burst", "300:200"], scheme));
            let observed = sonde_harness::process::run(&job).unwrap();
            assert_eq!(observed.ending, native.ending, "{name} with {scheme}");
            assert_eq!(observed.stdout, native.stdout, "{name} with {scheme}");
            assert_eq!(observed.stderr, native.stderr, "{name} with {scheme}");
        }
    }
}

fn words(options: &[&str], scheme: &str) -> Vec<String> {
    options.iter().chain(&["--checks", scheme]).map(|w| (*w).to_owned()).collect()
}

/// A report of a run in counter mode.
fn counted(bench: &Bench, burst: &str, scheme: &str, program: &[&str]) -> Value {
    let options = ["--policy", "counter", "--no-ranges", "--burst", burst, "--checks", scheme];
    let (done, report) = bench.report(&options, program);
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!(done.out, bench.native(program).out, "{scheme}");
    report
}

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key} in {report}"))
}

/// With bursts of one check, checks are bursts times gap: fewer of them are met the more of them are left out.
#[test]
fn fewer_and_fewer_checks_are_met() {
    let bench = Bench::new();
    for program in [
        &["gzip", "-c", "lines"][..],
        &["sort", "few"],
        &["sh", "-c", "i=0; while [ $i -lt 500 ]; do i=$((i+1)); done"],
    ] {
        let checks: Vec<u64> = SCHEMES
            .iter()
            .map(|scheme| number(&counted(&bench, "100:1", scheme, program), "bursts"))
            .collect();
        let [orig, el, ec, en, l4, l10, ln, both] = checks[..] else { panic!("{checks:?}") };
        // Addresses are random, and with them what a few loops of the loader and hash tables do.
        let at_most = |less: u64, more: u64| less * 100 <= more * 101;
        assert!(at_most(el, orig) && at_most(ec, el) && at_most(en, ec), "{program:?}: {checks:?}");
        assert!(at_most(l4, orig) && at_most(l10, l4) && at_most(ln, l10), "{program:?}: {checks:?}");
        assert!(at_most(both, ec) && at_most(both, l4), "{program:?}: {checks:?}");
        assert!(
            en * 100 < orig * 95 && ln * 100 < orig * 90 && both * 100 < orig * 90,
            "{program:?}: {checks:?}"
        );
        assert!(both > 0 && en > 0, "{program:?}: {checks:?}");
    }
}

#[test]
fn the_report_says_what_was_analysed() {
    let bench = Bench::new();
    let report = counted(&bench, "100:10", "EC+L4", &["gzip", "-c", "few"]);
    let checks = &report["checks"];
    assert_eq!(checks["scheme"], "EC+L4");
    assert!(number(checks, "modules") >= 3 && number(checks, "left_out") > 10, "{checks}");
    assert!(number(checks, "checked_functions") < number(checks, "functions"), "{checks}");
    assert!(number(checks, "checked_loops") < number(checks, "loops"), "{checks}");
    assert_eq!(checks["not_analysed"], serde_json::json!([]));
    let report = counted(&bench, "100:10", "orig", &["gzip", "-c", "few"]);
    assert_eq!((&report["checks"]["scheme"], number(&report["checks"], "left_out")), (&"orig".into(), 0));
    let wrong = bench.sonde(&["run", "--checks", "EC", "--", "true"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("--policy counter"), "{}", wrong.err);
    let wrong = bench.sonde(&["run", "--policy", "counter", "--checks", "E5", "--", "true"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("EC+L4"), "{}", wrong.err);
}

/// Everything that is not a clock or a number of the kernel's choosing.
fn dump(bench: &Bench, scheme: &str) -> String {
    let sonde = env!("CARGO_BIN_EXE_sonde");
    let args = ["-R", sonde, "trace", "record", "-o", "t", "--policy", "counter", "--burst", "500:50"];
    let program = ["--record", "addresses", "--checks", scheme, "--", "gzip", "-c", "few"];
    assert!(bench.command("setarch", &[&args[..], &program].concat()).output().unwrap().status.success());
    let text = bench.sonde(&["trace", "replay", "--dump", "t"]).good().text();
    let stable = |line: &str| !line.starts_with("begin") && !line.starts_with("end");
    text.lines()
        .filter(|line| stable(line))
        .map(|line| {
            let words = line.split(' ').skip_while(|word| *word != "pc");
            words.fold(String::new(), |all, word| all + " " + word) + "\n"
        })
        .collect()
}

#[test]
fn two_runs_give_the_same_trace() {
    let bench = Bench::new();
    for scheme in ["orig", "EC+L4"] {
        let (first, second) = (dump(&bench, scheme), dump(&bench, scheme));
        assert!(first.lines().count() > 1000);
        assert!(first == second, "{scheme}: traces differ");
    }
}

/// Loops without a check that wait for a signal, for another thread, and one that is longer than all buffers.
const LOOPS: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile int by_signal, by_thread;
static volatile unsigned char cells[4096];
static void on_alarm(int number) { by_signal = number; }
static void *set(void *unused) { by_thread = 7; return unused; }
int main(void) {
    pthread_t thread;
    signal(SIGALRM, on_alarm);
    alarm(1);
    while (!by_signal) {}
    pthread_create(&thread, 0, set, 0);
    while (!by_thread) {}
    pthread_join(thread, 0);
    for (unsigned long i = 0; i < 1500000; i++) cells[i & 4095] = i;
    printf("%d %d %d\n", by_signal, by_thread, cells[17]);
    return 0;
}
"#;

#[test]
fn loops_without_a_check_are_left_by_signals_and_threads_and_fill_any_number_of_buffers() {
    let bench = Bench::new();
    let program = bench.compile("loops", LOOPS, &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    for (scheme, recorded) in
        [("orig", None), ("L4", Some(1_500_000)), ("EC+L4", Some(1_500_000)), ("LN", None)]
    {
        // One check in a burst: a loop is recorded whole if the burst begins at the call before it.
        for burst in ["1:1", "40:1000000"] {
            let options =
                ["--policy", "counter", "--no-ranges", "--record", "blocks", "--probe-memory", "8M"];
            let options = [&options[..], &["--burst", burst, "--checks", scheme]].concat();
            let (done, report) = bench.report(&options, &[program]);
            assert_eq!((done.status, done.text().as_str()), (Some(0), "14 7 17\n"), "{scheme}: {}", done.err);
            assert_eq!(report["error"], Value::Null);
            if let Some(least) = recorded.filter(|_| burst != "1:1") {
                assert!(number(&report, "blocks") >= least, "{scheme}: {report}");
            }
        }
    }
}

#[test]
fn the_experiment_gives_a_row_per_scheme() {
    let bench = Bench::new();
    let args = ["lab", "checks", "--rounds", "1", "--csv", "-o", "table", "--", "gzip", "-c", "few"];
    bench.sonde(&args).good();
    let text = std::fs::read_to_string(bench.path("table")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, [&SCHEMES[..], &["no checks", "bursts"]].concat());
    for row in &rows[..SCHEMES.len()] {
        let number = |i: usize| row[i].parse::<f64>().unwrap_or_else(|_| panic!("{row:?}"));
        assert!((1..=3).all(|column| number(column) > -100.0), "{row:?}");
        assert!((1.0..=100.0).contains(&number(4)), "places of two runs are the same: {row:?}");
        assert!(number(5) > 0.5 && number(5) < 50.0, "about one check in 21 is recorded: {row:?}");
    }
    let wrong = bench.sonde(&["lab", "checks", "--trace", "t"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.err.contains("runs a program"), "{}", wrong.err);
}
