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
