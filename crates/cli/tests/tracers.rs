//! A process has one tracer: programs that trace their children, or themselves, do so under Sonde as without it. And signals that
//! come faster than a tracer can pass them on do not hold a program up.

#[path = "common/sonde.rs"]
mod sonde;

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use sonde::{Bench, perf_is_allowed};
use sonde_harness::{compile, manifest};

/// Leaks if it has an argument; works a while before.
const LEAKS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *volatile kept;
int main(int argc, char **argv) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 3000000; i++) sum += i ^ (sum >> 3);
    kept = malloc(100);
    memset(kept, argc, 100);
    if (argc > 1) kept = 0; else free(kept);
    printf("%u\n", sum);
    return 7 * (argc < 0);
}
"#;

/// Modes in which such a program is recorded.
const MODES: [&[&str]; 5] = [
    &["--period", "1ms"],
    &["--trigger", "timer"],
    &["--policy", "always", "--record", "blocks"],
    &["--policy", "counter"],
    &["--trigger", "perf"],
];

#[test]
fn programs_look_for_their_leaks_as_without_us() {
    let bench = Bench::new();
    let (source, program) = (bench.path("leaks.c"), bench.path("leaks"));
    std::fs::write(&source, LEAKS).unwrap();
    let built =
        Command::new("cc").args(["-O1", "-fsanitize=address", "-o"]).args([&program, &source]).output();
    if !built.is_ok_and(|built| built.status.success()) {
        return eprintln!("not tried: this machine has no AddressSanitizer");
    }
    let program = program.to_str().unwrap();
    let modes = &MODES[..MODES.len() - usize::from(!perf_is_allowed(&bench))];
    for arguments in [&[program][..], &[program, "leak"]] {
        let native = bench.native(arguments);
        let leaks = native.err.contains("detected memory leaks");
        assert_eq!(leaks, arguments.len() > 1, "{}", native.err);
        for mode in modes {
            let (done, report) = bench.report(mode, arguments);
            assert_eq!((done.status, done.signal), (native.status, native.signal), "{mode:?} {}", done.err);
            assert_eq!(done.out, native.out, "{mode:?}");
            assert_eq!(done.err.contains("detected memory leaks"), leaks, "{mode:?} {}", done.err);
            let whole = mode.contains(&"--policy");
            assert!(report["instructions"].as_u64() > Some(0) || !whole, "{mode:?} {report}");
        }
        // In a process that becomes one, and in a child of one that is followed.
        let become_one = [&["env", "A=1"], arguments].concat();
        assert_eq!(bench.report(&[], &become_one).0.status, native.status);
        let child = ["sh", "-c", "\"$@\"; exit $?", "sh"];
        assert_eq!(bench.report(&["--follow"], &[&child[..], arguments].concat()).0.status, native.status);
    }
    // What cannot work is said before.
    let done = bench.sonde(&["run", "--trigger", "stops", "--", program]);
    assert!(done.err.starts_with("sonde: the program looks for leaks"), "{}", done.err);
}

/// Traces a child that asks for it, one that does not, and one that it does not wait for.
const DEBUGGER: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int seized = 0; seized < 42; seized++) {
        int status, stops = 0, go[2];
        char byte;
        if (pipe(go)) return 1;
        pid_t child = fork();
        if (child == 0) {
            if (!seized && ptrace(PTRACE_TRACEME, 0, 0, 0)) _exit(9);
            close(go[1]);
            if (seized < 2) raise(SIGSTOP);
            else if (read(go[0], &byte, 1) != 0) _exit(7);
            volatile unsigned sum = 0;
            for (unsigned i = 0; i < (seized < 2 ? 30000000 : 3000000); i++) sum += i;
            execlp("true", "true", (char *)0);
            _exit(8);
        }
        if (seized < 2) waitpid(child, &status, WUNTRACED);
        if (seized) {
            if (ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACEEXEC)) perror("seize");
            if (seized == 1) kill(child, SIGCONT);
        } else {
            ptrace(PTRACE_CONT, child, 0, 0);
        }
        close(go[0]), close(go[1]);
        while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
            stops += WSTOPSIG(status) == SIGTRAP;
            ptrace(PTRACE_CONT, child, 0, 0);
        }
        printf("%d stops %d status %d\n", seized, stops > 0, WEXITSTATUS(status));
    }
    return 0;
}
"#;

#[test]
fn a_debugger_traces_its_children_also_where_they_are_followed() {
    let bench = Bench::new();
    let program = bench.compile("debugger", DEBUGGER, &["-O1"]);
    let program = program.to_str().unwrap();
    let native = bench.native(&[program]).good();
    for command in [&[program][..], &["sh", "-c", "\"$0\"; exit $?", program]] {
        for options in [&[][..], &["--follow", "--period", "1ms"]] {
            let (done, report) = bench.report(options, command);
            assert_eq!(done.text(), native.text(), "{options:?} {}", done.err);
            assert_eq!(done.status, Some(0));
            assert!(report["children"].as_u64() >= Some(1), "{options:?} {report}");
        }
    }
}

/// How much longer than natively a program may take whose signals come every 20 us, where it is not recorded as a whole. A
/// tenth of a second is what starting and reporting take on a busy machine.
const MOST_TIMES: u32 = 60;

#[test]
fn signals_that_come_too_fast_for_a_tracer_do_not_hold_a_program_up() {
    let bench = Bench::new();
    let programs = manifest::programs().unwrap();
    let storm: Vec<_> = programs.into_iter().filter(|program| program.name == "storm").collect();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("storm");
    compile::build(&storm, &folder, 1).unwrap();
    let program = folder.join("storm");
    let program = program.to_str().unwrap();
    let begun = Instant::now();
    let native = bench.native(&[program, "20"]).good();
    let most = (begun.elapsed() + Duration::from_millis(100)) * MOST_TIMES;
    let in_place = ["--policy", "counter", "--in-place"];
    let allowed =
        bench.sonde(&[&["run", "--quiet"][..], &in_place, &["--", "true"]].concat()).status == Some(0);
    let modes = [&[][..], &["--follow"], &["--period", "1ms"], &["--trigger", "timer"], &in_place];
    for options in &modes[..modes.len() - usize::from(!allowed)] {
        let begun = Instant::now();
        let (done, report) = bench.report(options, &[program, "20"]);
        assert_eq!((done.status, done.text()), (Some(0), native.text()), "{options:?} {}", done.err);
        assert!(begun.elapsed() < most, "{options:?}: {:?} of {most:?}", begun.elapsed());
        let traced = !options.contains(&"timer");
        assert_eq!(report["drops"]["let_go"].as_u64() > Some(0), traced, "{options:?} {report}");
    }
}

/// The same for ever.
const FOREVER: &str = r#"
#include <signal.h>
#include <sys/time.h>
static volatile unsigned long n;
static void handler(int signo) { n++; }
int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 20}, {0, 20}};
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (volatile unsigned long i = 0;; i++) {}
}
"#;

/// What `/proc` says of a process.
fn status(pid: &str, name: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = text.lines().find_map(|line| line.strip_prefix(name));
    field.unwrap_or_default().trim().into()
}

/// Sends a signal to a process, or to a group. The shell's own `kill`: a minimal system has no other.
fn send(signal: &str, to: &str) {
    let command = format!("kill -s {signal} -- {to}");
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_program_that_was_let_go_is_stopped_and_continued() {
    let bench = Bench::new();
    let program = bench.compile("forever", FOREVER, &["-O1"]);
    let args = ["run", "--quiet", "--", program.to_str().unwrap()];
    let mut sonde = bench.command(env!("CARGO_BIN_EXE_sonde"), &args).spawn().unwrap();
    let own = sonde.id().to_string();
    let children = || std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let program = || children().trim().to_owned();
    wait_until("the program is let go", || {
        status(&program(), "Name:") == "forever" && status(&program(), "TracerPid:") == "0"
    });
    let pid = program();
    let send = |signal: &str| send(signal, &pid);
    send("STOP");
    wait_until("Sonde stops with it", || status(&own, "State:").starts_with('T'));
    send("CONT");
    wait_until("both go on", || {
        let goes = |pid: &str| status(pid, "State:").starts_with(['R', 'S']);
        goes(&own) && goes(&pid)
    });
    send("TERM");
    assert_eq!(sonde.wait().unwrap().signal(), Some(15));
}

const THREADS: &str = r#"
#include <pthread.h>
static void *work(void *unused) { for (volatile unsigned long i = 0;; i++) {} return unused; }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    pthread_join(threads[0], 0);
}
"#;

/// Each thread of a program reports that it is stopped; Sonde stops like it all the same, and whoever started it is told.
#[test]
fn sonde_stops_with_a_program_of_several_threads() {
    let bench = Bench::new();
    let program = bench.compile("threads", THREADS, &["-O1", "-pthread"]);
    for round in 0..4 {
        let args = ["run", "--quiet", "--period", "2ms", "--", program.to_str().unwrap()];
        let mut sonde = bench.command(env!("CARGO_BIN_EXE_sonde"), &args).process_group(0).spawn().unwrap();
        let own = sonde.id().to_string();
        let children =
            || std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
        wait_until("its threads run", || status(children().trim(), "Threads:") == "4");
        std::thread::sleep(Duration::from_millis(20 * round));
        let group = format!("-{own}");
        send("TSTP", &group);
        wait_until("Sonde stops with it", || status(&own, "State:").starts_with('T'));
        send("CONT", &group);
        wait_until("it goes on", || status(&own, "State:").starts_with(['R', 'S']));
        send("TERM", &group);
        assert_eq!(sonde.wait().unwrap().signal(), Some(15));
    }
}
