//! Every hostile program, natively and under every mode of `sonde run` that exists, with random settings: outputs and
//! exit status must be the same bytes, in every run: one that differs is a failure, also when it does not differ again.
//! `SONDE_SEED` draws other settings, `SONDE_ONLY=name` selects programs, `SONDE_MODES=name` modes, `SONDE_WORK` (percent)
//! makes them work longer.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sonde_harness::manifest::{self, Program};
use sonde_harness::process::{self, Ending, Job};
use sonde_harness::random::Random;
use sonde_harness::settings::Mode;
use sonde_harness::support::Sonde;
use sonde_harness::trial::{self, Failure, Subject};
use sonde_harness::{compile, sessions, settings};

const JOBS: usize = 2;
const LIMIT: Duration = Duration::from_secs(60);

/// Straight to the terminal: what was skipped and how to repeat must be seen also when the test passes.
fn say(text: &str) {
    writeln!(std::io::stderr(), "hostile: {text}").expect("standard error is open");
}

fn sonde() -> &'static Sonde {
    static SONDE: OnceLock<Sonde> = OnceLock::new();
    SONDE.get_or_init(|| Sonde::probe(Path::new(env!("CARGO_BIN_EXE_sonde"))))
}

/// The programs, built once for all tests of this file.
fn built() -> &'static (Vec<Program>, PathBuf) {
    static BUILT: OnceLock<(Vec<Program>, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let programs = manifest::programs().expect("the list is well formed");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
        if let Err(error) = compile::build(&programs, &folder, JOBS) {
            panic!("{error}");
        }
        (programs, folder)
    })
}

fn subject(name: &str) -> Subject {
    let (programs, folder) = built();
    let program = programs.iter().find(|p| p.name == name).expect("the program is in the list");
    Subject::hostile(program, folder, LIMIT).expect("the program can be run")
}

/// The same settings in every run of the tests; `sonde-bench stress` draws new ones.
const SEED: u64 = 1;

fn seed() -> u64 {
    std::env::var("SONDE_SEED").map_or(SEED, |s| s.parse().expect("SONDE_SEED is a number"))
}

/// What the modes of one subject came to.
#[derive(Default)]
struct Tally {
    failures: Vec<Failure>,
    burst_runs: usize,
    burst_runs_with_records: usize,
    /// What each run took, and which it was.
    times: Vec<(Duration, String)>,
}

/// How often a run that failed is repeated.
const AGAIN: usize = 2;

/// Modes that record everything get less work: the consumer, not optimized in tests, is what takes the time there.
const EXHAUSTIVE_WORK: u32 = 15;

/// The modes to try.
fn modes() -> Vec<settings::Mode> {
    let only = std::env::var("SONDE_MODES").unwrap_or_default();
    settings::modes(sonde()).into_iter().filter(|mode| mode.to_string().contains(&only)).collect()
}

fn every_mode(subject: &Subject, seed: u64) -> Tally {
    let (exhaustive, bursts) = modes().into_iter().partition(|m| m.records_always());
    let mut tally = Tally::default();
    observe(subject, bursts, seed, &mut tally);
    observe(&subject.with_work(EXHAUSTIVE_WORK), exhaustive, seed, &mut tally);
    tally
}

fn observe(subject: &Subject, modes: Vec<settings::Mode>, seed: u64, tally: &mut Tally) {
    let native = match subject.native() {
        Ok(native) => native,
        Err(failure) => return tally.failures.push(failure),
    };
    for mode in modes {
        let mut random = Random::named(seed, &format!("{} {mode}", subject.name));
        let options = settings::draw(mode, sonde(), &mut random);
        let begun = Instant::now();
        let observed = subject.observed(&native, sonde(), mode, &options);
        tally.times.push((begun.elapsed(), format!("{} {mode}", subject.name)));
        tally.burst_runs += usize::from(!mode.records_always());
        tally.burst_runs_with_records +=
            usize::from(!mode.records_always() && matches!(observed, Ok(Some(1..))));
        if let Err(mut failure) = observed {
            // For who looks for the cause: moments are random, so that many a fault shows only now and then.
            let again =
                (0..AGAIN).filter(|_| subject.observed(&native, sonde(), mode, &options).is_err()).count();
            failure.what.push_str(&format!("\n(the same settings failed in {again} of {AGAIN} more runs)"));
            tally.failures.push(failure);
        }
    }
}

#[test]
fn every_program_is_the_same_in_every_mode() {
    let (programs, folder) = built();
    let only = std::env::var("SONDE_ONLY").unwrap_or_default();
    let chosen = programs.iter().filter(|p| p.name.contains(&only));
    let subjects: Vec<Subject> = chosen.filter_map(|p| Subject::hostile(p, folder, LIMIT)).collect();
    assert!(!subjects.is_empty(), "no program has {only:?} in its name");
    let modes: Vec<String> = modes().iter().map(ToString::to_string).collect();
    let seed = seed();
    say(&format!("{} programs, natively and in modes {modes:?}, SONDE_SEED={seed}", subjects.len()));
    sonde().refused().iter().for_each(|r| say(r));
    let tallies = sessions::in_parallel(JOBS, &subjects, |s| every_mode(s, seed));
    let runs: usize = tallies.iter().map(|t| t.burst_runs).sum();
    let recorded: usize = tallies.iter().map(|t| t.burst_runs_with_records).sum();
    say(&format!("{recorded} of {runs} runs in bursts recorded something"));
    say(&slowest(&tallies));
    let report: Vec<String> = tallies.iter().flat_map(|t| &t.failures).map(Failure::to_string).collect();
    assert!(report.is_empty(), "{} failures, SONDE_SEED={seed}\n{}", report.len(), report.join("\n"));
    assert!(
        recorded * 2 >= runs || !only.is_empty(),
        "bursts were hardly tested: {recorded} of {runs} runs recorded anything"
    );
}

/// Which runs took longest: where to look when all of them take long.
fn slowest(tallies: &[Tally]) -> String {
    let mut times: Vec<&(Duration, String)> = tallies.iter().flat_map(|t| &t.times).collect();
    times.sort_by(|a, b| b.cmp(a));
    let all: Duration = times.iter().map(|(time, _)| *time).sum();
    let told = times.iter().take(5).map(|(time, run)| format!("{run} {:.1} s", time.as_secs_f64()));
    let told: Vec<String> = told.collect();
    format!("{} runs took {:.0} s together, longest: {}", times.len(), all.as_secs_f64(), told.join(", "))
}

/// Runs `huge`; the peak of resident memory that it printed of itself, in MiB, and the instructions recorded.
fn peak(job: &Job) -> (f64, Option<u64>) {
    let outcome = process::run(job).expect("the program starts");
    assert_eq!(outcome.ending, Ending::Exit(0), "{}", process::shell_line(job));
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("the program prints its peak");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("the peak is a number");
    (kib / 1024.0, trial::instructions(&outcome.summary))
}

#[test]
fn memory_of_the_probe_is_bounded_in_a_huge_program() {
    if !sonde().offers("--probe-memory", "") || !sonde().offers("--policy", "always") {
        return say("memory bound not tested: this sonde has no --probe-memory with --policy always");
    }
    let mut huge = subject("huge");
    huge.job.command.push("memory".into());
    let (native, _) = peak(&huge.job);
    for (option, bound) in [("32M", 32.0), ("128M", 128.0)] {
        let options =
            ["--policy", "always", "--record", "values", "--probe-memory", option].map(String::from);
        let mut options = options.to_vec();
        options.extend(sonde().accepts("--no-ranges", "").then(|| "--no-ranges".into()));
        options.push(format!("--json={}", trial::SUMMARY));
        let job = Job { summary: Some(trial::SUMMARY.into()), ..huge.observed_job(sonde(), &options) };
        let (observed, instructions) = peak(&job);
        // Each of the 20,000 functions is called 16 times; far fewer would mean that the cache never filled.
        assert!(
            instructions > Some(1_000_000),
            "--probe-memory {option}: only {instructions:?} instructions recorded"
        );
        // 4 MiB for what is not the probe's: pages that the program touches earlier or later than natively.
        assert!(
            observed <= native + bound + 4.0,
            "--probe-memory {option}: {observed:.0} MiB, natively {native:.0} MiB"
        );
    }
}

/// In the other tests the debugger of `every_step` takes some instructions at random; here it has steps for about all that lie
/// on the engine's ways in and out.
const STEPS_IN_PERCENT: u32 = 2_000;

#[test]
fn signals_at_every_instruction_change_nothing() {
    let subject = subject("every_step").with_work(STEPS_IN_PERCENT);
    let native = subject.native().unwrap_or_else(|failure| panic!("{failure}"));
    for mode in modes().into_iter().filter(|mode| matches!(mode, Mode::Always("blocks") | Mode::Counter)) {
        let policy = if mode == Mode::Counter { "counter" } else { "always" };
        let options = ["--policy", policy, "--no-ranges"].map(String::from);
        if let Err(failure) = subject.observed(&native, sonde(), mode, &options) {
            panic!("{failure}");
        }
    }
}

#[test]
fn traces_of_hostile_programs_are_consistent() {
    if !sonde().traces() {
        return say("traces not tested: this sonde has no trace record and check");
    }
    let names = [
        "long_jump",
        "exceptions",
        "segv_jump",
        "short_threads",
        "odd_code",
        "flags",
        "plugins",
        "jit",
        "computed_goto",
    ];
    let subjects: Vec<Subject> = names.into_iter().map(subject).collect();
    let failures = sessions::in_parallel(JOBS, &subjects, record_and_check);
    let report: Vec<String> = failures.into_iter().flatten().collect();
    assert!(report.is_empty(), "{}", report.join("\n"));
}

/// Records a short run, then has the invariant checker look at the file.
fn record_and_check(subject: &Subject) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder for the trace");
    let file = folder.path().join("trace");
    let trace = |words: &[&std::ffi::OsStr]| {
        let command = [sonde().path.as_os_str(), "trace".as_ref()]
            .iter()
            .chain(words)
            .map(|w| w.to_os_string())
            .collect();
        let environment = vec![("SONDE_WORK".into(), "2".into())];
        let job = Job { command, environment, ..subject.job.clone() };
        let outcome = process::run(&job).expect("sonde starts");
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        (outcome.ending != Ending::Exit(0))
            .then(|| format!("{}: {}\n{text}", process::shell_line(&job), outcome.ending))
    };
    let words = ["record", "--policy", "always", "-o"].map(std::ffi::OsStr::new);
    let mut record: Vec<&std::ffi::OsStr> =
        words.into_iter().chain([file.as_os_str(), "--".as_ref()]).collect();
    record.extend(subject.job.command.iter().map(|w| w.as_os_str()));
    let wrong = trace(&record).or_else(|| trace(&["check".as_ref(), file.as_os_str()]));
    // An empty trace is consistent too: these programs fill more than that.
    let size = std::fs::metadata(&file).map_or(0, |m| m.len());
    wrong.or_else(|| (size < 10_000).then(|| format!("{}: a trace of only {size} bytes", subject.name)))
}
