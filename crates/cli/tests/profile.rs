//! Profiles of real runs: written, checked, added up and compared.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sonde_harness::leftovers::Folder;
use sonde_profile::{MergeOptions, Profile};
use sonde_rap::Snapshot;
use sonde_summary::{Kind, Trees};

struct Bench(Folder);

impl Bench {
    fn new() -> Bench {
        Bench(Folder::new().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds the program with the two functions' parts of the time.
    fn build(&self, folder: &str, first: u32, second: u32) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/two_functions.c");
        std::fs::create_dir_all(self.path(folder)).expect("a folder");
        let program = self.path(folder).join("program");
        let mut cc = Command::new("cc");
        cc.args(["-g", "-O1", "-Wl,--build-id", "-o"]).arg(&program).arg(source);
        let built = cc.arg(format!("-DFIRST={first}")).arg(format!("-DSECOND={second}")).status();
        assert!(built.expect("a C compiler").success());
        program
    }

    fn sonde<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Output {
        let done = Command::new(env!("CARGO_BIN_EXE_sonde")).args(args).current_dir(self.0.path()).output();
        done.expect("sonde runs")
    }

    fn run(&self, options: &[&str], name: &str, program: &Path, rounds: &str) -> Profile {
        let (output, program) = (self.path(name), program.display().to_string());
        let args = [&["run", "-q", "-o", name], options, &["--", &program, rounds]].concat();
        let done = self.sonde(&args);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let profile = Profile::read(&output).expect("a profile");
        assert_eq!(profile.check(), Ok(()));
        profile
    }

    fn json(&self, args: &[&str]) -> serde_json::Value {
        let done = self.sonde(args);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }
}

fn code(profile: &Profile) -> &Snapshot<u64> {
    match &profile.summary.of(Kind::Code).expect("code").tree {
        Trees::One(tree) => tree,
        Trees::Two(_) => panic!("code has one dimension"),
    }
}

const BURSTS: [&str; 2] = ["--period", "2ms"];

#[test]
fn runs_of_the_same_program_show_no_change_and_versions_do() {
    let bench = Bench::new();
    let (old, new) = (bench.build("old", 60, 40), bench.build("new", 15, 85));
    let first = bench.run(&BURSTS, "first.sonde", &old, "8000");
    assert!(first.totals.bursts > 50, "{:?}", first.totals);
    bench.run(&BURSTS, "second.sonde", &old, "8000");
    bench.run(&BURSTS, "new.sonde", &new, "8000");
    let same = bench.json(&["diff", "--json", "first.sonde", "second.sonde"]);
    assert_eq!(same["functions"].as_array().map(Vec::len), Some(0), "{same}");
    for kind in same["kinds"].as_array().expect("kinds") {
        assert_eq!(kind["changes"].as_array().map(Vec::len), Some(0), "{kind}");
    }
    let text = bench.sonde(&["diff", "first.sonde", "second.sonde"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("no share changed beyond the errors"));
    let changed = bench.json(&["diff", "--json", "first.sonde", "new.sonde"]);
    let by = |name: &str| {
        let found = changed["functions"].as_array().expect("functions").iter().find(|f| f["name"] == name);
        found.and_then(|f| f["at_least"].as_f64()).unwrap_or_else(|| panic!("{name}: {changed}"))
    };
    assert!(by("first (program)") < -0.1 && by("second (program)") > 0.1);
    assert_eq!(changed["rebuilt"].as_array().map(Vec::len), Some(1));
}

/// Shares do not tell that a program got slower as a whole; nor does anything where hardly a burst was recorded.
#[test]
fn a_program_that_got_slower_as_a_whole_is_seen_and_so_are_too_few_bursts() {
    let bench = Bench::new();
    let program = bench.build("p", 60, 40);
    bench.run(&BURSTS, "fast.sonde", &program, "4000");
    bench.run(&BURSTS, "slow.sonde", &program, "16000");
    let diff = bench.json(&["diff", "--json", "fast.sonde", "slow.sonde"]);
    let times = diff["times_as_long"].as_f64().expect("a number");
    assert!(times > 2.0 && times < 8.0, "{times}");
    assert_eq!(diff["takes_as_long"], false);
    let text = |args: &[&str]| String::from_utf8_lossy(&bench.sonde(args).stdout).into_owned();
    let told = text(&["diff", "fast.sonde", "slow.sonde"]);
    // That no share changed means that all did only where a change would have been seen.
    let kinds = diff["kinds"].as_array().expect("kinds");
    let telling = kinds.iter().all(|kind| kind["resolution"].as_f64() < Some(0.05));
    let words =
        if telling { "as far as can be told, everything takes" } else { "record more to see what does" };
    assert!(told.contains("times as long: ") && told.contains(words), "{told}");
    bench.run(&["--policy", "always"], "a.sonde", &program, "40");
    bench.run(&["--policy", "always"], "b.sonde", &program, "400");
    let told = text(&["diff", "a.sonde", "b.sonde"]);
    assert!(!told.contains("record more to see"), "{told}");
    let same = text(&["diff", "fast.sonde", "fast.sonde"]);
    assert!(!same.contains("times as long") && same.contains("(1 run, "), "{same}");
    bench.run(&["--period", "100ms"], "few.sonde", &program, "4000");
    let few = text(&["diff", "few.sonde", "few.sonde"]);
    assert_eq!(few.matches("too few bursts").count(), 1, "{few}");
    assert!(few.contains("--rate 5%") && !few.contains("100.0 %"), "{few}");
}

const MAPPED: &str = "\
#include <stdlib.h>
int main(int argc, char **argv) {
    size_t n = 3 << 20;
    volatile char *large = malloc(n), *small = malloc(200000);
    long sum = argc + !argv;
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < n; i += 512)
            large[i]++;
        for (size_t i = 0; i < 200000; i += 64)
            sum += small[i];
    }
    return sum == 42;
}
";

/// Where large allocations lie differs from run to run; what is done to them does not.
#[test]
fn runs_with_mapped_memory_show_no_change_and_other_programs_a_warning() {
    let bench = Bench::new();
    std::fs::write(bench.path("mapped.c"), MAPPED).expect("a file");
    let mut cc = Command::new("cc");
    cc.args(["-g", "-O1", "-o", "mapped", "mapped.c"]).current_dir(bench.0.path());
    assert!(cc.status().expect("a C compiler").success());
    let mapped = bench.path("mapped");
    for name in ["a.sonde", "b.sonde", "c.sonde"] {
        let profile = bench.run(&["--policy", "always"], name, &mapped, "1");
        assert!(profile.summary.of(Kind::LoadAddresses).is_some());
    }
    for other in ["b.sonde", "c.sonde"] {
        let same = bench.json(&["diff", "--json", "a.sonde", other]);
        for kind in same["kinds"].as_array().expect("kinds") {
            let changes = kind["changes"].as_array().expect("changes");
            assert!(changes.is_empty(), "{} of {}: {}", changes.len(), kind["kind"], changes[0]);
        }
        assert!(same.get("different_programs").is_none());
    }
    bench.run(&["--policy", "always"], "other.sonde", &bench.build("o", 3, 2), "5");
    let text = bench.sonde(&["diff", "a.sonde", "other.sonde"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("different programs (mapped; program)"), "{text}");
}

#[test]
fn merged_runs_are_one_run_over_all_of_it_within_bounds() {
    let bench = Bench::new();
    let program = bench.build("p", 3, 2);
    let always = ["--policy", "always"];
    let parts: Vec<Profile> =
        [5, 9, 20].map(|n| bench.run(&always, &format!("{n}.sonde"), &program, &n.to_string())).into();
    let mut all = parts[0].clone();
    for part in &parts[1..] {
        all.merge(part, &MergeOptions::default()).expect("runs of the same program");
        assert_eq!(all.check(), Ok(()));
    }
    let whole = bench.run(&always, "34.sonde", &program, "34");
    // The three runs start and end three times, which the one run does once: that is all that may differ.
    let region =
        all.summary.regions.all().iter().position(|r| r.name.ends_with("/p/program")).expect("it ran");
    let other =
        whole.summary.regions.all().iter().position(|r| r.name.ends_with("/p/program")).expect("it ran");
    let bounds = |profile: &Profile, slot: usize| {
        let lo = (slot as u64) << 48;
        code(profile).bounds(lo, lo + ((1 << 48) - 1))
    };
    let (sum, one) = (bounds(&all, region), bounds(&whole, other));
    let outside_loops = 5_000;
    assert!(
        sum.lower <= one.upper + outside_loops && one.lower <= sum.upper + outside_loops,
        "{sum:?} {one:?}"
    );
    let error = code(&all).eps_effective * code(&all).events as f64;
    assert!((sum.upper - sum.lower) as f64 <= 2.0 * error + 1.0);
    assert_eq!(code(&all).events, parts.iter().map(|part| code(part).events).sum::<u64>());
    assert_eq!(
        all.summary.counts.instructions,
        parts.iter().map(|p| p.summary.counts.instructions).sum::<u64>()
    );
    let done = bench.sonde(&["merge", "-o", "all.sonde", "5.sonde", "9.sonde", "20.sonde"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(Profile::read(&bench.path("all.sonde")).expect("a profile"), all);
}

/// The program was built anew since: a copy of the old one, whatever it is called, has the names that the new one has not.
#[test]
fn a_copy_of_the_program_gives_its_names_back() {
    let bench = Bench::new();
    let program = bench.build("old", 60, 40);
    bench.run(&BURSTS, "it.sonde", &program, "2000");
    let report = |more: &[&str]| {
        let done = bench.sonde(&[&["report", "it.sonde", "--section", "functions,missing"], more].concat());
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let before = report(&[]);
    assert!(before.contains("  first  ") && !before.contains("has changed since"), "{before}");
    std::fs::create_dir_all(bench.path("kept/monday")).expect("a folder");
    std::fs::rename(&program, bench.path("kept/monday/before-the-change")).expect("renamed");
    std::fs::copy(bench.build("new", 15, 85), &program).expect("another build");
    let changed = report(&[]);
    assert!(changed.contains("has changed since") && changed.contains("--debug-dir"), "{changed}");
    assert!(!changed.contains("  first  "), "{changed}");
    assert_eq!(report(&["--debug-dir", "kept"]), before);
}

#[test]
fn what_is_no_profile_is_refused_with_the_reason() {
    let bench = Bench::new();
    std::fs::write(bench.path("text"), "not a profile, but long enough to be one").expect("a file");
    for args in [&["report", "text"][..], &["diff", "text", "text"], &["merge", "-o", "out", "text"]] {
        let done = bench.sonde(args);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("text") && said.contains("not a profile"), "{said}");
    }
    assert!(!bench.path("out").exists());
    let done = bench.sonde(&["merge", "-o", "out", "missing.sonde"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("missing.sonde"));
}

#[test]
fn the_reason_is_said_once() {
    let bench = Bench::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/fixtures/version-1.sonde");
    let whole = std::fs::read(fixture).expect("the profile of version 1");
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x40;
    let files = [
        ("first.sonde", &whole[..whole.len() / 2], "cut off"),
        ("second.sonde", &damaged, "damaged"),
        ("third.sonde", &b"not a profile, but long enough to be one"[..], "not a profile"),
    ];
    for (name, bytes, _) in files {
        std::fs::write(bench.path(name), bytes).expect("a file");
    }
    let system = [("missing.sonde", "No such file"), (".", "Is a directory")];
    for (name, reason) in files.iter().map(|(name, _, reason)| (*name, *reason)).chain(system) {
        for command in [&["report", name][..], &["diff", name, name], &["merge", "-o", "out", name]] {
            let done = bench.sonde(command);
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(2), "{command:?}: {said}");
            assert_eq!(said.matches(reason).count(), 1, "{command:?}: {said}");
            let named = said.matches(".sonde").count();
            assert_eq!(named, usize::from(name.ends_with(".sonde")), "{command:?}: {said}");
        }
    }
}

/// Executions that bursts see whole are mostly short ones: that is not what is said of a loop.
#[test]
fn loops_have_their_iterations_however_short_bursts_are() {
    let bench = Bench::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/trips.c");
    let program = bench.path("trips");
    let built = Command::new("cc").args(["-g", "-O2", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("a C compiler").success());
    bench.run(&["--period", "500us"], "trips.sonde", &program, "100000");
    let report = bench.json(&["report", "trips.sonde", "--json", "--section", "loops", "--top", "0"]);
    let of = |name: &str| {
        let loops = report["loops"]["loops"].as_array().expect("loops");
        let found = loops.iter().find(|l| l["name"].as_str().is_some_and(|n| n.starts_with(name)));
        found.unwrap_or_else(|| panic!("no loop in {name}: {report}")).clone()
    };
    for (name, truth) in [("bimodal", 1005.0), ("uniform", 450.5), ("fixed", 300.0)] {
        let l = of(name);
        let number = |key: &str| l[key].as_f64().unwrap_or(f64::INFINITY);
        let (mean, low, high) =
            (number("iterations"), number("iterations_at_least"), number("iterations_at_most"));
        assert!(low <= mean && mean <= high, "{l}");
        // Four times the width of its interval, and never off by more than a factor of 3.
        let room = (high / low).powf(2.0).max(1.2);
        assert!(mean / truth < room && truth / mean < room && room < 81.0, "{name}: {l}");
        assert!(mean > truth / 3.0 || high.is_infinite(), "{name}: {l}");
    }
}

/// However many functions a program has, each has the weight of its code.
#[test]
fn functions_of_large_programs_have_all_their_weight() {
    let bench = Bench::new();
    let mut source = String::from("volatile long sink, zero;\n");
    for i in 0..3000 {
        source += &format!(
            "__attribute__((noinline)) void f{i}(long n) {{ if (n & 1) sink += n; else sink -= n; if (n == zero) sink ^= {i}; sink++; }}\n"
        );
    }
    source += "static void (*const all[])(long) = {";
    (0..3000).for_each(|i| source += &format!("f{i},"));
    source += "};\nint main(void) { for (long k = 1; k < 3; k++) for (long i = 0; i < 3000; i++) all[i](k); return 0; }\n";
    std::fs::write(bench.path("large.c"), source).expect("a file");
    let program = bench.path("large");
    let built = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(bench.path("large.c")).status();
    assert!(built.expect("a C compiler").success());
    // As much memory as is needed, and so little that not every way through the code has a number.
    for (memory, most, least) in [("64M", 0.001, 2500), ("6M", 0.6, 100)] {
        let options = ["--policy", "always", "--what", "code", "--max-memory", memory];
        bench.run(&options, "large.sonde", &program, "");
        let report = bench.json(&["report", "large.sonde", "--json", "--section", "functions", "--top", "0"]);
        let rows = report["functions"].as_array().expect("functions");
        let share = |row: &serde_json::Value| row["share"].as_f64().expect("a share");
        let lost: f64 = rows.iter().filter(|row| row["name"] == "(blocks not kept)").map(share).sum();
        let together: f64 =
            rows.iter().filter(|row| row["name"] == "(functions not told apart)").map(share).sum();
        assert_eq!(lost, 0.0, "{memory}");
        assert!(together < most, "{memory}: {together}");
        assert!(rows.len() > least, "{memory}: {} functions", rows.len());
    }
}
