//! Data by name: stacks of threads, mapped files, variables, the heap; and everything of programs that end at once.

#[path = "common/sonde.rs"]
mod sonde;

use serde_json::Value;
use sonde::Bench;

const MEMORY: &str = include_str!("programs/memory.c");

/// Names of hot data.
fn names(report: &Value) -> Vec<String> {
    let hot = report["hot_data"].as_array().expect("a list");
    hot.iter().map(|hot| hot["place"].as_str().expect("words").to_owned()).collect()
}

fn assert_named(report: &Value, file: &str) {
    let names = names(report);
    let file = format!("file {file}+0x0, ");
    for start in ["stack of thread 2", "stack of thread 3", &file, "memory:.bss table", "heap"] {
        assert!(names.iter().any(|name| name.starts_with(start)), "{start}: {names:#?}");
    }
}

#[test]
fn memory_of_every_kind_has_its_name() {
    let bench = Bench::new();
    let program = bench.compile("memory", MEMORY, &["-O1", "-g", "-pthread"]);
    let file = bench.path("lines").display().to_string();
    let program = program.to_str().unwrap();
    let bursts = ["--hot", "2%", "--period", "1ms"];
    let (done, report) = bench.report(&bursts, &[program, &file, "300000"]);
    done.good();
    assert_named(&report, &file);
    let (done, report) = bench.report(&["--hot", "2%", "--policy", "always"], &[program, &file, "2000"]);
    done.good();
    assert_named(&report, &file);
}

/// A program that has ended before anybody looked at it.
#[test]
fn short_programs_are_named_from_end_to_end() {
    let bench = Bench::new();
    let source = "#include <stdio.h>\nint main(void) { puts(\"done\"); return 0; }\n";
    let program = bench.compile("short", source, &["-O1"]);
    for _ in 0..5 {
        let (done, report) = bench.report(&["--policy", "always"], &[program.to_str().unwrap()]);
        done.good();
        assert_eq!(report["missing"]["unplaced_code"], Value::Null, "{}", report["missing"]);
        // What the loader mapped and unmapped again is gone.
        let unplaced = report["missing"]["unplaced_data"].as_u64().unwrap_or(0);
        let all = report["loads"].as_u64().unwrap() + report["stores"].as_u64().unwrap();
        assert!(unplaced * 100 < all, "{unplaced} of {all}");
    }
}
