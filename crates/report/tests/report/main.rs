//! Reports of made-up profiles of a real program: names, shares, errors, widths; text and JSON agree.

mod data;
mod made_up;
mod streams;

use std::path::Path;

use sonde_calls::CallProfile;
use sonde_event::Counts;
use sonde_loops::{LoopStats, LoopsProfile, Spread};
use sonde_place::{Kind as RegionKind, Place, Region, Regions};
use sonde_rap::{Config, Tree};
use sonde_report::{Options, Section, Subject, report, schema};
use sonde_starts::{Start, StartsProfile, Sum};
use sonde_streams::StreamsProfile;
use sonde_summary::{BlockWeight, Bursts, Kind, Missing, Ranges, Trees, Unit};
use sonde_symbol::Symbols;
use sonde_values::{ValueCount, ValueProfile};

use made_up::{Built, kept, kept_of, run, text, tree};

#[test]
fn a_hot_range_reads_as_function_file_and_lines() {
    let report = kept(&Built::new(), Unit::Events).report();
    let code = report.ranges.iter().find(|v| v.kind == "code").unwrap();
    let hot = code.hot.iter().max_by(|a, b| a.own_share.total_cmp(&b.own_share)).unwrap();
    assert_eq!(hot.sides[0].name, "hot, source.c:3-7");
    assert!((hot.own_share - 0.9).abs() < 1e-9);
    assert!(hot.share_at_most <= 0.9 + code.eps + 1e-9);
    assert!(hot.sides[0].place.as_deref().unwrap().starts_with("program+0x"));
}

/// A hot function whose weight is in a header's function that was inlined into it.
#[test]
fn inlined_code_is_told_with_where_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let header =
        "static inline long deep(long x) {\n    return x * x * 31 + (x >> 7) * 17 + (x ^ 5) * (x + 3);\n}\n";
    let source = "#include \"small.h\"\n__attribute__((noinline)) long outer(long x) {\n    return deep(x);\n}\n\
        int main(int argc, char **argv) { (void)argv; return (int)outer(argc); }\n";
    std::fs::write(folder.path().join("small.h"), header).unwrap();
    std::fs::write(folder.path().join("source.c"), source).unwrap();
    run("cc", &["-g", "-O2", "-o", "program", "source.c"], folder.path());
    let built = Built::of(folder);
    let (outer, bytes) = built.at("outer");
    let mut regions = Regions::default();
    let name = built.folder.path().join("program").display().to_string();
    let module = regions.number(&Region { kind: RegionKind::Module, name, build_id: Vec::new() });
    let place = Place::new(module, outer);
    let blocks = [BlockWeight { place, bytes: bytes as u32, weight: 100 }];
    let ranges = [Ranges { kind: Kind::Code, unit: Unit::Events, events: 1, tree: tree(&[(place.0, 100)]) }];
    let (counts, bursts, missing) = (Counts::default(), Bursts::default(), Missing::default());
    let subject = Subject {
        ranges: &ranges,
        blocks: &blocks,
        regions: &regions,
        counts: &counts,
        bursts: &bursts,
        missing: &missing,
        unit: Unit::Events,
        runs: &[],
        cache: None,
        starts: None,
        calls: None,
        loops: None,
        values: None,
        streams: None,
    };
    let report = report(&subject, &mut Symbols::new(), &Options::default());
    let side = &report.ranges[0].hot[0].sides[0];
    assert_eq!(side.name, "deep at small.h:2, inlined in outer, source.c:3");
    assert_eq!((side.function.as_deref(), side.lines), (Some("deep"), Some((2, 2))));
    let into = side.inlined_in.as_ref().unwrap();
    assert_eq!((into.function.as_str(), into.lines), ("outer", Some((3, 3))));
    let row = &report.functions[0];
    assert_eq!(row.name, "outer");
    assert!(row.source.as_deref().unwrap().contains("source.c:"), "its own file: {row:?}");
    assert!(row.inlined.as_deref().unwrap().starts_with("deep at "), "{row:?}");
    assert!(text(&report, &[Section::Functions], 100).contains(", mostly deep at small.h:2"));
}

/// All of a program is inlined into `main`: the line told is the one that calls the header's function, not that of `main`.
#[test]
fn the_line_that_calls_a_header_is_told_wherever_it_was_inlined() {
    let folder = tempfile::tempdir().unwrap();
    let header =
        "static inline long deep(long x) {\n    return x * x * 31 + (x >> 7) * 17 + (x ^ 5) * (x + 3);\n}\n";
    let source = "#include \"small.h\"\nstatic inline long middle(long x) {\n    return deep(x);\n}\n\
        __attribute__((noinline)) long outer(long x) {\n    return middle(x);\n}\n\
        int main(int argc, char **argv) { (void)argv; return (int)outer(argc); }\n";
    std::fs::write(folder.path().join("small.h"), header).unwrap();
    std::fs::write(folder.path().join("source.c"), source).unwrap();
    run("cc", &["-g", "-O2", "-o", "program", "source.c"], folder.path());
    let built = Built::of(folder);
    let (mut kept, module) = kept_of(&built);
    let (outer, bytes) = built.at("outer");
    let place = Place::new(module, outer);
    kept.blocks = vec![BlockWeight { place, bytes: bytes as u32, weight: 100 }];
    let tree = tree(&[(place.0, 100)]);
    kept.ranges = vec![Ranges { kind: Kind::Code, unit: Unit::Events, events: 1, tree }];
    (kept.calls, kept.loops) = (CallProfile::default(), LoopsProfile::default());
    (kept.values, kept.streams) = (ValueProfile::default(), StreamsProfile::default());
    let report = kept.report();
    assert_eq!(report.ranges[0].hot[0].sides[0].name, "deep at small.h:2, inlined in outer, source.c:3");
}

#[test]
fn an_interpreter_is_told_to_be_one() {
    let mut report = kept(&Built::new(), Unit::Events).report();
    let shown = text(&report, &[Section::Functions], 100);
    assert!(!shown.contains("interpreter"), "{shown}");
    report.functions[0].name = "_PyEval_EvalFrameDefault".into();
    let shown = text(&report, &[Section::Functions], 100);
    assert!(shown.contains("runs Python code: what is shown is the interpreter's"), "{shown}");
}

#[test]
fn functions_are_listed_with_what_is_not_kept() {
    let report = kept(&Built::new(), Unit::Events).report();
    let rows: Vec<_> = report.functions.iter().map(|f| (f.name.as_str(), f.weight)).collect();
    assert_eq!(rows, [("hot", 900), ("cold", 60), ("(blocks not kept)", 40)]);
    assert!(report.functions.iter().all(|f| f.plus_minus == 0.0), "everything was recorded");
}

#[test]
fn shares_from_bursts_have_error_bars() {
    let report = kept(&Built::new(), Unit::Picoseconds).report();
    let hot = &report.functions[0];
    assert!(hot.plus_minus > 0.02 && hot.plus_minus < 0.05, "{}", hot.plus_minus);
    assert!(text(&report, &[Section::Functions], 100).contains('±'));
    let calls = report.calls.as_ref().unwrap();
    assert!(calls.methods[0].plus_minus > 0.0 && calls.pairs[0].plus_minus > 0.0);
    assert!((calls.regions[0].plus_minus - hot.plus_minus).abs() < 1e-9, "both are shares of time");
    let calls = text(&report, &[Section::Calls], 100);
    assert_eq!(calls.matches('±').count(), 6, "each row, and two headings say what it is: {calls}");
    assert_eq!(calls.matches("(as seen in bursts)").count(), 3, "{calls}");
    let joined = calls.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("Shares are not in proportion to them"), "{calls}");
    let exact = text(&kept(&Built::new(), Unit::Events).report(), &[Section::Calls], 100);
    assert!(!exact.contains("bursts") && exact.contains("    share       calls        back\n"), "{exact}");
}

/// A function's share of the time is that of the bursts that began in it, whatever they recorded.
#[test]
fn functions_have_the_time_of_the_bursts_that_began_in_them() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Picoseconds);
    let start = |name: &str, count| {
        let pc = Place::new(1, built.at(name).0 + 4).0;
        Start { pc, sum: Sum { count, weight: 7 * count } }
    };
    let (behind_calls, in_faults) = (Sum { count: 50, weight: 350 }, Sum { count: 9, weight: 63 });
    let mut starts = |hot, cold| {
        let mut starts = vec![start("hot", hot), start("cold", cold)];
        starts.sort_by_key(|start| start.pc);
        let not_kept = Sum::default();
        kept.starts = Some(StartsProfile { starts, behind_calls, in_faults, not_kept });
        assert_eq!(kept.starts.as_ref().unwrap().check(), Ok(()));
        kept.report()
    };
    let report = starts(200, 150);
    let cold = report.functions.iter().find(|f| f.name == "cold").unwrap();
    assert!(report.functions[0].name == "hot" && starts(100, 250).functions[0].name == "cold", "by time");
    assert!(cold.samples == Some(150) && (cold.share - 150.0 / 350.0).abs() < 1e-9, "{cold:?}");
    assert!(cold.plus_minus > 0.02 && cold.plus_minus < 0.2, "{cold:?}");
    let shown = text(&report, &[Section::Functions, Section::Missing], 200);
    assert!(
        shown.contains("50 bursts began in a system call")
            && shown.contains("9 bursts began in a page fault"),
        "{shown}"
    );
}

#[test]
fn the_heading_says_what_shares_are_of() {
    let report = kept(&Built::new(), Unit::Picoseconds).report();
    let functions = text(&report, &[Section::Functions], 100);
    let joined = functions.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("1.25 of 1.50 s were in user code, the kernel is in no share"), "{functions}");
}

/// Two variables of a module, what lies beside them, and the heap: exact totals lie within the bounds, coarse trees too.
#[test]
fn totals_of_objects_hold_the_truth() {
    let built = Built::new();
    let mut state = 7u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for eps in [0.1, 0.01, 0.001] {
        let mut kept = kept(&built, Unit::Events);
        let (module, heap) = (1, 2);
        let starts = [built.at("table").0, built.at("other").0, built.at("_IO_stdin_used").0];
        let name = ["table", "other", "_IO_stdin_used"];
        let mut exact: std::collections::BTreeMap<(&str, bool), u64> = Default::default();
        let mut trees = [(); 2].map(|()| Tree::<u64>::new(Config::new().eps(eps)).unwrap());
        for _ in 0..30_000 {
            let which = [0, 0, 0, 1, 2, 3][random(6) as usize];
            let store = random(4) == 0;
            let place = match which {
                3 => Place::new(heap, 0x1000 + random(1 << 20)),
                2 => Place::new(module, starts[2] + random(4)),
                variable => Place::new(module, starts[variable] + random(4000)),
            };
            trees[usize::from(store)].add_weighted(place.0, 1);
            *exact.entry((name.get(which).copied().unwrap_or("heap"), store)).or_default() += 1;
        }
        let [loads, stores] = trees.map(|mut tree| Trees::One(tree.snapshot()));
        let of = |kind, tree| Ranges { kind, unit: Unit::Events, events: 30_000, tree };
        kept.ranges = vec![of(Kind::LoadAddresses, loads), of(Kind::StoreAddresses, stores)];
        let report = kept.report();
        let data = report.data.as_ref().unwrap();
        let all =
            |store: bool| exact.iter().filter(|(key, _)| key.1 == store).map(|(_, n)| *n).sum::<u64>() as f64;
        for ((name, store), count) in &exact {
            let row = data.objects.iter().find(|o| o.name.ends_with(name)).expect(name);
            let share = if *store { row.stores } else { row.loads }.unwrap();
            let truth = *count as f64 / all(*store);
            assert!(
                share.share <= truth + 1e-9 && truth <= share.share_at_most + 1e-9,
                "{name} {share:?} {truth}"
            );
            assert!(share.share_at_most - share.share < 4.0 * eps, "{name} {share:?} at {eps}");
        }
        let sum: f64 = data.objects.iter().map(|o| o.both.share).sum();
        assert!((sum + data.in_several - 1.0).abs() < 1e-9, "nothing is lost: {sum} {}", data.in_several);
        let table = data.objects.iter().find(|o| o.variable.as_deref() == Some("table")).unwrap();
        assert_eq!(
            (table.bytes, table.section.as_deref(), table.kind),
            (Some(4000), Some(".bss"), "variable")
        );
    }
}

#[test]
fn totals_of_objects_are_shown() {
    let report = kept(&Built::new(), Unit::Events).report();
    let text = text(&report, &[Section::Data], 100);
    let table = text.lines().find(|line| line.ends_with("program:.bss table, 3.9 KiB")).expect(&text);
    assert!(table.contains("80.0 %") && table.contains(" 800 ") && table.contains(" - "), "{text}");
    assert!(text.lines().any(|line| line.contains("20.0 %") && line.ends_with("  heap")), "{text}");
}

/// A nest in which almost all is done by the inner loop: the outer one has its own lines, and what it is in is told.
#[test]
fn loops_of_a_nest_are_told_apart() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Picoseconds);
    let ((hot, size), (main, _)) = (built.at("hot"), built.at("main"));
    let place = |offset: u64| Place::new(1, offset);
    // Taken for a loop around the one of another function, which is all that differs here.
    let outer = LoopStats {
        low: place(hot.min(main)).0,
        header: place(main).0,
        own: 10,
        ..kept.loops.loops[0].clone()
    };
    let extent = hot.max(main) + size.max(40) - hot.min(main);
    let outer = LoopStats { extent, passes: 40, own_weight: 0.01, inclusive_weight: 0.96, ..outer };
    kept.loops.loops[0].passes = 40;
    kept.loops.loops[0].depth = 2;
    kept.loops.loops[0].parent = Some(outer.header);
    kept.loops.loops.push(outer);
    kept.loops.loops.sort_by_key(|l| l.header);
    kept.blocks.push(BlockWeight { place: place(main), bytes: 8, weight: 10 });
    kept.blocks.sort();
    assert_eq!(kept.loops.check(), Ok(()));
    let report = kept.report();
    let loops = &report.loops.as_ref().unwrap().loops;
    let by_depth = |depth| loops.iter().find(|l| l.depth == depth).unwrap();
    let (outer, inner) = (by_depth(1), by_depth(2));
    assert!(
        inner.name.starts_with("hot, source.c:") && !outer.name.contains("hot"),
        "{} {}",
        inner.name,
        outer.name
    );
    assert_eq!(inner.inside, outer.line);
    assert!(outer.line.as_deref().unwrap().starts_with("source.c:") && outer.inside.is_none());
    let shown = text(&report, &[Section::Loops], 120);
    let row = shown.lines().find(|line| line.contains("  hot, ")).expect(&shown);
    assert!(row.contains("   2 "), "{row}");
    assert!(row.ends_with(&format!("  in {}", outer.line.as_deref().unwrap())), "{row}");
    let joined = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("seen whole") && joined.contains("no total of the run"), "{shown}");
    let always = text(&self::kept(&built, Unit::Events).report(), &[Section::Loops], 120);
    assert!(always.contains("executions") && !always.contains("no total of the run"), "{always}");
}

#[test]
fn what_was_not_seen_whole_has_no_average() {
    let built = Built::new();
    let mut kept = kept(&built, Unit::Events);
    kept.loops.loops[0].whole = Spread::default();
    kept.loops.loops[0].cut.starts = 1;
    let text = text(&kept.report(), &[Section::Loops], 100);
    assert!(!text.contains("0.0 (0-0)"), "{text}");
    let row = text.lines().find(|line| line.contains("source.c")).expect(&text);
    assert_eq!(row.split_whitespace().filter(|word| *word == "-").count(), 2, "{row}");
    assert!(text.contains("1 loop;") && text.contains("1 execution of these"), "{text}");
}

#[test]
fn what_repeated_string_instructions_do_is_said_where_it_shows() {
    let mut kept = kept(&Built::new(), Unit::Events);
    (kept.counts.loads, kept.counts.repetitions) = (70_000, 69_000);
    let said = text(&kept.report(), &[Section::Ranges(Kind::LoadAddresses)], 100);
    assert!(said.contains("70,000 were recorded: a repeated string instruction"), "{said}");
    kept.counts.repetitions = 0;
    assert!(!text(&kept.report(), &[Section::Ranges(Kind::LoadAddresses)], 100).contains("repeated"));
}

#[test]
fn data_is_named_by_variable_and_region() {
    let report = kept(&Built::new(), Unit::Events).report();
    let loads = report.ranges.iter().find(|v| v.kind == "loads").unwrap();
    let names: Vec<&str> = loads.hot.iter().map(|h| h.sides[0].name.as_str()).collect();
    assert!(names.contains(&"program:.bss table"), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("heap, ")), "{names:?}");
}

#[test]
fn the_map_tells_where_zeros_come_from_and_how_likely_they_are() {
    let map = kept(&Built::new(), Unit::Events).report().map.unwrap();
    assert_eq!(map.rows.len(), 1, "only the heap has zeros");
    assert_eq!(map.rows[0].name, "heap");
    assert!(map.rows[0].zero_chance.0 > 0.9 && map.rows[0].zero_chance.1 <= 1.0);
    assert!((map.rows[0].columns.iter().sum::<f64>() - 1.0).abs() < 0.05);
}

#[test]
fn calls_are_told_by_name() {
    let calls = kept(&Built::new(), Unit::Events).report().calls.unwrap();
    assert_eq!(calls.pairs[0].callee, "hot");
    assert!(calls.pairs[0].site.starts_with("main, source.c:1"), "{}", calls.pairs[0].site);
    let contexts: Vec<_> = calls.contexts.iter().map(|c| (c.depth, c.name.as_str())).collect();
    assert!(contexts.contains(&(0, "main")) && contexts.contains(&(1, "hot")), "{contexts:?}");
    assert!((calls.contexts[0].share - 1.0).abs() < 1e-9);
}

#[test]
fn loops_are_told_with_executions_and_iterations() {
    let report = kept(&Built::new(), Unit::Events).report();
    let one = &report.loops.as_ref().unwrap().loops[0];
    assert_eq!(one.name, "hot, source.c:3-7");
    assert_eq!((one.executions, one.iterations, one.iterations_most), (2, 20.0, 30));
    assert_eq!(one.histogram, [0, 0, 0, 0, 1, 1]);
    assert!((one.own_share - 0.9).abs() < 1e-9);
}

#[test]
fn values_are_told_with_their_shares() {
    let report = kept(&Built::new(), Unit::Events).report();
    let values = report.values.as_ref().unwrap();
    let load = &values.hot[0];
    assert!(load.name.starts_with("hot, source.c:"), "{}", load.name);
    assert_eq!((load.values[0].value.as_str(), load.values[0].share), ("7", 0.75));
    assert_eq!(load.values[1].value, "0x10000");
    assert!((values.invariance - 0.75).abs() < 1e-9);
    let shown = text(&report, &[Section::Values], 100);
    assert!(shown.contains("glacial") && shown.contains("7 75 %,") && !shown.contains("at least"), "{shown}");
}

/// Slots know shares up to bounds, which are told.
#[test]
fn estimated_values_are_told_with_their_bounds() {
    let mut kept = kept(&Built::new(), Unit::Events);
    kept.values.method = sonde_values::Method::Slots { slots: 64, narrow: false };
    let load = &mut kept.values.loads[0];
    (load.seen, load.missed) = (60, 10);
    load.values[0] = ValueCount { value: 7, lower: 40, estimate: 45.0, upper: 50 };
    let report = kept.report();
    let value = &report.values.as_ref().unwrap().hot[0].values[0];
    assert!(value.share_at_least < value.share && value.share < value.share_at_most, "{value:?}");
    let shown = text(&report, &[Section::Values], 100);
    let (least, most) = ((value.share_at_least * 100.0).floor(), (value.share_at_most * 100.0).ceil());
    assert!(shown.contains(&format!("% ({least}-{most})")), "{shown}");
    assert!(
        shown.split_whitespace().collect::<Vec<_>>().join(" ").contains("at least and at most"),
        "{shown}"
    );
}

/// A range over many functions is not named after one of them, which may be cold; one that is mostly one function is.
#[test]
fn a_range_of_many_functions_is_named_by_its_module() {
    let folder = tempfile::tempdir().unwrap();
    let function =
        |i: usize| format!("__attribute__((noinline)) int f{i}(int x) {{ return x * {i} + 1; }}\n");
    let main =
        "int main(int argc, char **argv) { (void)argv; return f0(argc) + f1(argc) + f2(argc) + f3(argc); }\n";
    let source: String = (0..4).map(function).chain([main.to_owned()]).collect();
    std::fs::write(folder.path().join("source.c"), source).unwrap();
    run("cc", &["-g", "-O1", "-o", "program", "source.c"], folder.path());
    let built = Built::of(folder);
    let (mut kept, module) = kept_of(&built);
    let mut hot_names = |weights: [u64; 4]| {
        let at = |i: usize| Place::new(module, built.at(&format!("f{i}")).0);
        kept.blocks = (0..4).map(|i| BlockWeight { place: at(i), bytes: 4, weight: weights[i] }).collect();
        kept.blocks.sort();
        let points: Vec<(u64, u64)> = (0..4).map(|i| (at(i).0, weights[i])).collect();
        let tree = tree(&points);
        kept.ranges = vec![Ranges { kind: Kind::Code, unit: Unit::Events, events: 4, tree }];
        let (calls, loops) = (CallProfile::default(), LoopsProfile::default());
        let (values, streams) = (ValueProfile::default(), StreamsProfile::default());
        (kept.calls, kept.loops, kept.values, kept.streams) = (calls, loops, values, streams);
        // No single function is that hot.
        let options = Options { hot: 0.95, ..Options::default() };
        let code = report(&kept.subject(), &mut Symbols::new(), &options).ranges.remove(0);
        code.hot.into_iter().map(|hot| hot.sides.into_iter().next().unwrap()).collect::<Vec<_>>()
    };
    let even = hot_names([20, 30, 28, 22]);
    assert_eq!(even[0].name, "program: 4 functions, most in f1", "{even:?}");
    assert_eq!((even[0].function.as_deref(), even[0].hottest.is_some()), (None, true));
    let skewed = hot_names([90, 4, 3, 3]);
    assert!(skewed[0].name.starts_with("f0 and 3 more, source.c:"), "{skewed:?}");
}

#[test]
fn every_section_fits_its_width_and_says_something() {
    let report = kept(&Built::new(), Unit::Picoseconds).report();
    for section in Section::all() {
        let has_data = !matches!(
            section.name(),
            "stores" | "dl1-miss-values" | "dl2-miss-values" | "narrow" | "code-data" | "cache"
        );
        for width in [80, 100, 160] {
            let text = text(&report, &[section], width);
            assert_eq!(!text.is_empty(), has_data, "{}", section.name());
            assert!(!text.contains('\x1b'));
            let too_wide = text.lines().skip(2).find(|line| line.chars().count() > width.max(90));
            assert_eq!(too_wide, None, "{} at {width}", section.name());
        }
    }
    let missing = text(&report, &[Section::Missing], 100);
    assert!(missing.contains("7 bursts were skipped") && missing.contains("3 references went"), "{missing}");
}

#[test]
fn stripped_programs_degrade_to_module_and_offset() {
    let built = Built::new();
    let kept = kept(&built, Unit::Events);
    run("strip", &["program"], built.folder.path());
    let report = kept.report();
    let code = report.ranges.iter().find(|v| v.kind == "code").unwrap();
    assert!(code.hot.iter().all(|hot| hot.sides[0].name.contains("program+0x")), "{:?}", code.hot);
}

/// The schema in the documentation is the one that the types make. `UPDATE_SCHEMA=1` writes it.
#[test]
fn the_documented_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    let now = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let documented = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(documented == now, "docs/report.schema.json is stale: run the test with UPDATE_SCHEMA=1");
}

/// Every key that a report has is in its schema, with a description.
#[test]
fn json_has_the_keys_of_the_schema() {
    let report = serde_json::to_value(kept(&Built::new(), Unit::Picoseconds).report()).unwrap();
    let schema = serde_json::to_value(schema()).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    let keys = report.as_object().unwrap();
    assert_eq!(keys.len(), properties.len());
    for (key, _) in keys {
        assert!(properties[key]["description"].is_string(), "{key}");
    }
}
