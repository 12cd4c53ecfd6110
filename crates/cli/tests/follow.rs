//! Child processes: counted in every mode, and recorded where that was asked for.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::{Bench, perf_is_allowed};

/// Forks children that work for a while, one after the other, and waits for them.
const PARENT: &str = r#"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
__attribute__((noinline)) unsigned childs_work(unsigned rounds) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) sum += i * i;
    return sum;
}
int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? strtoul(argv[1], 0, 10) : 100000000;
    if (argc > 2) { printf("%s %u\n", argv[2], childs_work(rounds)); return 4; }
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) { printf("forked %u\n", childs_work(rounds)); fflush(stdout); _exit(i); }
        int status;
        waitpid(child, &status, 0);
        printf("status %d\n", WEXITSTATUS(status));
    }
    fflush(stdout);
    pid_t child;
    char *args[] = {argv[0], argc > 1 ? argv[1] : "100000000", "spawned", 0};
    if (posix_spawn(&child, argv[0], 0, 0, args, environ)) return 1;
    int status;
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    return 0;
}
"#;

fn parent(bench: &Bench) -> String {
    bench.compile("parent", PARENT, &["-O1", "-g"]).display().to_string()
}

#[test]
fn children_that_are_not_recorded_are_counted() {
    let bench = Bench::new();
    let program = parent(&bench);
    let native = bench.native(&[&program]).good();
    let mut settings = vec![
        (vec!["--trigger", "stops"], true),
        (vec!["--trigger", "timer"], false),
        (vec!["--policy", "always"], true),
        (vec!["--policy", "counter"], true),
    ];
    if perf_is_allowed(&bench) {
        settings.push((vec!["--trigger", "perf"], false));
    }
    for (options, exactly) in settings {
        let (done, report) = bench.report(&options, &[&program]);
        assert_eq!(done.good().out, native.out, "{options:?}");
        let count = report["children"].as_u64().unwrap();
        assert!(if exactly { count == 3 } else { (1..=3).contains(&count) }, "{options:?}: {count}");
        assert_eq!(report["children_at_least"], !exactly, "{options:?}");
        let seconds = |key: &str| report[key].as_f64().unwrap();
        assert!(seconds("children_cpu_seconds") > seconds("cpu_seconds"), "{options:?}: {report}");
    }
}

/// Forks thousands of times, in calls that take long since there is memory to copy; then works alone.
const FORKS: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    size_t size = 32 << 20;
    memset(malloc(size), 1, size);
    for (int i = 0; i < 2000; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, 0, 0);
    }
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < 500000000; i++) sum += i;
    return 0;
}
"#;

#[test]
fn a_program_that_forks_is_recorded_afterwards() {
    let bench = Bench::new();
    let program = bench.compile("forks", FORKS, &["-O1"]).display().to_string();
    // A request to stop that falls into a fork must not be the last one. What comes after the forks is hundreds of bursts.
    let (done, report) = bench.report(&["--trigger", "stops", "--period", "1ms"], &[&program]);
    done.good();
    assert!(report["bursts"].as_u64().unwrap() >= 50, "{report}");
}

/// Sends itself signals and handles them, all the time.
const SIGNALS: &str = r#"
#include <signal.h>
#include <unistd.h>
static volatile unsigned handled, sum;
static void handler(int signal) {
    handled++;
    for (unsigned i = 0; i < 2000; i++) sum += i;
}
int main(void) {
    signal(SIGUSR1, handler);
    for (unsigned round = 0; round < 40000; round++) {
        kill(getpid(), SIGUSR1);
        for (unsigned i = 0; i < 4000; i++) sum += i;
    }
    return handled == 40000 ? 0 : 1;
}
"#;

#[test]
fn a_program_that_handles_signals_all_the_time_is_recorded() {
    let bench = Bench::new();
    let program = bench.compile("signals", SIGNALS, &["-O1"]).display().to_string();
    // Sonde wakes up for every signal, so it mostly finds the program at the start of the handler.
    let (done, report) = bench.report(&["--trigger", "stops", "--period", "2ms"], &[&program]);
    done.good();
    assert!(report["bursts"].as_u64().unwrap() >= 10, "{report}");
}

#[test]
fn without_children_nothing_is_said() {
    let bench = Bench::new();
    for options in [["--trigger", "stops"], ["--trigger", "timer"], ["--policy", "always"]] {
        let (_, report) = bench.report(&options, &["sort", "few"]);
        assert_eq!(report["children"], 0, "{options:?}");
        assert_eq!(report["children_cpu_seconds"], 0.0, "{options:?}");
    }
    let done = bench.sonde(&["run", "--", "sort", "few"]).good();
    assert!(!done.err.contains("child"), "{}", done.err);
    let done = bench.sonde(&["run", "--", "sh", "-c", "sort few; true"]).good();
    assert!(done.err.contains("1 child process"), "{}", done.err);
}

#[test]
fn followed_children_are_recorded_and_pooled() {
    let bench = Bench::new();
    let program = parent(&bench);
    let native = bench.native(&[&program]).good();
    let (done, report) = bench.report(&["--follow", "--period", "2ms"], &[&program]);
    assert_eq!(done.good().out, native.out);
    let followed = &report["followed"];
    assert_eq!((&followed["processes"], &followed["recorded"]), (&3.into(), &3.into()), "{report}");
    assert_eq!((&followed["refused"], &followed["left_running"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(report["children"], 0);
    assert_eq!(report["error"], serde_json::Value::Null);
    // All of the work is done by the children.
    let hot = report["hot_code"].as_array().unwrap();
    let work = hot.iter().filter(|hot| hot["function"] == "childs_work");
    assert!(work.map(|hot| hot["own_share"].as_f64().unwrap()).sum::<f64>() > 0.8, "{report}");
    let programs = followed["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 1, "{report}");
    assert!(programs[0]["path"].as_str().unwrap().ends_with("/parent"));
    assert_eq!(programs[0]["recorded"], 3);
    let seconds = |value: &serde_json::Value| value["cpu_seconds"].as_f64().unwrap();
    assert!(seconds(followed) > 0.8 * seconds(&report) && seconds(followed) < seconds(&report), "{report}");
    // Without --follow the same bursts would have found nothing to do.
    let (_, alone) = bench.report(&["--period", "2ms"], &[&program]);
    assert!(alone["followed"].is_null());
    assert!(report["bursts"].as_u64().unwrap() > 5 * alone["bursts"].as_u64().unwrap().max(1), "{report}");
}

#[test]
fn the_profile_is_of_all_processes_together() {
    let bench = Bench::new();
    let program = parent(&bench);
    let (done, report) =
        bench.report(&["--follow", "--period", "2ms", "-o", "p.sonde"], &[&program, "50000000"]);
    done.good();
    let profile = bench.sonde(&["report", "--json", "p.sonde"]).good();
    let profile: serde_json::Value = serde_json::from_slice(&profile.out).unwrap();
    // One run, of which the report said the same.
    let runs = profile["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{profile}");
    let seconds = |value: &serde_json::Value| value["cpu_seconds"].as_f64().unwrap();
    assert!((seconds(&runs[0]) - seconds(&report)).abs() < 1e-6, "{profile}");
    let functions = profile["functions"].as_array().unwrap();
    assert_eq!(functions[0]["name"], "childs_work", "{profile}");
    assert!(functions[0]["share"].as_f64().unwrap() > 0.8, "{profile}");
    let nothing = bench.sonde(&["diff", "p.sonde", "p.sonde"]).good();
    assert!(nothing.text().contains("functions: 0 changed"), "{}", nothing.text());
}

#[test]
fn children_of_children_and_other_programs_are_followed() {
    let bench = Bench::new();
    let script = "sh -c 'sort -n lines | md5sum; (gzip -9 -c lines; gzip -9 -c lines) | md5sum'; exit 5";
    let native = bench.native(&["sh", "-c", script]);
    let (done, report) = bench.report(&["--follow", "--period", "1ms"], &["sh", "-c", script]);
    assert_eq!((done.status, &done.out), (Some(5), &native.out));
    let programs = report["followed"]["programs"].as_array().unwrap();
    let ran = |name: &str| programs.iter().any(|p| p["path"].as_str().unwrap().ends_with(name));
    assert!(ran("/sort") && ran("/gzip"), "{report}");
    assert!(report["followed"]["processes"].as_u64().unwrap() >= 6, "{report}");
}

/// Forks a child that reports its end through a pipe, long after the program ended.
const DAEMON: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {
        setsid();
        volatile unsigned sum = 0;
        struct timespec t = {0, 1000000};
        for (unsigned i = 0; i < 300; i++) {
            for (unsigned j = 0; j < 300000; j++) sum += j;
            nanosleep(&t, 0);
        }
        printf("daemon %u\n", sum);
        return 3;
    }
    volatile unsigned sum = 0;
    for (unsigned j = 0; j < 30000000; j++) sum += j;
    printf("program %u\n", sum);
    return 7;
}
"#;

#[test]
fn processes_that_outlive_the_program_go_on_alone() {
    let bench = Bench::new();
    let program = bench.compile("daemon", DAEMON, &["-O1"]).display().to_string();
    // The end of the output is the end of the daemon, which holds the pipe.
    let native = bench.native(&[&program]);
    assert!(native.text().contains("daemon"), "{}", native.text());
    let (done, report) = bench.report(&["--follow", "--period", "2ms"], &[&program]);
    assert_eq!((done.status, done.text()), (Some(7), native.text()));
    assert_eq!(report["followed"]["left_running"], 1, "{report}");
    assert_eq!(report["followed"]["processes"], 1, "{report}");
}

#[test]
fn more_processes_than_allowed_are_counted_instead() {
    let bench = Bench::new();
    let script = "for i in 1 2 3; do sleep 0.3 & done; wait";
    let options = ["--follow", "--most-processes", "2"];
    let (done, report) = bench.report(&options, &["sh", "-c", script]);
    done.good();
    assert_eq!((&report["followed"]["processes"], &report["children"]), (&2.into(), &1.into()), "{report}");
}

#[test]
fn what_cannot_be_followed_is_said() {
    let bench = Bench::new();
    for options in [&["--follow", "--policy", "always"][..], &["--follow", "--trigger", "timer"]] {
        let done = bench.sonde(&[&["run"], options, &["--", "true"]].concat());
        assert!(done.status != Some(0) && done.err.contains("--follow"), "{options:?}: {}", done.err);
    }
}

/// Every way in which a process can be when its first burst is due: with threads, on small stacks, in handlers.
#[test]
fn hostile_programs_are_the_same_as_followed_children() {
    use sonde_harness::trial::Subject;
    use sonde_harness::{compile, manifest};
    use std::time::Duration;
    let programs = manifest::programs().expect("the list is well formed");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-children");
    let names = [
        "children",
        "altstack",
        "small_stacks",
        "own_trap",
        "fault_pc",
        "short_threads",
        "all_signals",
        "masked",
        "avx2",
        "exceptions",
        "contexts",
        "seccomp_filter",
        "jit",
        "stack_overflow",
    ];
    let chosen: Vec<_> = programs.into_iter().filter(|p| names.contains(&p.name.as_str())).collect();
    compile::build(&chosen, &folder, 2).expect("the programs can be built");
    let bench = Bench::new();
    let mut recorded = 0;
    for program in &chosen {
        let subject = Subject::hostile(program, &folder, Duration::from_secs(20)).expect("it can be run");
        let mut command = vec!["sh".to_owned(), "-c".into(), "\"$@\"; exit $?".into(), "sh".into()];
        command.extend(subject.job.command.iter().map(|w| w.to_string_lossy().into_owned()));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let native = bench.native(&command);
        for (period, burst) in [("300us", "5000"), ("1100us", "100")] {
            let options = ["--follow", "--no-ranges", "--period", period, "--burst", burst];
            let (done, report) = bench.report(&options, &command);
            let same = (done.status, done.text(), &done.err) == (native.status, native.text(), &native.err);
            assert!(same, "{} every {period}: {:?}\n{}{}", program.name, done.status, done.text(), done.err);
            assert!(report["error"].is_null(), "{}: {report}", program.name);
            recorded += report["followed"]["recorded"].as_u64().unwrap();
        }
    }
    assert!(recorded >= chosen.len() as u64, "only {recorded} processes were recorded");
}

/// Replaces itself by another program, first by one that is not there.
const REPLACED: &str = r#"
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) unsigned work_before(unsigned rounds) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) sum += i;
    return sum;
}
__attribute__((noinline)) unsigned work_after(unsigned rounds) {
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++) sum += i;
    return sum;
}
int main(int argc, char **argv) {
    if (argc > 1) { printf("after %u\n", work_after(3000000)); return 5; }
    printf("before %u\n", work_before(2000000));
    fflush(stdout);
    char *args[] = {argv[0], "again", 0};
    execv("/nowhere/nothing", args);
    execv(argv[0], args);
    return 1;
}
"#;

#[test]
fn a_program_that_replaces_itself_is_recorded_on() {
    let bench = Bench::new();
    let program = bench.compile("replaced", REPLACED, &["-O1", "-g"]).display().to_string();
    let native = bench.native(&[&program]);
    let modes: [&[&str]; 2] = [&["--policy", "always"], &["--policy", "counter", "--burst", "1000:1000"]];
    for options in modes {
        let (done, report) = bench.report(options, &[&program]);
        assert_eq!((&done.out, done.status), (&native.out, native.status), "{options:?}");
        assert!(report["became"].is_null(), "{options:?}: {report}");
        let hot = report.to_string();
        assert!(hot.contains("work_before") && hot.contains("work_after"), "{options:?}: {hot}");
        if options[1] == "always" {
            let instructions = report["instructions"].as_u64().unwrap();
            assert!(instructions > 5_000_000 * 4, "{instructions}");
        }
    }
}
