//! `--policy counter --in-place`: checks are counted in the program's own code, and nothing else about it changes.

#[path = "common/sonde.rs"]
mod sonde;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sonde::Bench;

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("{key} in {report}"))
}

/// A place to work in, where this machine allows it (userfaultfd): `sonde doctor` says so.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    let allowed =
        bench.sonde(&["doctor"]).text().lines().any(|l| l.starts_with("ok") && l.contains("watched pages"));
    if !allowed {
        eprintln!("not tried: this machine does not allow userfaultfd");
    }
    allowed.then_some(bench)
}

/// A run of a program, and its report.
fn counted(bench: &Bench, burst: &str, scheme: &str, program: &[&str]) -> Value {
    let options = ["--policy", "counter", "--in-place", "--burst", burst, "--checks", scheme];
    let (done, report) = bench.report(&options, program);
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!(done.out, bench.native(program).out, "{scheme}");
    report
}

#[test]
fn bursts_come_after_so_many_checks_and_hold_the_programs_own_code() {
    let Some(bench) = bench() else { return };
    let program = bench.compile("spin", SPIN, &["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]);
    let program = program.to_str().unwrap();
    let report = counted(&bench, "1000000:1000", "EC+L4", &[program, "6000000"]);
    // Each of the six million calls of `down` recurses ten times, and the loop that makes them counts, too.
    let bursts = number(&report, "bursts");
    assert!((60..=75).contains(&bursts), "{bursts} bursts");
    let in_place = &report["in_place"];
    assert!(number(in_place, "places") > 1000 && number(in_place, "modules") >= 2, "{in_place}");
    assert!(in_place["error"].is_null(), "{in_place}");
    let hot = report["hot_code"].to_string();
    assert!(hot.contains("down"), "{hot}");
    // Twice as many checks between bursts, half as many bursts.
    let fewer = number(&counted(&bench, "2000000:1000", "EC+L4", &[program, "6000000"]), "bursts");
    assert!((bursts / 2 - 1..=bursts / 2 + 1).contains(&fewer), "{bursts} and {fewer}");
}

const SPIN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static volatile long sum;
static long down(long n) { return n ? down(n - 1) + 1 : 0; }
int main(int argc, char **argv) {
    for (long i = atol(argv[1]); i > 0; i--) sum += down(10);
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn profiles_say_where_checks_were_counted() {
    let Some(bench) = bench() else { return };
    let options = ["run", "--quiet", "--policy", "counter", "--in-place", "--burst", "20000:500", "-o", "p"];
    bench.sonde(&[&options[..], &["--", "gzip", "-c", "lines"]].concat()).good();
    let text = bench.sonde(&["report", "p"]).good().text();
    assert!(
        text.contains("counted in the program's own code") && text.contains("% of the CPU time in bursts"),
        "{text}"
    );
    assert!(!text.contains("ran in copies"), "{text}");
}

#[test]
fn a_program_that_uses_gs_is_left_alone_and_the_report_says_why() {
    let Some(bench) = bench() else { return };
    let program = bench.compile("gs", GS, &["-O1"]);
    let program = program.to_str().unwrap();
    let (done, report) = bench.report(&["--policy", "counter", "--in-place"], &[program]);
    assert_eq!((done.status, done.out), (Some(0), b"7\n".to_vec()));
    let why = report["in_place"]["error"].as_str().unwrap();
    assert!(why.contains("gs segment"), "{why}");
    assert_eq!(number(&report, "bursts"), 0);
}

const GS: &str = r#"
#include <stdio.h>
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    static long area[8] = {7};
    long value;
    syscall(SYS_arch_prctl, ARCH_SET_GS, area);
    __asm__ volatile("mov %%gs:0, %0" : "=r"(value));
    printf("%ld\n", value);
    return 0;
}
"#;

/// Who rings and finds nobody home goes on: the kernel gives the page when Sonde is gone. So does who stands still while its
/// code is analysed.
#[test]
fn the_program_goes_on_when_sonde_is_killed() {
    let Some(bench) = bench() else { return };
    let program = bench.compile("forever", FOREVER, &["-O1", "-fno-inline"]);
    let program = program.to_str().unwrap();
    let args = ["run", "--quiet", "--policy", "counter", "--in-place", "--burst", "20000:50", "--", program];
    for after in [60, 150, 700] {
        let mut child = bench
            .command(env!("CARGO_BIN_EXE_sonde"), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::sleep(Duration::from_millis(after));
        child.kill().unwrap();
        child.wait().unwrap();
        // It ends by itself, and well. Before it was started there was nothing to end.
        let last = lines.map_while(Result::ok).last();
        assert!(last.as_deref() == Some("done") || last.is_none() && after < 700, "{after} ms: {last:?}");
    }
}

const FOREVER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *work(void *unused) { return (void *)fib(22); }
int main(void) {
    printf("%d\n", getpid());
    fflush(stdout);
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        pthread_t thread;
        if (fib(20) != 6765 || pthread_create(&thread, 0, work, 0)) return 1;
        void *result;
        pthread_join(thread, &result);
        if ((long)result != 17711) return 2;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - from.tv_sec < 2);
    puts("done");
    return 0;
}
"#;

/// A child that runs on gets its code as it was, one that execs counts where nobody looks.
#[test]
fn children_count_for_nobody() {
    let Some(bench) = bench() else { return };
    let program = bench.compile("children", CHILDREN, &["-O1", "-fno-inline"]);
    let program = program.to_str().unwrap();
    let report = counted(&bench, "5000:100", "orig", &[program]);
    assert!(number(&report, "bursts") > 10 && number(&report, "children") == 40, "{report}");
}

const CHILDREN: &str = r#"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
/* The program's own code, byte by byte. */
static int is_as_the_file_says(void) {
    char line[512], path[256] = "";
    unsigned long start, end, offset;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %255s", &start, &end, &offset, path) == 4 && strstr(path, "children"))
            break;
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, (long)offset, SEEK_SET)) return 0;
    for (unsigned char *at = (unsigned char *)start; at < (unsigned char *)end; at++) {
        int byte = fgetc(file);
        if (byte != EOF && byte != *at) return 0;
    }
    return 1;
}
int main(void) {
    long bad = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) _exit(fib(20) == 6765 && is_as_the_file_says() ? 5 : 6);
        char *args[] = {"true", 0};
        pid_t other;
        if (posix_spawnp(&other, "true", 0, 0, args, environ)) return 1;
        int status;
        waitpid(child, &status, 0);
        bad += status != 5 << 8;
        waitpid(other, &status, 0);
        bad += status != 0;
        bad += fib(18) != 2584;
    }
    printf("%ld\n", bad);
    return 0;
}
"#;

#[test]
fn what_does_not_go_together_is_refused() {
    let bench = Bench::new();
    for (options, says) in [
        (&["--in-place"][..], "--policy counter"),
        (&["--policy", "counter", "--in-place", "--loader", "preload"], "ptrace"),
        (&["--policy", "counter", "--in-place", "--follow"], "--follow"),
    ] {
        let wrong = bench.sonde(&[&["run"], options, &["--", "true"]].concat());
        assert_eq!(wrong.status, Some(2), "{options:?}: {}", wrong.err);
        assert!(wrong.err.contains(says), "{options:?}: {}", wrong.err);
    }
}

/// Code that comes later is not changed, and code that comes where changed code was is not taken for it.
#[test]
fn libraries_that_come_and_go_do_what_they_do() {
    let Some(bench) = bench() else { return };
    let program = bench.compile("later", LATER, &["-O1", "-ldl"]);
    let program = program.to_str().unwrap();
    bench.compile(
        "one.so",
        "long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }",
        &["-O1", "-shared", "-fPIC"],
    );
    bench.compile(
        "two.so",
        "long f(long n) { long s = 0; while (n--) s += n ^ s; return s; }",
        &["-O1", "-shared", "-fPIC"],
    );
    counted(&bench, "3000:500", "orig", &[program]);
}

const LATER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        void *library = dlopen(i % 2 ? "./one.so" : "./two.so", RTLD_NOW);
        if (!library) { puts(dlerror()); return 1; }
        long (*f)(long) = (long (*)(long))dlsym(library, "f");
        sum = sum * 31 + f(17);
        dlclose(library);
    }
    printf("%ld\n", sum);
    return 0;
}
"#;
