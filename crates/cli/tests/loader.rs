//! Ways into a program where ptrace is not allowed, and what each machine is said to allow. What a container refuses is
//! refused here by a seccomp filter in front of `sonde`.

#[path = "common/sonde.rs"]
mod sonde;

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use sonde::Bench;
use sonde_harness::start::{Signal, send};
use sonde_harness::trial::Subject;
use sonde_harness::{compile, manifest};

const EPERM: &str = "1";
const ENOSYS: &str = "38";

/// `sonde` behind a filter that answers some calls with an error.
struct Container {
    bench: Bench,
    forbid: String,
}

impl Container {
    fn new() -> Container {
        let bench = Bench::new();
        let forbid = bench.compile("forbid", include_str!("programs/forbid.c"), &["-O1"]);
        Container { forbid: forbid.display().to_string(), bench }
    }

    fn sonde(&self, error: &str, calls: &[&str], args: &[&str]) -> Output {
        let args = [&[error], calls, &["--", env!("CARGO_BIN_EXE_sonde")], args].concat();
        self.bench.command(&self.forbid, &args).output().unwrap()
    }

    fn report(
        &self,
        error: &str,
        calls: &[&str],
        options: &[&str],
        program: &[&str],
    ) -> (Output, serde_json::Value) {
        let args = [&["run", "--quiet", "--json=report"], options, &["--"], program].concat();
        let done = self.sonde(error, calls, &args);
        let text = std::fs::read_to_string(self.bench.path("report"));
        let text = text.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)));
        (done, serde_json::from_str(&text).unwrap())
    }
}

#[test]
fn without_ptrace_the_dynamic_loader_maps_the_probe() {
    let container = Container::new();
    let program = ["gzip", "-9", "-c", "lines"];
    let native = container.bench.native(&program).good();
    for error in [EPERM, ENOSYS] {
        for (calls, triggers) in
            [(&["ptrace"][..], &["perf", "timer"][..]), (&["ptrace", "perf"], &["timer"])]
        {
            let (done, report) = container.report(error, calls, &["--period", "1ms"], &program);
            assert!(done.status.success() && done.stdout == native.out, "{error} {calls:?}");
            assert!(report["loader"].as_str().unwrap().contains("LD_PRELOAD"), "{report}");
            assert!(report["loader_note"].as_str().unwrap().contains("ptrace"), "{report}");
            assert!(triggers.contains(&report["trigger"].as_str().unwrap()), "{report}");
            assert!(report["error"].is_null() && report["bursts"].as_u64().unwrap() > 0, "{report}");
        }
    }
    let (_, report) = container.report(ENOSYS, &["ptrace", "perf"], &[], &program);
    assert!(report["trigger_note"].as_str().unwrap().contains("perf events"), "{report}");
    // Where ptrace is allowed, nothing changes.
    let (_, report) = container.report(EPERM, &["perf"], &[], &program);
    assert!(report["loader_note"].is_null() && report["trigger"] == "stops", "{report}");
}

#[test]
fn the_program_and_its_children_do_not_see_the_variable() {
    let bench = Bench::new();
    let script = "env | sort; sh -c 'env | sort | md5sum'; tr '\\0' '\\n' < /proc/self/environ | grep -c LD_PRELOAD; echo $LD_PRELOAD";
    for own in [None, Some(""), Some("libc.so.6"), Some("libc.so.6:libm.so.6")] {
        let run = |program: &str, args: &[&str]| {
            let mut command = bench.command(program, args);
            match own {
                Some(list) => command.env("LD_PRELOAD", list),
                None => command.env_remove("LD_PRELOAD"),
            };
            command.output().unwrap()
        };
        let native = run("sh", &["-c", script]);
        for trigger in ["timer", "auto"] {
            let options =
                ["run", "--quiet", "--loader", "preload", "--trigger", trigger, "--", "sh", "-c", script];
            let observed = run(env!("CARGO_BIN_EXE_sonde"), &options);
            // An empty list is the same as none, and is not kept.
            let text = |output: &Output| String::from_utf8_lossy(&output.stdout).replace("LD_PRELOAD=\n", "");
            if own != Some("") {
                assert_eq!(text(&observed), text(&native), "{own:?} {trigger}");
            }
            assert_eq!(observed.status.code(), native.status.code());
            assert!(!text(&observed).contains("/proc/self/fd"), "{}", text(&observed));
        }
    }
}

#[test]
fn what_cannot_be_preloaded_gets_a_sentence() {
    let container = Container::new();
    let source = "int main(void) { return 0; }";
    let program = container.bench.compile("alone", source, &["-static"]).display().to_string();
    for (options, word) in [
        (&["--", &program][..], "static"),
        (&["--policy", "always", "--", "true"], "--policy bursts"),
        (&["--follow", "--", "true"], "--follow"),
        (&["--trigger", "stops", "--", "true"], "--trigger"),
        (&["--loader", "ptrace", "--", "true"], "ptrace is not allowed"),
    ] {
        let done = container.sonde(EPERM, &["ptrace"], &[&["run"], options].concat());
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            !done.status.success() && text.contains(word) && text.contains("doctor"),
            "{options:?}: {text}"
        );
    }
}

#[test]
fn the_doctor_says_what_is_left() {
    let container = Container::new();
    let done = container.sonde(EPERM, &["ptrace", "perf"], &["doctor"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}");
    let line = |subject: &str| text.lines().find(|l| l.contains(subject)).unwrap_or_else(|| panic!("{text}"));
    assert!(line("ptrace").starts_with("limited"), "{text}");
    assert!(line("perf events").starts_with("limited"), "{text}");
    assert!(line("a whole run").starts_with("limited"), "{text}");
}

#[test]
fn hostile_programs_are_the_same_in_a_container() {
    let container = Container::new();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-container");
    let names = [
        "children",
        "exec_self",
        "short_threads",
        "exceptions",
        "segv_jump",
        "fault_pc",
        "own_trap",
        "jit",
        "contexts",
        "locked",
        "list_fds",
        "plugins",
        "eintr",
        "long_jump",
        "plugin_a.so",
        "plugin_b.so",
    ];
    let programs = manifest::programs().expect("the list is well formed");
    let chosen: Vec<_> = programs.into_iter().filter(|p| names.contains(&p.name.as_str())).collect();
    compile::build(&chosen, &folder, 2).expect("the programs can be built");
    let mut bursts = 0;
    for program in &chosen {
        let Some(subject) = Subject::hostile(program, &folder, Duration::from_secs(20)) else { continue };
        let command: Vec<String> =
            subject.job.command.iter().map(|w| w.to_string_lossy().into_owned()).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let native = container.bench.native(&command);
        for calls in [&["ptrace"][..], &["ptrace", "perf"]] {
            let observe = || container.report(EPERM, calls, &["--no-ranges", "--period", "1ms"], &command);
            let same = |done: &std::process::Output| {
                (done.status.code(), &done.stdout) == (native.status, &native.out)
                    && String::from_utf8_lossy(&done.stderr) == native.err
            };
            let (done, report) = observe();
            let out = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(same(&done), "{} without {calls:?}: {:?}\n{out}", program.name, done.status);
            assert!(report["error"].is_null(), "{}: {report}", program.name);
            bursts += report["bursts"].as_u64().unwrap();
        }
    }
    assert!(bursts > 100, "only {bursts} bursts");
}

/// Sets a handler for a signal that it inherited as ignored.
const HANDLES: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t got;
static void handler(int s) { got = s; }
int main(void) {
    struct sigaction before;
    sigaction(SIGINT, 0, &before);
    printf("ignored %d\n", before.sa_handler == SIG_IGN);
    signal(SIGINT, handler);
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < 2000 && !got; i++) usleep(10000);
    printf("got %d\n", got);
    return 0;
}
"#;

#[test]
fn a_signal_that_was_inherited_as_ignored_reaches_a_handler() {
    use std::io::{BufRead, BufReader, Read};
    let bench = Bench::new();
    let program = bench.compile("handles", HANDLES, &["-O1"]).display().to_string();
    let script = "trap '' INT; exec \"$@\"";
    let args = ["-c", script, "sh", env!("CARGO_BIN_EXE_sonde"), "run", "--quiet", "--", &program];
    let mut child = bench.command("sh", &args).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        assert!(out.read_line(&mut line).unwrap() > 0, "{line}");
    }
    send(Signal::SIGINT, &child).unwrap();
    out.read_to_string(&mut line).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(line, "ignored 1\nready\ngot 2\n");
}

/// Files of at most so many KiB, for a shell.
#[test]
fn a_limit_on_the_size_of_files_is_the_programs_and_not_in_our_way() {
    let bench = Bench::new();
    let work = "ulimit -f; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exec sh -c 'ulimit -f; gzip -c few | wc -c'";
    for limit in ["0", "100000"] {
        let native = bench.native(&["sh", "-c", &format!("ulimit -f {limit}; {work}")]).good();
        for mode in [
            "--period 1ms",
            "--period 1ms --follow",
            "--trigger timer",
            "--policy always --record blocks",
            "--policy counter",
        ] {
            let script = format!("ulimit -f {limit}; exec \"$0\" run --quiet --json {mode} -- sh -c \"$1\"");
            let args = ["-c", &script, env!("CARGO_BIN_EXE_sonde"), work];
            let done = bench.command("sh", &args).output().unwrap();
            let err = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{limit} {mode}: {:?} {err}", done.status);
            assert_eq!(String::from_utf8_lossy(&done.stdout), native.text(), "{limit} {mode}");
            let report: serde_json::Value = serde_json::from_str(&err).unwrap_or_else(|_| panic!("{err}"));
            assert!(report["instructions"].as_u64() > Some(0), "{limit} {mode}: {report}");
            assert!(!err.contains("SYSV"), "{limit} {mode}: our own memory is told");
        }
        // A file that cannot be written is an error, and not the end.
        let script = format!("ulimit -f {limit}; exec \"$0\" run --quiet -o profile -- true");
        let args = ["-c", &script, env!("CARGO_BIN_EXE_sonde")];
        let done = bench.command("sh", &args).output().unwrap();
        assert_eq!(done.status.code(), Some(i32::from(limit == "0")), "{:?}", done.status);
    }
}
