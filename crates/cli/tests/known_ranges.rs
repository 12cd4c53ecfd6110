//! A program whose zero loads, small numbers, missing values and hot cells are known by construction: the trees say so.

use std::path::{Path, PathBuf};
use std::process::Command;

use sonde_harness::leftovers::Folder;
use sonde_place::{Kind as RegionKind, Place};
use sonde_profile::Profile;
use sonde_rap::Snapshot;
use sonde_summary::{Kind, Trees};

const ROUNDS: u64 = 200_000;
const LINES: u64 = 262_144;

struct Run {
    _folder: Folder,
    program: PathBuf,
    profile: Profile,
}

impl Run {
    fn new() -> Run {
        let folder = Folder::new().expect("a temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/known_ranges.c");
        let (program, file) = (folder.path().join("known"), folder.path().join("known.sonde"));
        let built =
            Command::new("cc").args(["-O1", "-pie", "-fPIE", "-o"]).arg(&program).arg(source).status();
        assert!(built.expect("a C compiler").success());
        let run = Command::new(env!("CARGO_BIN_EXE_sonde"))
            .args(["run", "--quiet", "--policy", "always", "--what"])
            .arg("loads,load-values,zero-loads,narrow,dl1-miss-values,dl2-miss-values,code-data")
            .arg("-o")
            .args([&file, Path::new("--"), &program])
            .output()
            .expect("sonde runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let profile = Profile::read(&file).expect("a profile");
        Run { _folder: folder, program, profile }
    }

    /// First and last place of a symbol.
    fn places(&self, symbol: &str) -> (u64, u64) {
        let table = Command::new("nm").arg("-S").arg(&self.program).output().expect("nm runs");
        let table = String::from_utf8(table.stdout).expect("text");
        let line = table.lines().find(|l| l.split(' ').nth(3) == Some(symbol)).expect("a symbol");
        let number =
            |i: usize| u64::from_str_radix(line.split(' ').nth(i).expect("a number"), 16).expect("hex");
        let regions = self.profile.summary.regions.all();
        let name = self.program.display().to_string();
        let slot =
            regions.iter().position(|r| r.kind == RegionKind::Module && r.name == name).expect("the program");
        let first = Place::new(slot as u16, number(0)).0;
        (first, first + number(1) - 1)
    }

    fn one(&self, kind: Kind) -> &Snapshot<u64> {
        match &self.profile.summary.of(kind).expect("the tree").tree {
            Trees::One(tree) => tree,
            Trees::Two(_) => panic!("{} has one dimension", kind.name()),
        }
    }
}

/// The tree says what is known: a lower bound that misses no more than it promises, and an upper bound.
fn assert_known(tree: &Snapshot<u64>, lo: u64, hi: u64, known: u64, what: &str) {
    let found = tree.bounds(lo, hi);
    let slack = (tree.eps_effective * tree.events as f64).ceil() as u64;
    assert!(found.lower <= known, "{what}: {} of {known}", found.lower);
    assert!(found.lower + slack >= known, "{what}: {} of {known}, {slack} may be missing", found.lower);
    assert!(found.upper >= known, "{what}: at most {} of {known}", found.upper);
}

#[test]
fn what_is_known_by_construction_is_found() {
    let run = Run::new();
    let (zeros, numbers) = (run.places("zeros"), run.places("numbers"));
    let (load_zeros, load_numbers) = (run.places("load_zeros"), run.places("load_numbers"));

    let loads = run.one(Kind::LoadAddresses);
    assert_known(loads, zeros.0, zeros.1, ROUNDS, "loads of zeros");
    assert_known(loads, numbers.0, numbers.1, ROUNDS, "loads of numbers");

    let zero_loads = run.one(Kind::ZeroLoads);
    assert_known(zero_loads, zeros.0, zeros.1, ROUNDS, "zeros loaded");
    assert_known(zero_loads, numbers.0, numbers.1, 0, "no zero among the numbers");
    let chance = run.profile.summary.zero_chance(zeros.0, zeros.1).expect("loads there");
    assert!(chance.lower > 0.95 && chance.upper >= 1.0, "{chance:?}");
    let chance = run.profile.summary.zero_chance(numbers.0, numbers.1).expect("loads there");
    assert!(chance.likely < 0.05, "{chance:?}");

    let values = run.one(Kind::LoadValues);
    assert_known(values, 15_231, 15_231, ROUNDS, "the number");
    assert_known(values, 0xfeed_face_cafe_beef, 0xfeed_face_cafe_beef, LINES + 1, "the value of the lines");

    let narrow = run.one(Kind::NarrowPcs);
    assert_known(narrow, load_zeros.0, load_zeros.1, ROUNDS, "zeros are narrow");
    assert_known(narrow, load_numbers.0, load_numbers.1, ROUNDS, "the number is narrow");
    let lines = run.places("load_lines");
    assert_known(narrow, lines.0, lines.1, 0, "the lines are not");
}

#[test]
fn values_that_miss_are_those_of_the_lines() {
    let run = Run::new();
    for kind in [Kind::Dl1MissValues, Kind::Dl2MissValues] {
        let tree = run.one(kind);
        // The last lines written are still in the cache when they are read: 16 MiB of lines, 64 KiB or 1 MiB of cache,
        // and the first ones push them out before their turn comes.
        let found = tree.bounds(0xfeed_face_cafe_beef, 0xfeed_face_cafe_beef);
        assert!(found.lower as f64 >= 0.99 * LINES as f64, "{}: {}", kind.name(), found.lower);
        assert!(found.lower <= LINES + 1, "{}: {}", kind.name(), found.lower);
        let hot = tree.hot(0.5);
        assert!(
            hot.iter().any(|h| h.range.lo == 0xfeed_face_cafe_beef && h.range.hi == h.range.lo),
            "{hot:?}"
        );
        let other = tree.bounds(15_231, 15_231);
        assert!(other.lower < 100, "the number is in the cache: {}", other.lower);
    }
}

#[test]
fn hot_cells_of_code_by_data_are_those_of_the_loops() {
    let run = Run::new();
    let Trees::Two(tree) = &run.profile.summary.of(Kind::CodeData).expect("the tree").tree else {
        panic!("two dimensions")
    };
    for (code, data) in [("load_zeros", "zeros"), ("load_numbers", "numbers")] {
        let (code, data) = (run.places(code), run.places(data));
        // Data is told apart by lines.
        let (lo, hi) = (data.0 & !63, data.1 | 63);
        let found = tree.bounds([code.0, lo], [code.1, hi]);
        let slack = (tree.eps_effective * tree.events as f64).ceil() as u64;
        assert!(found.lower <= ROUNDS && found.lower + slack >= ROUNDS, "{} of {ROUNDS}", found.lower);
        assert!(found.upper >= ROUNDS);
    }
    let (zeros, numbers) = (run.places("load_zeros"), run.places("numbers"));
    let none = tree.bounds([zeros.0, numbers.0 & !63], [zeros.1, numbers.1 | 63]);
    assert_eq!(none.lower, 0, "that code never goes there");
}
