//! `sonde run` as users meet it: output, exit status, signals, report, JSON, errors.

#[path = "common/sonde.rs"]
mod sonde;

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sonde::{Bench, perf_is_allowed};
use sonde_harness::leftovers::end_all_in;
use sonde_harness::start::{Signal, send};

/// A program with one hot function and one hot array, and debug information. By default it takes some tenths of a second, also on
/// a fast machine: a timer counts in ticks, so that shorter runs have hardly a burst.
const HOT: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned table[4096];
__attribute__((noinline)) unsigned spin_the_table(unsigned rounds) {
    unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) {
        table[i & 4095] += i;
        sum ^= table[(i * 7) & 4095];
    }
    return sum;
}
int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 1000000000;
    printf("%u\n", spin_the_table(rounds));
    return 0;
}
"#;

#[test]
fn output_and_status_are_the_programs_own() {
    let bench = Bench::new();
    let native = bench.native(&["gzip", "-9", "-c", "lines"]).good();
    for policy in ["bursts", "always", "counter"] {
        for record in ["blocks", "addresses", "values"] {
            let options = ["run", "--quiet", "--policy", policy, "--record", record, "--"];
            let observed = bench.sonde(&[&options[..], &["gzip", "-9", "-c", "lines"]].concat()).good();
            assert!(observed.out == native.out, "{policy} {record}");
            assert_eq!(observed.err, "", "{policy} {record}");
        }
    }
    for status in [0, 1, 7, 127, 255] {
        let done = bench.sonde(&["run", "--", "sh", "-c", &format!("exit {status}")]);
        assert_eq!(done.status, Some(status));
    }
}

#[test]
fn standard_input_reaches_the_program() {
    let bench = Bench::new();
    let mut command = bench.command(env!("CARGO_BIN_EXE_sonde"), &["run", "--quiet", "--", "sort"]);
    command.stdin(std::fs::File::open(bench.path("lines")).unwrap());
    let output = command.output().unwrap();
    assert!(output.stdout == bench.native(&["sort", "lines"]).out);
}

#[test]
fn death_by_a_signal_is_passed_on() {
    let bench = Bench::new();
    for signal in [6, 9, 11, 13, 15] {
        let done = bench.sonde(&["run", "--quiet", "--", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!((done.status, done.signal), (None, Some(signal)));
    }
    let (_, report) = bench.report(&[], &["sh", "-c", "kill -15 $$"]);
    assert_eq!(report["exit"]["signal"], 15);
}

#[test]
fn signals_sent_to_sonde_reach_the_program() {
    let bench = Bench::new();
    let program = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1] {
        let program = program.replace("TERM", signal.as_str().trim_start_matches("SIG"));
        let mut child = bench
            .command(env!("CARGO_BIN_EXE_sonde"), &["run", "--quiet", "--", "sh", "-c", &program])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut ready = [0; 6];
        out.read_exact(&mut ready).unwrap();
        send(signal, &child).unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!((rest.trim(), child.wait().unwrap().code()), ("caught", Some(3)), "{signal}");
    }
}

/// The state letter of a process, as ps shows it.
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()).unwrap_or('?')
}

#[test]
fn sonde_stops_and_goes_on_with_the_program() {
    let bench = Bench::new();
    let program = "kill -STOP $$; echo went on";
    let mut child = bench
        .command(env!("CARGO_BIN_EXE_sonde"), &["run", "--quiet", "--", "sh", "-c", program])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while state(child.id()) != 'T' {
        assert!(Instant::now() < deadline, "sonde did not stop with the program");
        std::thread::sleep(Duration::from_millis(5));
    }
    send(Signal::SIGCONT, &child).unwrap();
    let folder = bench.path("");
    let (done, ended) = std::sync::mpsc::channel();
    // If it hangs, end it rather than the test run: the assertion below then fails.
    let guard = std::thread::spawn(move || match ended.recv_timeout(Duration::from_secs(60)) {
        Ok(()) => 0,
        Err(_) => end_all_in(&folder),
    });
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    let _ = done.send(());
    assert_eq!(guard.join().unwrap(), 0, "sonde or the program did not go on");
    assert_eq!((text.trim(), status.code()), ("went on", Some(0)));
}

#[test]
fn the_program_inherits_what_sonde_inherited() {
    let bench = Bench::new();
    let look = "grep Sig /proc/self/status";
    for before in ["", "trap '' PIPE; ", "trap '' INT CHLD; ", "trap '' HUP TSTP; "] {
        let native = bench.native(&["sh", "-c", &format!("{before}{look}")]);
        let exe = env!("CARGO_BIN_EXE_sonde");
        let line = format!("{before}exec {exe} run --quiet --burst 0 -- {look}");
        let observed = bench.native(&["sh", "-c", &line]);
        // A trigger may need a handler while the program runs, and others' signals are queued at any time; everything
        // else is as it was.
        let without = |text: String| -> Vec<String> {
            let kept = |l: &&str| !l.starts_with("SigCgt") && !l.starts_with("SigQ");
            text.lines().filter(kept).map(String::from).collect()
        };
        assert_eq!(without(observed.text()), without(native.text()), "{before}");
    }
}

#[test]
fn the_report_names_hot_code_and_data() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1", "-g"]);
    let (done, report) = bench.report(&["--period", "2ms"], &[program.to_str().unwrap(), "500000000"]);
    assert_eq!(done.status, Some(0));
    assert_eq!(done.err, "");
    let bursts = report["bursts"].as_u64().unwrap();
    assert!(bursts > 3, "{report}");
    assert_eq!(report["error"], serde_json::Value::Null);
    let code = report["hot_code"].as_array().unwrap();
    let spin: f64 = code
        .iter()
        .filter(|hot| hot["function"] == "spin_the_table")
        .map(|hot| hot["own_share"].as_f64().unwrap())
        .sum();
    assert!(spin > 0.9, "{report}");
    let line = code[0]["line"].as_u64().unwrap();
    assert!((5..=10).contains(&line) && code[0]["file"].as_str().unwrap().ends_with("hot.c"), "{report}");
    let data = report["hot_data"].as_array().unwrap();
    let ours = data.iter().filter(|hot| hot["module"] == program.to_str().unwrap());
    let share: f64 = ours.map(|hot| hot["own_share"].as_f64().unwrap()).sum();
    assert!(share > 0.8, "{report}");
    assert!(data.iter().any(|hot| hot["section"] == ".bss" && hot["variable"] == "table"), "{report}");
    let text = bench.sonde(&["run", "--", program.to_str().unwrap()]).good().err;
    for word in ["trigger", "probe", "recorded", "overhead", "events", "spin_the_table", "hot.c:", ":.bss"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

/// A function whose name, with its arguments, is some hundred characters long.
const LONG_NAME: &str = r#"
#include <cstdio>
#include <map>
#include <string>
#include <vector>
using Table = std::map<std::string, std::vector<std::pair<long, std::string>>>;
template <class A, class B, class C>
__attribute__((noinline)) unsigned long_named(A const &, B const &, C const &, unsigned rounds) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) sum = sum + i;
    return sum;
}
int main() {
    std::printf("%u\n", long_named(Table(), Table(), Table(), 1000000));
    return 0;
}
"#;

#[test]
fn long_names_are_short_for_people_and_whole_for_programs() {
    let bench = Bench::new();
    std::fs::write(bench.path("long.cc"), LONG_NAME).unwrap();
    bench.native(&["c++", "-std=c++17", "-O1", "-o", "long", "long.cc"]).good();
    let options = ["run", "--policy", "always", "--json=all.json", "--", "./long"];
    let text = bench.sonde(&options).good().err;
    let line = text.lines().find(|l| l.contains("long_named")).unwrap_or_else(|| panic!("{text}"));
    assert!(!line.contains("allocator") && line.chars().count() < 180, "{line}");
    let json = std::fs::read_to_string(bench.path("all.json")).unwrap();
    assert!(json.contains("std::allocator"), "{json}");
}

#[test]
fn stripped_programs_degrade_to_module_and_offset() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1", "-s"]);
    let (_, report) = bench.report(&["--policy", "always"], &[program.to_str().unwrap(), "1000000"]);
    let place = report["hot_code"][0]["place"].as_str().unwrap();
    assert!(place.starts_with("hot+0x"), "{place}");
}

#[test]
fn everything_is_counted_when_everything_is_recorded() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let run = |rounds: &str| {
        let (done, report) = bench.report(&["--policy", "always"], &[program.to_str().unwrap(), rounds]);
        assert_eq!(done.status, Some(0));
        assert_eq!(report["share_cpu"], 1.0);
        let count = |key: &str| report[key].as_u64().unwrap();
        (count("instructions"), count("loads"), count("stores"))
    };
    // What a round costs is a whole number, the same for every round; the rest is the same for both runs, nearly: the
    // start of a program depends on its addresses.
    let (few, many) = (run("100000"), run("1100000"));
    let per_round = |few: u64, many: u64| (many - few) as f64 / 1e6;
    let close = |value: f64| (value - value.round()).abs() < 0.01;
    let (instructions, loads, stores) =
        (per_round(few.0, many.0), per_round(few.1, many.1), per_round(few.2, many.2));
    assert!(close(instructions) && close(loads) && close(stores), "{instructions} {loads} {stores}");
    assert_eq!((loads.round(), stores.round()), (2.0, 1.0));
}

#[test]
fn every_trigger_works_and_says_so() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let all = ["stops", "perf", "timer"];
    let triggers = if perf_is_allowed(&bench) { all.to_vec() } else { vec!["stops", "timer"] };
    for trigger in triggers {
        let (_, report) =
            bench.report(&["--trigger", trigger, "--period", "10ms"], &[program.to_str().unwrap()]);
        assert_eq!(report["trigger"], trigger);
        assert!(report["bursts"].as_u64().unwrap() > 2, "{report}");
        assert!(report["instructions"].as_u64().unwrap() > 1000, "{report}");
    }
}

#[test]
fn a_higher_rate_records_more() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let recorded = |rate: &str| {
        let (_, report) = bench.report(&["--rate", rate], &[program.to_str().unwrap(), "700000000"]);
        report["instructions"].as_u64().unwrap()
    };
    let (low, high) = (recorded("1%"), recorded("30%"));
    // How near a run comes to its rate depends on how long it is: the controller is tested on its own, here only that
    // it is used.
    assert!(low < high, "{low} {high}");
}

/// Programs that keep a processor busy until they are dropped.
struct Busy(Vec<std::process::Child>);

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn time_of_others_is_not_time_in_bursts() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cpu = allowed.split(['-', ',']).next().unwrap();
    let spin = ["-c", cpu, "sh", "-c", "while :; do :; done"];
    let others = (0..2).map(|_| bench.command("taskset", &spin).spawn().unwrap()).collect();
    let others = Busy(others);
    // One burst that lasts until the program writes.
    let options = ["--period", "2ms", "--burst", "1000000000", "--record", "blocks", "--no-ranges"];
    let (done, report) =
        bench.report(&options, &["taskset", "-c", cpu, program.to_str().unwrap(), "60000000"]);
    drop(others);
    assert_eq!(done.status, Some(0));
    let number = |key: &str| report[key].as_f64().unwrap();
    assert!(number("bursts") > 0.0 && number("wall_seconds") > 1.3 * number("cpu_seconds"), "{report}");
    // It takes Sonde, which waits for the same processor, some slices of the others' to begin it.
    assert!(number("burst_seconds") > 0.2 * number("cpu_seconds"), "{report}");
    assert!(number("burst_seconds") <= 1.02 * number("cpu_seconds"), "{report}");
}

#[test]
fn the_trigger_alone_records_nothing() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let (_, report) = bench.report(&["--burst", "0"], &[program.to_str().unwrap()]);
    assert_eq!((&report["bursts"], &report["events"]), (&0.into(), &0.into()));
    assert!(report["triggers"].as_u64().unwrap() > 2);
}

#[test]
fn less_detail_means_less_log() {
    let bench = Bench::new();
    let bytes = |record: &str| {
        let options = ["--policy", "always", "--record", record];
        let (_, report) = bench.report(&options, &["gzip", "-c", "few"]);
        report["log_bytes"].as_u64().unwrap()
    };
    let (blocks, addresses, values) = (bytes("blocks"), bytes("addresses"), bytes("values"));
    assert!(blocks < addresses && addresses < values, "{blocks} {addresses} {values}");
}

#[test]
fn json_can_replace_the_report() {
    let bench = Bench::new();
    let done = bench.sonde(&["run", "--json", "--", "true"]).good();
    let report: serde_json::Value = serde_json::from_str(&done.err).unwrap();
    assert_eq!(report["program"][0], "true");
    for key in [
        "exit",
        "trigger",
        "loader",
        "bursts",
        "instructions",
        "blocks",
        "loads",
        "stores",
        "events",
        "share_cpu",
        "cpu_seconds",
        "drops",
        "hot_code",
        "hot_data",
        "memory",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
}

#[test]
fn every_key_is_documented() {
    let bench = Bench::new();
    let (_, report) = bench.report(&["--policy", "always", "--hot", "1%"], &["gzip", "-c", "few"]);
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-json.md")).unwrap();
    assert_eq!((&report["format"], &report["version"]), (&"sonde-run".into(), &1.into()));
    let ranges = [&report["hot_code"][0], &report["hot_data"][0]];
    let nested = ["translation", "memory"].map(|key| &report[key]);
    let objects = [&report].into_iter().chain(ranges).chain(nested);
    for key in objects.flat_map(|object| object.as_object().unwrap().keys()) {
        assert!(page.contains(&format!("`{key}`")), "{key} is missing in docs/run-json.md");
    }
}

#[test]
fn a_program_that_becomes_another_is_followed_or_told() {
    let bench = Bench::new();
    let program = bench.compile("hot", HOT, &["-O1"]);
    let line = format!("exec {} 200000000", program.display());
    let followed = bench.sonde(&["run", "--", "sh", "-c", &line]).good();
    assert!(followed.err.contains("spin_the_table") && !followed.err.contains("became"), "{}", followed.err);
    let lost = bench.sonde(&["run", "--trigger", "timer", "--", "sh", "-c", &line]).good();
    assert!(lost.err.contains("became"), "{}", lost.err);
}

/// What was asked for is not there, so a run that went well does not end well; how the program failed matters more.
#[test]
fn a_profile_that_cannot_be_written_is_told_and_shows_in_the_status() {
    let bench = Bench::new();
    for (script, status) in [("rm -r gone", 1), ("rm -r gone; exit 3", 3)] {
        for what in [&["run", "--quiet", "-o", "gone/p"][..], &["run", "--quiet", "--json=gone/p"]] {
            std::fs::create_dir_all(bench.path("gone")).unwrap();
            let done = bench.sonde(&[what, &["--", "sh", "-c", script]].concat());
            assert_eq!(done.status, Some(status), "{}", done.err);
            assert_eq!(done.err.matches("gone/p").count(), 1, "{}", done.err);
        }
    }
    std::fs::create_dir_all(bench.path("gone")).unwrap();
    let both = ["run", "--quiet", "-o", "gone/p", "--json=gone/j", "--", "rm", "-r", "gone"];
    let done = bench.sonde(&both);
    assert!(
        done.status == Some(1) && done.err.contains("gone/p") && done.err.contains("gone/j"),
        "{}",
        done.err
    );
    let killed = bench.sonde(&["run", "--quiet", "-o", "/dev/full", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.signal, Some(9), "{}", killed.err);
}

#[test]
fn the_report_has_no_section_of_what_was_not_looked_at() {
    let bench = Bench::new();
    let shown = |what: &str| {
        let args = ["run", "--policy", "always", "--what", what, "-o", "p", "--", "true"];
        bench.sonde(&args).good().err
    };
    assert!(!shown("values").contains("hot data") && shown("values").contains("hot code"));
    assert!(shown("loads").contains("hot data"));
}

/// A profile without a burst tells what to do as the run did.
#[test]
fn an_empty_profile_says_what_to_do() {
    let bench = Bench::new();
    bench.sonde(&["run", "--quiet", "-o", "p", "--", "true"]).good();
    let shown = bench.sonde(&["report", "p"]).good().text();
    let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains("advice no burst: the program used") && joined.contains("--policy always"),
        "{shown}"
    );
    bench.sonde(&["run", "--quiet", "--policy", "always", "-o", "p", "--", "true"]).good();
    assert!(!bench.sonde(&["report", "p"]).good().text().contains("advice"));
}

#[test]
fn the_json_says_when_bursts_were_to_begin() {
    let bench = Bench::new();
    let of = |options: &[&str]| bench.report(options, &["true"]).1;
    let fixed = of(&["--period", "3ms", "--burst", "500"]);
    assert_eq!((fixed["period_seconds"].as_f64(), fixed["burst_checks"].as_u64()), (Some(0.003), Some(500)));
    assert!(fixed["rate"].is_null() && fixed["bursts_due"].is_number());
    let adapted = of(&["--rate", "2%"]);
    assert!(
        adapted["rate"] == 0.02 && adapted["period_seconds"].is_number() && adapted["bursts_due"].is_null()
    );
    let always = of(&["--policy", "always"]);
    assert!(always["period_seconds"].is_null() && always["burst_checks"].is_null());
    let help = bench.sonde(&["report", "--help"]).good().text();
    assert!(help.contains("sonde report [OPTIONS] <FILE>"), "{help}");
}

#[test]
fn a_run_too_short_for_a_burst_says_what_to_do() {
    let bench = Bench::new();
    let done = bench.sonde(&["run", "--period", "100s", "--", "gzip", "-9", "-c", "lines"]).good();
    assert!(done.err.contains("no burst") && done.err.contains("--policy always"), "{}", done.err);
    assert!(done.err.contains("--period "), "{}", done.err);
    let all = bench.sonde(&["run", "--policy", "always", "--", "true"]).good();
    assert!(!all.err.contains("no burst"), "{}", all.err);
    let wanted = bench.sonde(&["run", "--burst", "0", "--", "true"]).good();
    assert!(!wanted.err.contains("no burst"), "{}", wanted.err);
    let counted = bench.sonde(&["run", "--policy", "counter", "--burst", "1000000000:10", "--", "true"]);
    assert!(counted.err.contains("no burst") && counted.err.contains("--burst"), "{}", counted.err);
}

#[test]
fn what_is_discarded_is_recorded_and_not_read() {
    let bench = Bench::new();
    let (done, report) = bench.report(&["--policy", "always", "--discard"], &["sort", "lines"]);
    done.good();
    assert!(report["log_bytes"].as_u64() > Some(100_000), "{report}");
    assert_eq!((report["discarded"].as_bool(), report["events"].as_u64()), (Some(true), Some(0)), "{report}");
    let done = bench.sonde(&["run", "--discard", "--period", "1ms", "--", "sort", "lines"]).good();
    assert!(done.err.contains("of log, thrown away") && !done.err.contains("events"), "{}", done.err);
}

#[test]
fn the_report_says_what_shares_are_of_and_what_was_not_looked_for() {
    let bench = Bench::new();
    let (done, report) = bench.report(&[], &["sort", "lines"]);
    done.good();
    let seconds = |key: &str| report[key].as_f64().expect("seconds");
    let (user, system) = (seconds("user_seconds"), seconds("system_seconds"));
    assert!((user + system - seconds("cpu_seconds")).abs() < 1e-6, "{report}");
    assert!(user > 0.0 && seconds("sonde_cpu_seconds") > 0.0, "{report}");
    let done = bench.sonde(&["run", "--no-ranges", "--", "sort", "lines"]);
    assert!(done.err.contains("in user code, which shares are of"), "{}", done.err);
    assert!(done.err.contains("not looked for (--no-ranges)"), "{}", done.err);
    assert!(!done.err.contains("no range has"), "{}", done.err);
    assert!(done.err.lines().all(|line| line.chars().count() <= 100), "{}", done.err);
}

#[test]
fn doctor_tries_everything() {
    let bench = Bench::new();
    let done = bench.sonde(&["doctor"]).good();
    for subject in [
        "kernel",
        "perf events",
        "CPU timers",
        "ptrace",
        "shared memory",
        "watched pages",
        "low memory",
        "/proc",
        "a whole run",
    ] {
        assert!(done.text().contains(subject), "{subject}: {}", done.text());
    }
}
