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
    let file = format!("file {file}+0x");
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
    let (done, report) = bench.report(&bursts, &[program, &file, "3000000"]);
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

/// Three times as many loads of one variable as stores to another: totals per object say so.
#[test]
fn totals_per_object_are_those_of_the_program() {
    let bench = Bench::new();
    let source = "\
        volatile int read_only[700], written[700];\n\
        int main(void) {\n\
            for (int i = 0; i < 60000; i++) {\n\
                int at = i % 700;\n\
                written[at] = read_only[at] + read_only[699 - at] + read_only[0];\n\
            }\n\
            return 0;\n\
        }\n";
    let program = bench.compile("objects", source, &["-O1", "-g"]);
    bench.sonde(&["run", "--quiet", "--policy", "always", "-o", "p", program.to_str().unwrap()]).good();
    let report = bench.sonde(&["report", "--json", "p"]).good();
    let report: Value = serde_json::from_slice(&report.out).unwrap();
    let objects = report["data"]["objects"].as_array().unwrap();
    let of = |name: &str, what: &str| {
        let object = objects.iter().find(|o| o["name"] == format!("objects:.bss {name}"));
        let object = object.unwrap_or_else(|| panic!("{name}: {objects:#?}"));
        (object[what]["weight"].as_f64().unwrap(), object[what]["share_at_most"].as_f64().unwrap())
    };
    let (loads, _) = of("read_only", "loads");
    let (stores, at_most) = of("written", "stores");
    assert!((loads / 180_000.0 - 1.0).abs() < 0.02 && loads <= 180_000.0, "{loads}");
    assert!((stores / 60_000.0 - 1.0).abs() < 0.02 && stores <= 60_000.0, "{stores}");
    let all = report["totals"]["stores"].as_f64().unwrap();
    assert!(at_most * all >= 60_000.0 - 1.0, "{at_most} of {all}");
    assert_eq!((of("read_only", "stores").0, of("written", "loads").0), (0.0, 0.0));
    let shown = bench.sonde(&["report", "p"]).good().text();
    assert!(shown.contains("data objects") && shown.contains("objects:.bss read_only, 2.7 KiB"), "{shown}");
}
