//! Calls of a program that makes a known number of them, through recursion, longjmp and signal handlers.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use sonde_calls::{CallProfile, CallsReader, Limits, ROOT};
use sonde_event::trace::{TraceReader, replay};
use sonde_harness::leftovers::Folder;

/// Where the program's functions lay, and what was seen of them.
fn recorded(policy: &[&str], more: u32, weight: Option<u64>) -> (HashMap<String, u64>, CallProfile) {
    recorded_of("cc", "calls.c", PLAIN, policy, more, weight)
}

/// Calls as they are written.
const PLAIN: &[&str] = &["-O1", "-fno-inline", "-fno-ipa-cp", "-fno-optimize-sibling-calls"];

/// The same of another program that prints where its functions lie.
fn recorded_of(
    compiler: &str,
    source: &str,
    options: &[&str],
    policy: &[&str],
    more: u32,
    weight: Option<u64>,
) -> (HashMap<String, u64>, CallProfile) {
    recorded_within(Limits::default(), compiler, source, options, policy, more, weight)
}

/// The same with other limits.
fn recorded_within(
    limits: Limits,
    compiler: &str,
    source: &str,
    options: &[&str],
    policy: &[&str],
    more: u32,
    weight: Option<u64>,
) -> (HashMap<String, u64>, CallProfile) {
    let folder = Folder::new().expect("a temporary folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let (program, trace) = (folder.path().join("calls"), folder.path().join("trace"));
    let built = Command::new(compiler).args(options).arg("-o").arg(&program).arg(source).status();
    assert!(built.expect("a compiler").success());
    let run = Command::new(env!("CARGO_BIN_EXE_sonde"))
        .args(["trace", "record", "--record", "blocks"])
        .args(policy)
        .arg("-o")
        .arg(&trace)
        .arg("--")
        .arg(&program)
        .arg(more.to_string())
        .output()
        .expect("sonde runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let out = String::from_utf8(run.stdout).expect("text");
    let words: Vec<&str> = out.split_whitespace().collect();
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address");
    let places = words.chunks(2).map(|pair| (pair[0].to_owned(), hex(pair[1]))).collect();
    let mut reader = CallsReader::new(limits, weight);
    let mut file = TraceReader::new(File::open(&trace).expect("a trace")).expect("a trace");
    replay(&mut file, &mut reader).expect("a trace");
    let profile = reader.finish();
    profile.check().expect("numbers that fit together");
    (places, profile)
}

#[test]
fn a_known_number_of_calls_is_counted() {
    let (at, profile) = recorded(&["--policy", "always"], 0, None);
    let calls = |name: &str| profile.functions.iter().find(|f| f.entry == at[name]).map_or(0, |f| f.count);
    assert_eq!(calls("middle"), 1000);
    assert_eq!(calls("other"), 500);
    assert_eq!(calls("recurse"), 20 * 11);
    assert_eq!(calls("thrower"), 7 * 6);
    assert_eq!(calls("handler"), 4);
    assert_eq!(calls("leaf"), 3000 + 500 + 200 + 7 + 4);
    assert_eq!(calls("work"), 1);

    let into = |name: &str| profile.pairs.iter().filter(|p| p.callee == at[name]).collect::<Vec<_>>();
    assert_eq!(into("middle").len(), 1);
    assert_eq!(into("recurse").iter().map(|p| p.count).sum::<u64>(), 220);
    let mut leaf: Vec<u64> = into("leaf").iter().map(|p| p.count).collect();
    leaf.sort_unstable();
    assert_eq!(leaf, [4, 7, 200, 500, 3000]);

    // Library functions are called through stubs; they count as called, not the stubs. The first call may look it up.
    let from_work = profile.pairs.iter().filter(|p| p.site > at["work"] && p.site < at["main"]);
    let outside = from_work.filter(|p| p.callee.abs_diff(at["work"]) > 1 << 24 && p.count >= 29);
    assert!(outside.count() >= 1, "rand by its own address");
}

#[test]
fn contexts_tell_the_ways_to_a_function_apart() {
    let (at, profile) = recorded(&["--policy", "always"], 0, None);
    let way = |mut context: u32| {
        let mut names = Vec::new();
        while context != ROOT {
            let c = &profile.contexts[context as usize];
            let name = at.iter().find(|(_, a)| **a == c.function && !c.around);
            names.push(name.map_or("?", |(n, _)| n.as_str()));
            context = c.parent;
        }
        names.reverse();
        let ours = names.iter().position(|n| *n == "work");
        ours.map_or_else(String::new, |from| names[from..].join(" "))
    };
    let ways: HashMap<String, u64> = (2..profile.contexts.len() as u32)
        .map(|i| (way(i), profile.contexts[i as usize].calls))
        .filter(|(way, _)| !way.is_empty() && !way.contains('?'))
        .collect();
    assert_eq!(ways["work middle"], 1000);
    assert_eq!(ways["work middle leaf"], 3000);
    assert_eq!(ways["work other leaf"], 500);
    assert_eq!(ways["work recurse"], 220, "recursion is one context");
    assert_eq!(ways["work recurse leaf"], 200);
    assert_eq!(ways["work thrower"], 42);
    assert_eq!(ways["work leaf"], 7, "back in work after longjmp");
    let (inclusive, total) = (profile.inclusive(), profile.weight);
    assert_eq!(inclusive[ROOT as usize], total);
}

#[test]
fn regions_and_backward_branches_add_up() {
    let (at, profile) = recorded(&["--policy", "always"], 0, None);
    let next =
        |name: &str| at.values().copied().filter(|a| *a > at[name]).min().expect("a function behind it");
    let inside = |name: &str, pc: u64| (at[name]..next(name)).contains(&pc);
    let back: u64 = profile.backward.iter().filter(|b| inside("middle", b.branch)).map(|b| b.count).sum();
    assert_eq!(back, 2000, "3 iterations are 2 backward branches");
    let in_regions: u64 = profile.regions.iter().map(|r| r.instructions).sum();
    // Each thread's last instructions have no branch behind them.
    assert!(profile.instructions - in_regions < 64, "{} of {}", in_regions, profile.instructions);
}

#[test]
fn bursts_weigh_what_they_stand_for() {
    // Some tenths of a second, so that there are many bursts even where the machine is busy and stops are late.
    let (_, profile) = recorded(&["--period", "200us", "--burst", "200"], 20_000_000, Some(1 << 40));
    assert!(profile.bursts >= 20, "{} bursts", profile.bursts);
    let most = profile.bursts << 40;
    assert!(profile.weight <= most);
    assert!(profile.weight as f64 >= 0.99 * most as f64, "{} of {most}", profile.weight);
}

/// An exception leads past the frames between it and where it is caught, by a jump to a place behind no call.
#[test]
fn what_is_called_after_many_exceptions_is_called_by_its_caller() {
    let (at, profile) = recorded_of("c++", "catches.cpp", PLAIN, &["--policy", "always"], 0, None);
    let after = profile.contexts.iter().find(|c| c.function == at["after"]).expect("it was called");
    assert_eq!(profile.contexts[after.parent as usize].function, at["main"]);
}

fn calls_of(profile: &CallProfile, entry: u64) -> u64 {
    profile.functions.iter().find(|f| f.entry == entry).map_or(0, |f| f.count)
}

/// The functions that called another, each with how often, by where they begin.
fn callers(at: &HashMap<String, u64>, profile: &CallProfile, callee: u64) -> HashMap<String, u64> {
    let mut all = HashMap::new();
    for pair in profile.pairs.iter().filter(|pair| pair.callee == callee) {
        let nearest = at.iter().filter(|(_, entry)| **entry <= pair.site).max_by_key(|(_, entry)| **entry);
        let name = nearest.map_or_else(String::new, |(name, _)| name.clone());
        *all.entry(name).or_insert(0) += pair.count;
    }
    all
}

/// A jump to the beginning of another function is a call, one within a function is none.
#[test]
fn calls_that_compilers_turn_into_jumps_are_counted() {
    // Without symbols the tables for unwinding tell where functions begin. Stubs bind on their first call, or all at once.
    for options in [&["-O2"][..], &["-O2", "-s"], &["-O2", "-Wl,-z,lazy"], &["-O2", "-s", "-Wl,-z,now"]] {
        let (at, profile) = recorded_of("cc", "tails.c", options, &["--policy", "always"], 0, None);
        let calls = |name: &str| calls_of(&profile, at[name]);
        assert_eq!(calls("direct"), 100, "{options:?}");
        assert_eq!(calls("last"), 100 + 50, "{options:?}");
        assert_eq!((calls("even"), calls("odd")), (100 * 6, 100 * 5), "{options:?}");
        assert_eq!((calls("pointed"), calls("library"), calls("rand")), (50, 40, 40), "{options:?}");
        assert_eq!((calls("split"), calls("rare"), calls("table")), (70, 10, 80), "{options:?}");
        let made = 100 + 100 * 10 + 50 + 40 + 40;
        assert!((made..made + 200).contains(&profile.tail_calls), "{options:?}: {}", profile.tail_calls);
        // Nothing but what was called is called: parts of a function that lie elsewhere are not.
        let ours = at["work"].abs_diff(at["last"]).max(1 << 12);
        let near = |entry: u64| entry.abs_diff(at["work"]) <= ours;
        let names: Vec<u64> = at.values().copied().collect();
        let others = profile.functions.iter().filter(|f| near(f.entry) && !names.contains(&f.entry));
        assert!(others.map(|f| f.count).max().unwrap_or(0) <= 2, "{options:?}: {:x?}", profile.functions);
        let of_last = callers(&at, &profile, at["last"]);
        assert_eq!((of_last["direct"], of_last["pointed"]), (100, 50), "{options:?}");
        assert_eq!(callers(&at, &profile, at["rand"])["library"], 40, "{options:?}");
        // A call that is looked up first is one to what is found, like all others; looking it up is one, too.
        let within = |site: u64| (at["late"]..at["late"] + 32).contains(&site);
        let mut late: Vec<u64> = profile.pairs.iter().filter(|p| within(p.site)).map(|p| p.count).collect();
        late.sort_unstable();
        assert!(late == [40] || late == [1, 40], "{options:?}: {late:?}");
    }
}

/// The callee of such a call returns for both.
#[test]
fn contexts_go_on_behind_a_call_that_is_a_jump() {
    let (at, profile) = recorded_of("cc", "tails.c", &["-O2"], &["--policy", "always"], 0, None);
    let inside = |name: &str| -> Vec<&str> {
        let all = profile.contexts.iter().filter(|c| c.function == at[name]);
        let parent = |c: &sonde_calls::Context| profile.contexts[c.parent as usize].function;
        let mut names: Vec<&str> = all
            .map(|c| at.iter().find(|(_, entry)| **entry == parent(c)).map_or("?", |(name, _)| name.as_str()))
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(inside("last"), ["direct", "pointed"]);
    assert_eq!((inside("direct"), inside("even"), inside("odd")), (vec!["work"], vec!["work"], vec!["even"]));
    assert_eq!((inside("split"), inside("table")), (vec!["work"], vec!["work"]));
    assert_eq!(inside("rand"), ["library"]);
    assert_eq!(profile.returns_unmatched, 0, "{profile:?}");
    // What loads the program is none of its callers.
    let start = profile.contexts.iter().position(|c| c.function == at["work"]).expect("it was called");
    let mut depth = 0;
    let mut top = start;
    while profile.contexts[top].parent != ROOT {
        (top, depth) = (profile.contexts[top].parent as usize, depth + 1);
    }
    assert!((2..=4).contains(&depth) && !profile.contexts[top].around, "{depth} callers of work");
}

/// However few contexts are kept, what a function did with all that it called stays.
#[test]
fn callers_have_the_time_of_contexts_that_are_not_kept() {
    let under = |profile: &CallProfile, function: u64| -> u64 {
        let inclusive = profile.inclusive();
        let all = profile.contexts.iter().zip(inclusive);
        all.filter(|(c, _)| c.function == function).map(|(_, weight)| weight).sum()
    };
    let always = ["--policy", "always"];
    let (at, all) = recorded_of("cc", "calls.c", PLAIN, &always, 20_000, None);
    let few = Limits { contexts: 60, ..Limits::default() };
    let (moved, some) = recorded_within(few, "cc", "calls.c", PLAIN, &always, 20_000, None);
    assert!(all.contexts.len() > 100 && some.contexts.len() <= 60 && some.not_kept.contexts > 0);
    let (right, left) = (under(&all, at["main"]), under(&some, moved["main"]));
    // It may have been called when there was no room, which is made once in 256 instructions for each context.
    assert!(right > 500_000 && left <= right + right / 1000, "{left} instead of {right}");
    assert!(left + 60 * 256 + 1000 >= right, "{left} instead of {right}");
    let own: u64 = some.contexts.iter().map(|c| c.weight - c.rest).sum();
    assert!(own < some.weight, "what is not kept is told apart from what callers did themselves");
}
