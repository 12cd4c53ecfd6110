//! Exact loop profiles of real code: programs whose executions and iterations are known are recorded from begin to end,
//! with and without optimization, and every loop must have been seen as it was.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::Bench;
use sonde_event::trace::{TraceReader, replay};
use sonde_loops::{
    Calls, CompareConfig, DaprofConfig, DaprofReader, ExactConfig, ExactReader, FrequentConfig,
    FrequentReader, LoopsProfile, Weight, compare, daprof_reports,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = include_str!("programs/loops.c");

/// First pc and size of each function.
fn functions(program: &Path) -> BTreeMap<String, (u64, u64)> {
    let listed = Command::new("nm").arg("-S").arg(program).output().expect("nm runs").stdout;
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("a number");
    String::from_utf8(listed)
        .expect("text")
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (words.len() == 4).then(|| (words[3].to_string(), (hex(words[0]), hex(words[1]))))
        })
        .collect()
}

/// The exact profile of a recorded program.
fn profile(bench: &Bench, options: &[&str], program: &[&str], config: ExactConfig) -> LoopsProfile {
    let args = [&["trace", "record", "-o", "t"], options, &["--"], program].concat();
    bench.sonde(&args).good();
    let mut trace = TraceReader::new(std::fs::File::open(bench.path("t")).unwrap()).unwrap();
    let mut reader = ExactReader::new(config).unwrap();
    let done = replay(&mut trace, &mut reader).unwrap();
    let profile = reader.finish(done.decoders[&0].catalog());
    profile.check().unwrap();
    profile
}

/// Executions, iterations, least and most of each loop of a function, by address.
fn loops_of(profile: &LoopsProfile, function: (u64, u64)) -> Vec<(u64, u64, u64, u64)> {
    let inside = profile.loops.iter().filter(|l| (function.0..function.0 + function.1).contains(&l.header));
    let mut all: Vec<(u64, u64, u64, u64)> = inside
        .map(|l| {
            assert_eq!(l.cut.passes, 0, "{l:?}");
            assert!(!l.guessed, "{l:?}");
            (l.whole.executions, l.whole.iterations, l.whole.least, l.whole.most)
        })
        .collect();
    all.sort_unstable();
    all
}

/// Executions, iterations of all, least and most of one.
type Counts = (u64, u64, u64, u64);

#[test]
fn executions_and_iterations_of_known_loops_are_exact() {
    let bench = Bench::new();
    let expected: [(&str, &[Counts]); 11] = [
        ("nested", &[(1, 10, 10, 10), (10, 70, 7, 7)]),
        ("do_while", &[(1, 25, 25, 25)]),
        ("recursive", &[(6, 18, 3, 3)]),
        ("leaf", &[(20, 100, 5, 5)]),
        ("caller", &[(1, 4, 4, 4), (1, 20, 20, 20)]),
        ("breaks", &[(1, 13, 13, 13)]),
        ("returns", &[(1, 3, 3, 3), (3, 109, 9, 50)]),
        ("jumps_inner", &[(6, 24, 4, 4)]),
        ("jumps", &[(1, 6, 6, 6)]),
        ("continues", &[(1, 40, 40, 40)]),
        ("threaded", &[(3, 300, 100, 100)]),
    ];
    // Optimizing compilers copy the first half of an iteration in front of a loop that is left in the middle and let the
    // loop begin with the second half: a pass that ends in a first half is then not there.
    let peeled: [(&str, &[Counts]); 3] = [
        ("breaks", &[(1, 12, 12, 12)]),
        ("returns", &[(1, 3, 3, 3), (3, 108, 8, 50)]),
        ("jumps_inner", &[(6, 18, 3, 3)]),
    ];
    for optimization in ["-O0", "-O1", "-O2", "-O3"] {
        let program = bench.compile("loops", SOURCE, &[optimization, "-no-pie", "-pthread"]);
        let functions = functions(&program);
        for record in ["blocks", "values"] {
            let options = ["--policy", "always", "--record", record];
            let profile = profile(&bench, &options, &[program.to_str().unwrap()], ExactConfig::default());
            for (name, loops) in expected {
                let got = loops_of(&profile, functions[name]);
                let other = peeled.iter().find(|p| p.0 == name && optimization != "-O0");
                if other.is_none_or(|(_, loops)| got != *loops) {
                    assert_eq!(got, loops, "{name} {optimization} {record}");
                }
            }
            // With a guard before it the loop is not even entered.
            let never = loops_of(&profile, functions["never"]);
            assert!(never.iter().all(|l| *l == (11, 0, 0, 0) || *l == (0, 0, 0, 0)), "{never:?}");
            let doubts = profile.doubts;
            assert_eq!((doubts.lost, doubts.overflows, doubts.gaps, doubts.replaced), (0, 0, 0, 0));
            // Each of six longjmps leaves at least longjmp's own activation and two of the program's.
            assert!(doubts.unwound >= 18, "{doubts:?}");
        }
    }
}

const SIGNALS: &str = "\
#include <signal.h>
#include <sys/time.h>
volatile int table[64], handled;
void handler(int number) {
    for (int i = 0; i < 100; i++)
        handled += number;
}
__attribute__((noinline)) int summed(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += table[i & 63];
    return sum;
}
int main(void) {
    struct itimerval often = {{0, 300}, {0, 300}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, 0);
    int sum = 0;
    for (int i = 0; i < 5000 || handled < 20 * SIGALRM * 100; i++)
        sum += summed(50);
    return sum;
}
";

/// Handlers that come in the middle of loops are activations of their own, and what they interrupt goes on.
#[test]
fn loops_that_signals_interrupt_are_exact() {
    let bench = Bench::new();
    let program = bench.compile("signals", SIGNALS, &["-O1", "-no-pie"]);
    let functions = functions(&program);
    let options = ["--policy", "always"];
    let profile = profile(&bench, &options, &[program.to_str().unwrap()], ExactConfig::default());
    let of_main = loops_of(&profile, functions["main"]);
    assert!(of_main.len() == 1 && of_main[0].0 == 1 && of_main[0].1 >= 5000, "{of_main:?}");
    let executions = of_main[0].1;
    assert_eq!(loops_of(&profile, functions["summed"]), [(executions, 50 * executions, 50, 50)]);
    let of_handler = loops_of(&profile, functions["handler"]);
    assert!(of_handler.len() == 1 && of_handler[0].0 >= 20 && of_handler[0].2 == 100, "{of_handler:?}");
    assert_eq!((profile.doubts.lost, profile.doubts.unwound), (0, 0), "{:?}", profile.doubts);
}

/// Replays what was recorded last to other readers.
fn replayed<R: sonde_event::Reader>(bench: &Bench, reader: &mut R) -> sonde_event::trace::Replayed {
    let mut trace = TraceReader::new(std::fs::File::open(bench.path("t")).unwrap()).unwrap();
    replay(&mut trace, reader).unwrap()
}

#[test]
fn limits_are_kept_and_what_they_cost_is_counted() {
    let bench = Bench::new();
    let program = bench.compile("loops", SOURCE, &["-O0", "-no-pie", "-pthread"]);
    let always = ["--policy", "always", "--record", "blocks"];
    let whole = profile(&bench, &always, &[program.to_str().unwrap()], ExactConfig::default());
    let limited = |config: ExactConfig| {
        let mut reader = ExactReader::new(config).unwrap();
        let done = replayed(&bench, &mut reader);
        let memory = reader.memory_bytes();
        let profile = reader.finish(done.decoders[&0].catalog());
        profile.check().unwrap();
        assert_eq!(profile.instructions, whole.instructions);
        (profile, memory)
    };
    let (blocks, memory) = limited(ExactConfig { max_blocks: 100, ..ExactConfig::default() });
    assert!(blocks.doubts.beyond_blocks > 0);
    assert!(memory < 1 << 20, "{memory}");
    let (depth, _) = limited(ExactConfig { max_depth: 64, ..ExactConfig::default() });
    assert!(depth.doubts.overflows > 0);
}

#[test]
fn profiles_move_and_add_up() {
    let bench = Bench::new();
    let program = bench.compile("loops", SOURCE, &["-O1", "-no-pie", "-pthread"]);
    let always = ["--policy", "always", "--record", "blocks"];
    let first = profile(&bench, &always, &[program.to_str().unwrap()], ExactConfig::default());
    let mut moved = first.clone();
    moved.relocate(&mut |address| address + (1 << 48));
    moved.check().unwrap();
    assert_ne!(moved, first);
    moved.relocate(&mut |address| address - (1 << 48));
    assert_eq!(moved, first);
    moved.merge(&first);
    moved.check().unwrap();
    assert_eq!(moved.instructions, 2 * first.instructions);
    for (both, one) in moved.loops.iter().zip(&first.loops) {
        assert_eq!(both.whole.executions, 2 * one.whole.executions);
        assert_eq!((both.whole.mean(), both.extent), (one.whole.mean(), one.extent));
        assert_eq!(moved.share(both.own_weight), first.share(one.own_weight));
    }
    // All in one place.
    moved.relocate(&mut |_| 7);
    assert_eq!(moved.loops.len(), 1);
    assert_eq!(moved.loops[0].own, 2 * first.loops.iter().map(|l| l.own).sum::<u64>());
}

#[test]
fn hardware_profilers_see_what_the_exact_one_does() {
    let bench = Bench::new();
    // A loop of 100 rounds that calls one of 8; 400 executions.
    let source = r#"
        static volatile unsigned long sink;
        __attribute__((noinline, noipa)) static void inner(unsigned long n) {
            for (unsigned long i = 0; i < n; i++) sink += i;
        }
        __attribute__((noinline, noipa)) static void outer(unsigned long n) {
            for (unsigned long i = 0; i < n; i++) { inner(8); sink ^= i; }
        }
        int main(void) {
            for (volatile unsigned i = 0; i < 400; i++) outer(100);
            return 0;
        }"#;
    let program = bench.compile("hardware", source, &["-O1", "-no-pie"]);
    let functions = functions(&program);
    let always = ["--policy", "always", "--record", "blocks"];
    let exact = profile(&bench, &always, &[program.to_str().unwrap()], ExactConfig::default());
    let seen = |calls: Calls, name: &str| {
        let config = DaprofConfig { calls, ..DaprofConfig::default() };
        let mut reader = DaprofReader::new(config).unwrap();
        replayed(&bench, &mut reader);
        let profile = reader.finish();
        profile.check().unwrap();
        let (from, len) = functions[name];
        let found = profile.loops.iter().find(|l| (from..from + len).contains(&l.branch)).cloned();
        let reports = daprof_reports(&profile, &CompareConfig::default());
        (found.expect("the loop"), compare(&reports, &exact, &CompareConfig::default()))
    };
    // Rotated loops go back once less than they iterate. Cutting off bits costs up to 7/8 of an iteration.
    let near = |average: f64, actual: f64| (actual - 0.9..=actual).contains(&average);
    // Where the loops of the C library lie is random. One of them may displace an entry of ours that is new, which then counts
    // from a later execution on.
    let nearly_all = |seen: u64, all: u64| (all - 4..=all).contains(&seen);
    for calls in [Calls::Plain, Calls::Followed] {
        let (inner, comparison) = seen(calls, "inner");
        assert!(nearly_all(inner.executions, 40_000), "{inner:?}");
        assert!(near(inner.average, 7.0), "{inner:?}");
        assert!(comparison.captured > 0.6, "{comparison:?}");
    }
    let (plain, _) = seen(Calls::Plain, "outer");
    assert!(nearly_all(plain.executions, 400 * 99), "{plain:?}");
    let (followed, comparison) = seen(Calls::Followed, "outer");
    assert!(nearly_all(followed.executions, 400), "{followed:?}");
    assert!(near(followed.average, 99.0), "{followed:?}");
    assert!(comparison.rows.iter().any(|r| r.average == 99.0 && r.executions == 400.0));
    let (from, len) = functions["inner"];
    let counted = |entries: usize| {
        let mut reader =
            FrequentReader::new(FrequentConfig { entries, ..FrequentConfig::default() }).unwrap();
        replayed(&bench, &mut reader);
        let profile = reader.finish();
        profile.check().unwrap();
        profile.loops.iter().find(|l| (from..from + len).contains(&l.branch)).map_or(0, |l| l.count)
    };
    assert_eq!(counted(1024), 40_000 * 7);
    // With 16 entries, loops of the start-up have counts that new ones never reach: these displace each other each time,
    // which is what freshness was invented against (paper 5 section 3.2.4).
    assert!(counted(16) < 40_000);
}

#[test]
fn shares_are_own_and_inclusive() {
    let bench = Bench::new();
    let program = bench.compile("loops", SOURCE, &["-O1", "-no-pie", "-pthread"]);
    let functions = functions(&program);
    let always = ["--policy", "always", "--record", "blocks"];
    let profile = profile(&bench, &always, &[program.to_str().unwrap()], ExactConfig::default());
    let in_function = |name: &str| {
        let (from, len) = functions[name];
        profile.loops.iter().filter(move |l| (from..from + len).contains(&l.header))
    };
    let leaf = in_function("leaf").next().expect("a loop");
    let calling = in_function("caller").find(|l| l.whole.iterations == 20).expect("a loop");
    assert_eq!(leaf.own, leaf.inclusive);
    // Only the loop's own iterations, and all that was done in the calls.
    assert!(calling.inclusive > calling.own + leaf.own, "{calling:?} {leaf:?}");
    assert!(calling.inclusive < calling.own + 2 * leaf.own, "{calling:?} {leaf:?}");
    let outer = in_function("nested").find(|l| l.depth == 1).expect("a loop");
    let inner = in_function("nested").find(|l| l.depth == 2).expect("a loop");
    assert_eq!(inner.parent, Some(outer.header));
    assert_eq!(outer.inclusive, outer.own + inner.own);
    // The recursive loop is active in itself: what is inside counts once.
    let recursive = in_function("recursive").next().expect("a loop");
    assert!(recursive.inclusive < 2 * recursive.own, "{recursive:?}");
}

#[test]
fn bursts_keep_what_they_cut_apart() {
    let bench = Bench::new();
    // Inner executions have 7 iterations, whatever a burst sees of them.
    let source = r#"
        static volatile unsigned long sink;
        __attribute__((noinline)) static void inner(unsigned long n) {
            for (unsigned long i = 0; i < n; i++) sink += i;
        }
        int main(void) {
            for (unsigned long i = 0; i < 60000000; i++) {
                inner(7);
                for (volatile unsigned j = 0; j < 5; j++) sink ^= j;
            }
            return 0;
        }"#;
    let program = bench.compile("bursts", source, &["-O1", "-no-pie"]);
    let functions = functions(&program);
    let options = ["--period", "2ms", "--record", "blocks"];
    let config = ExactConfig { weight: Weight::Bursts, ..ExactConfig::default() };
    let profile = profile(&bench, &options, &[program.to_str().unwrap()], config);
    assert!(profile.bursts > 20, "{}", profile.bursts);
    let of = |name: &str| {
        let (from, len) = functions[name];
        profile.loops.iter().filter(|l| (from..from + len).contains(&l.header)).cloned().collect::<Vec<_>>()
    };
    for l in of("inner").iter().chain(of("main").iter().filter(|l| l.depth == 2)) {
        let wanted = if l.depth == 1 { 7 } else { 5 };
        assert!(l.whole.executions > 100, "{l:?}");
        assert_eq!((l.whole.least, l.whole.most), (wanted, wanted), "{l:?}");
        assert!(l.cut.starts + l.cut.ends > 0, "{l:?}");
    }
    let main = of("main");
    let outer = main.iter().find(|l| l.depth == 1).expect("the loop around");
    assert_eq!(outer.whole.executions, 0, "{outer:?}");
    assert!(outer.cut.starts > 0 && outer.cut.passes > 100, "{outer:?}");
    let shares: f64 = profile.loops.iter().map(|l| profile.share(l.own_weight)).sum();
    assert!((0.8..=1.0 + 1e-9).contains(&shares), "{shares}");
}

#[test]
fn what_bursts_see_whole_has_all_its_iterations() {
    let bench = Bench::new();
    // Every loop but the outermost has 50 iterations, in `main` itself, called, and in a row.
    let source = r#"
        static volatile unsigned long sink;
        __attribute__((noinline, noipa)) static void called(void) {
            for (unsigned long i = 0; i < 50; i++) { sink += i; if ((i & 15) == 15) sink ^= 3; }
        }
        int main(void) {
            for (unsigned long n = 0; n < 1000000; n++) {
                for (unsigned long i = 0; i < 50; i++) {
                    sink += i;
                    sink ^= 1;
                }
                for (unsigned long i = 0; i < 50; i++) {
                    for (unsigned long j = 0; j < 50; j++) sink -= j;
                    if ((i & 31) == 31) called();
                }
            }
            return 0;
        }"#;
    for optimization in ["-O0", "-O1", "-O2"] {
        let program = bench.compile("fifty", source, &[optimization, "-no-pie"]);
        let functions = functions(&program);
        let options = ["--period", "1ms", "--record", "blocks"];
        let config = ExactConfig { weight: Weight::Bursts, ..ExactConfig::default() };
        let profile = profile(&bench, &options, &[program.to_str().unwrap()], config);
        assert!(profile.bursts > 20, "{}", profile.bursts);
        let mut whole = 0;
        for name in ["main", "called"] {
            let (from, len) = functions[name];
            for l in profile.loops.iter().filter(|l| (from..from + len).contains(&l.header)) {
                let counts = (l.whole.least, l.whole.most);
                assert!(l.whole.executions == 0 || counts == (50, 50), "{optimization} {l:?}");
                whole += l.whole.executions;
            }
        }
        assert!(whole > profile.bursts, "{optimization}: {whole} in {} bursts", profile.bursts);
    }
}
