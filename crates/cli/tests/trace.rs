//! `sonde trace`: what is recorded comes back, is consistent, and survives damage.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::Bench;

/// Stores and loads a known sequence of values at known places.
const KNOWN: &str = r#"
#include <stdio.h>
static volatile unsigned long cells[64];
int main(void) {
    printf("%p\n", (void *)cells);
    fflush(stdout);
    for (unsigned long i = 0; i < 64; i++) cells[i] = i * i + 1000003;
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 64; i++) sum += cells[63 - i];
    printf("%lu\n", sum);
    return 0;
}
"#;

fn record(bench: &Bench, options: &[&str], program: &[&str]) -> Vec<u8> {
    let args = [&["trace", "record", "-o", "t"], options, &["--"], program].concat();
    bench.sonde(&args).good().out
}

#[test]
fn known_addresses_and_values_come_back_exactly() {
    let bench = Bench::new();
    let program = bench.compile("known", KNOWN, &["-O1"]);
    let out = record(&bench, &["--policy", "always"], &[program.to_str().unwrap()]);
    let out = String::from_utf8(out).unwrap();
    let base = u64::from_str_radix(out.lines().next().unwrap().trim_start_matches("0x"), 16).unwrap();
    let dump = bench.sonde(&["trace", "replay", "--dump", "t"]).good().text();
    let touched = |access: &str| -> Vec<(u64, u64)> {
        let line = |l: &str| {
            let word = |name: &str| l.split(' ').skip_while(|w| *w != name).nth(1).map(String::from);
            let hex = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
            Some((hex(word("address")?)?, hex(word("value")?)?))
        };
        let inside = |(address, _): &(u64, u64)| (base..base + 512).contains(address);
        dump.lines().filter(|l| l.starts_with(access)).filter_map(line).filter(inside).collect()
    };
    let value = |i: u64| i * i + 1_000_003;
    let stored: Vec<(u64, u64)> = (0..64).map(|i| (base + 8 * i, value(i))).collect();
    let loaded: Vec<(u64, u64)> = (0..64).rev().map(|i| (base + 8 * i, value(i))).collect();
    assert_eq!(touched("store"), stored);
    assert_eq!(touched("load"), loaded);
}

/// Two runs, since a run writes a trace or a profile. Where a program lies in memory changes a few branches of its
/// start, so the counts agree nearly.
#[test]
fn live_and_replayed_counts_are_nearly_the_same() {
    let bench = Bench::new();
    let (done, live) = bench.report(&["--policy", "always"], &["gzip", "-c", "few"]);
    assert_eq!(done.status, Some(0));
    record(&bench, &["--policy", "always"], &["gzip", "-c", "few"]);
    let replayed = bench.sonde(&["trace", "replay", "--json", "t"]).good();
    assert_eq!(replayed.err, "");
    let replayed: serde_json::Value = serde_json::from_slice(&replayed.out).unwrap();
    for key in ["bursts", "runs", "blocks", "instructions", "loads", "stores", "events"] {
        let (live, replayed) = (live[key].as_f64().unwrap(), replayed[key].as_f64().unwrap());
        assert!((live - replayed).abs() <= live * 0.01, "{key}: {live} live, {replayed} replayed");
    }
    assert!(live["events"].as_u64().unwrap() > 0);
}

#[test]
fn traces_are_consistent() {
    let bench = Bench::new();
    let programs: [&[&str]; 4] = [
        &["gzip", "-c", "INPUT"],
        &["sort", "-n", "INPUT"],
        &["sh", "-c", "for i in 1 2 3; do echo $i; done | wc -l"],
        &["awk", "{ n += length($1) } END { print n }", "INPUT"],
    ];
    let modes: [(&[&str], &str); 2] =
        [(&["--policy", "always"], "few"), (&["--period", "1ms", "--record", "addresses"], "lines")];
    for program in programs {
        for (options, input) in modes {
            let program: Vec<&str> = program.iter().map(|w| if *w == "INPUT" { input } else { w }).collect();
            record(&bench, options, &program);
            let checked = bench.sonde(&["trace", "check", "t"]);
            assert_eq!(checked.status, Some(0), "{program:?} {options:?}: {}{}", checked.text(), checked.err);
            assert!(!checked.text().contains("trouble"), "{}", checked.text());
        }
    }
}

#[test]
fn info_tells_what_is_in_it() {
    let bench = Bench::new();
    record(&bench, &["--policy", "always", "--record", "blocks"], &["gzip", "-c", "few"]);
    let info = bench.sonde(&["trace", "info", "--mappings", "t"]).good().text();
    for words in ["gzip -c few", "always, blocks", "with status 0", "descriptions", "log", "r-xp", "[stack]"]
    {
        assert!(info.contains(words), "{words}: {info}");
    }
    assert!(!info.contains("trouble"), "{info}");
}

#[test]
fn a_truncated_trace_gives_what_is_whole_and_says_so() {
    let bench = Bench::new();
    record(&bench, &["--policy", "always"], &["gzip", "-c", "few"]);
    let whole = std::fs::read(bench.path("t")).unwrap();
    let count = |name: &str, status: i32| -> (u64, String) {
        let done = bench.sonde(&["trace", "replay", "--json", name]);
        assert_eq!(done.status, Some(status), "{}", done.err);
        let counts: serde_json::Value = serde_json::from_slice(&done.out).unwrap();
        (counts["events"].as_u64().unwrap(), done.err)
    };
    let (all, _) = count("t", 0);
    let mut last = 0;
    for percent in [20, 50, 90, 99] {
        std::fs::write(bench.path("cut"), &whole[..whole.len() * percent / 100]).unwrap();
        let (events, told) = count("cut", 3);
        assert!(told.contains("whole chunks read, then the file ends early, in the chunk at byte"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(last <= events && events < all, "{percent} % of the file: {events} of {all} events");
        last = events;
        for command in ["check", "info"] {
            let done = bench.sonde(&["trace", command, "cut"]);
            assert_eq!(done.status, Some(3), "{command}: {}", done.err);
            assert!(done.err.contains("ends early"), "{command}: {}", done.err);
            assert!(!done.out.is_empty(), "{command}");
        }
        assert!(bench.sonde(&["trace", "info", "cut"]).text().contains("whole chunks read"));
    }
    assert!(last > 0);
}

#[test]
fn damage_is_found_and_the_rest_is_read() {
    let bench = Bench::new();
    record(&bench, &["--policy", "always"], &["gzip", "-c", "few"]);
    let mut bytes = std::fs::read(bench.path("t")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(bench.path("bad"), &bytes).unwrap();
    let checked = bench.sonde(&["trace", "check", "bad"]);
    assert_eq!(checked.status, Some(1), "{}", checked.text());
    assert!(checked.text().contains("checksum"), "{}", checked.text());
    let whole: serde_json::Value =
        serde_json::from_slice(&bench.sonde(&["trace", "replay", "--json", "t"]).good().out).unwrap();
    let replayed = bench.sonde(&["trace", "replay", "--json", "bad"]);
    assert_eq!(replayed.status, Some(3), "{}", replayed.err);
    assert!(replayed.err.contains("damaged: the chunk at byte"), "{}", replayed.err);
    let rest: serde_json::Value = serde_json::from_slice(&replayed.out).unwrap();
    let events = |counts: &serde_json::Value| counts["events"].as_u64().unwrap();
    assert!(0 < events(&rest) && events(&rest) < events(&whole), "{rest} {whole}");
    let info = bench.sonde(&["trace", "info", "bad"]);
    assert_eq!(info.status, Some(3), "{}", info.err);
    assert!(info.text().contains("damaged: the chunk at byte"), "{}", info.text());
    assert!(info.err.contains("damaged places: 1"), "{}", info.err);
}

#[test]
fn other_files_are_refused() {
    let bench = Bench::new();
    std::fs::write(bench.path("newer"), b"SONDETRC\x63\0\0\0\0\0\0\0").unwrap();
    std::fs::write(bench.path("empty"), b"").unwrap();
    for (file, words) in
        [("lines", "not a trace"), ("empty", "not a trace"), ("newer", "version 99"), ("none", "cannot open")]
    {
        for command in ["info", "replay", "check"] {
            let done = bench.sonde(&["trace", command, file]);
            assert_eq!(done.status, Some(2), "{command} {file}");
            assert!(done.err.contains(words), "{command} {file}: {}", done.err);
        }
    }
}

#[test]
fn what_was_recorded_is_kept_when_the_program_crashes() {
    let bench = Bench::new();
    let program = bench.compile("crash", "int main(void) { volatile int *p = 0; return *p; }", &["-O1"]);
    let args = ["trace", "record", "--policy", "always", "-o", "t", "--", program.to_str().unwrap()];
    let done = bench.sonde(&args);
    assert_eq!((done.status, done.signal), (None, Some(11)));
    let info = bench.sonde(&["trace", "info", "t"]).good().text();
    assert!(info.contains("by signal 11"), "{info}");
    let checked = bench.sonde(&["trace", "check", "t"]);
    assert_eq!(checked.status, Some(0), "{}", checked.text());
}
