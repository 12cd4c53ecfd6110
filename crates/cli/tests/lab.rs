//! Each experiment of `sonde lab` on a small program: the table is there, as CSV too, its figures are within bounds that
//! follow from the program, and what cannot be done is said.

#[path = "common/sonde.rs"]
mod sonde;

use sonde::Bench;

const SOURCE: &str = include_str!("programs/lab.c");

/// The folder with the compiled program.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.compile("lab", SOURCE, &["-O1", "-g"]);
    bench
}

/// Rows of a CSV file by column name.
struct Csv {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Cells of a line, quoted where they hold a comma.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    assert!(!quoted, "{line}");
    all
}

impl Csv {
    fn new(text: &str) -> Csv {
        let mut lines = text.lines().map(cells);
        let columns = lines.next().expect("names of columns");
        let rows: Vec<Vec<String>> = lines.collect();
        assert!(rows.iter().all(|row| row.len() == columns.len()), "{text}");
        let mut names = columns.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), columns.len(), "each name is used once: {text}");
        assert!(!rows.is_empty(), "{text}");
        Csv { columns, rows }
    }

    fn cell<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        let index = self.columns.iter().position(|c| c == column).unwrap_or_else(|| panic!("no {column}"));
        &row[index]
    }

    fn number(&self, row: &[String], column: &str) -> f64 {
        let cell = self.cell(row, column);
        cell.parse().unwrap_or_else(|_| panic!("{column} is {cell:?}"))
    }

    /// The first row that begins so.
    fn row(&self, name: &str) -> &[String] {
        self.rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("no {name}: {:?}", self.rows))
    }
}

/// Runs an experiment on the program; its own output must be as it is.
fn lab(bench: &Bench, options: &[&str], arguments: &[&str]) -> Csv {
    let args = [&["lab"], options, &["--csv", "-o", "table", "--", "./lab"], arguments].concat();
    let done = bench.sonde(&args).good();
    assert!(done.text().ends_with('\n') && !done.text().contains(','), "{}", done.text());
    Csv::new(&std::fs::read_to_string(bench.path("table")).unwrap())
}

#[test]
fn loops_have_the_iterations_that_the_program_says() {
    let bench = bench();
    let table = lab(&bench, &["loops"], &["100"]);
    assert_eq!(table.rows.len(), 9);
    for row in &table.rows {
        let number = |column| table.number(row, column);
        assert!(number("captured %") <= number("possible %") + 0.01, "{row:?}");
        assert!((0.0..=100.0).contains(&number("possible %")), "{row:?}");
        assert!(number("time %") > 80.0, "{row:?}");
        assert!(number("missed") <= 10.0, "{row:?}");
    }
    // The observer of all branches is its own truth.
    let all = table.row("all branches, no limits");
    assert_eq!(
        (table.number(all, "iterations seen %"), table.number(all, "executions seen %")),
        (100.0, 100.0)
    );
    assert_eq!(
        ["iterations paper %", "executions paper %", "time paper %"].map(|column| table.number(all, column)),
        [100.0; 3]
    );
    assert_eq!(table.cell(table.row("frequent loops"), "iterations %"), "-");

    let rows = lab(&bench, &["loops", "--rows"], &["100"]);
    let of = |profiler: &str, function: &str| {
        let is = |row: &&Vec<String>| row[0] == profiler && rows.cell(row, "loop").starts_with(function);
        rows.rows.iter().find(is).unwrap_or_else(|| panic!("no {function}: {:?}", rows.rows)).clone()
    };
    // 2000 executions that go back 49 times; the average rests up to 7/8 below.
    let inner = of("DAProf 8-way, calls", "inner, lab.c:");
    assert_eq!(rows.number(&inner, "actual executions"), 2000.0);
    assert_eq!(rows.number(&inner, "actual iterations"), 49.0);
    assert_eq!(rows.number(&inner, "reported executions"), 2000.0);
    assert!((rows.number(&inner, "iterations") - (49.0 - 7.0 / 8.0)).abs() < 0.01, "{inner:?}");
    // Section 4.4: a loop that calls a loop is 1900 executions of one round, unless calls are followed.
    let outer = of("DAProf 8-way, plain", "outer, lab.c:");
    assert!((1850.0..=1900.0).contains(&rows.number(&outer, "reported executions")), "{outer:?}");
    let outer = of("DAProf 8-way, calls", "outer, lab.c:");
    // Loops of the start-up may displace its first execution.
    assert!((98.0..=100.0).contains(&rows.number(&outer, "reported executions")), "{outer:?}");
    assert_eq!(rows.number(&outer, "actual executions"), 100.0);
    assert!((18.0..=19.0).contains(&rows.number(&outer, "iterations")), "{outer:?}");
}

#[test]
fn values_of_every_32nd_load_are_close_to_the_truth() {
    let table = lab(&bench(), &["values"], &["400"]);
    let slots = table.rows.iter().filter(|row| row[0].ends_with("slots")).count();
    assert_eq!(slots, 3);
    let (often, seldom) = (table.row("every 32 loads"), table.row("every 32768 loads"));
    assert!(table.number(often, "error") < 0.2, "{often:?}");
    assert!(table.number(often, "error") <= table.number(seldom, "error"));
    assert!(table.number(often, "overhead %") > table.number(seldom, "overhead %"));
    let share = table.number(often, "recorded %");
    assert!((3.0..3.3).contains(&share), "one of 32 is 3.1 %: {share}");
}

#[test]
fn longer_bursts_have_more_streams_in_common() {
    let table = lab(&bench(), &["streams"], &["400"]);
    assert_eq!(table.rows.len(), 8);
    let overlap = |setting: &str| table.number(table.row(setting), "overlap %");
    for row in &table.rows {
        assert!((0.0..=100.0).contains(&table.number(row, "overlap %")), "{row:?}");
        assert!(table.number(row, "recorded %") < 10.0, "{row:?}");
    }
    assert!(overlap("1000:50") >= overlap("20:1"));
}

#[test]
fn ranges_are_as_exact_as_eps_says() {
    let table = lab(&bench(), &["ranges"], &["100"]);
    assert_eq!(table.rows.len(), 4);
    for row in &table.rows {
        assert!(table.number(row, "hot ranges") >= 1.0, "{row:?}");
        assert!(table.number(row, "avg error %") <= table.number(row, "worst error %"), "{row:?}");
        assert!(table.number(row, "avg nodes") <= table.number(row, "max nodes"), "{row:?}");
        assert!(table.number(row, "events") > 100_000.0, "{row:?}");
        let eps: f64 = table.cell(row, "eps").trim_end_matches(" %").parse().unwrap();
        // A hot range has a tenth of all events, of which eps are the most that can be elsewhere.
        assert!(table.number(row, "worst error %") <= 10.0 * eps, "{row:?}");
    }
}

#[test]
fn bursts_find_the_function_that_takes_the_time() {
    let bench = bench();
    let table = lab(&bench, &["bursts"], &["100", "3000000"]);
    assert_eq!(table.rows.len(), 3);
    let modules = table.row("modules");
    assert!(table.number(modules, "by instructions %") > 80.0, "{modules:?}");
    let functions = table.row("functions");
    assert!(table.number(functions, "by instructions %") > 60.0, "{functions:?}");
    // Named places only get fewer from lines to functions to modules.
    let number = |name: &str| table.number(table.row(name), "number");
    assert!(number("modules") < number("functions") && number("functions") < number("64-byte lines"));
}

#[test]
fn traces_do_as_well_if_they_hold_enough() {
    let bench = bench();
    bench
        .sonde(&["trace", "record", "--policy", "always", "--record", "blocks", "-o", "t", "--", "./lab"])
        .good();
    let text = bench.sonde(&["lab", "loops", "--trace", "t"]).good().text();
    assert!(text.contains("paper:") && text.contains("DAProf full, plain"), "{text}");
    let same = bench.sonde(&["lab", "loops", "--trace", "t", "--csv"]).good().text();
    assert_eq!(Csv::new(&same).rows.len(), 9);

    for (experiment, needs) in [("values", "values"), ("ranges", "values"), ("streams", "addresses")] {
        let done = bench.sonde(&["lab", experiment, "--trace", "t"]);
        assert_eq!(done.status, Some(2), "{experiment}");
        assert!(done.err.contains(&format!("--record {needs}")), "{experiment}: {}", done.err);
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let bench = bench();
    let fails = |args: &[&str], status: i32, word: &str| {
        let done = bench.sonde(args);
        assert_eq!(done.status, Some(status), "{args:?}: {}", done.err);
        assert!(done.err.contains(word), "{args:?}: {}", done.err);
    };
    fails(&["lab", "loops"], 2, "required");
    fails(&["lab", "loops", "--trace", "none"], 2, "none");
    fails(&["lab", "loops", "--trace", "lines"], 2, "lines");
    fails(&["lab", "loops", "--", "./nowhere"], 127, "nowhere");
    fails(&["lab", "bursts", "--trace", "lines"], 2, "runs a program twice");
    fails(&["lab", "loops", "-o", "no/such/folder", "--", "./lab"], 2, "no/such/folder");
}

#[test]
fn a_program_that_fails_is_noted_in_words() {
    let done = bench().sonde(&["lab", "ranges", "--", "sh", "-c", "exit 3"]);
    assert!(done.err.contains("note: the program ended with status 3\n"), "{}", done.err);
    assert!(done.good().err.contains("hot"));
}
