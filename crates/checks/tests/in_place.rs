//! Programs that are really changed: built here, rewritten on disk, and run beside what they were.

use object::{Object, ObjectSection, ObjectSymbol};
use sonde_checks::{InPlace, Layout, Module};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// As the context of `handler.c` is laid out.
const LAYOUT: Layout = Layout { checks: 0, app_r14: 8, save: 16, target: 24 };

const HANDLER: &str = include_str!("in_place/handler.c");
const C: &str = include_str!("in_place/program.c");
const CPP: &str = include_str!("in_place/program.cc");
const EXACT: &str = include_str!("in_place/exact.c");

struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    /// Compiles a program with the handler, into `original`.
    fn new(source: &str, options: &[&str]) -> Built {
        let built = Built { folder: tempfile::tempdir().unwrap() };
        let compiler = if source == CPP { "c++" } else { "cc" };
        let name = if source == CPP { "program.cc" } else { "program.c" };
        std::fs::write(built.path("handler.c"), HANDLER).unwrap();
        std::fs::write(built.path(name), source).unwrap();
        let bare = ["-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-fno-jump-tables"];
        built.run("cc", &[&["-O1", "-c", "-fPIC", "-o", "handler.o", "handler.c"], &bare[..]].concat());
        built.run(
            compiler,
            &[&["-g0", "-o", "original", name, "handler.o", "-Wl,-e,begin_here"], options].concat(),
        );
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = Command::new(program).args(args).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes `changed` of it.
    fn change(&self, scheme: &str) -> InPlace {
        let original = self.path("original");
        let module = Module::open(&original).unwrap();
        let plan = InPlace::new(&original, &module, scheme.parse().unwrap(), LAYOUT).unwrap();
        let mut bytes = std::fs::read(&original).unwrap();
        Changer::new(&original, &module).apply(&plan, &mut bytes);
        std::fs::write(self.path("changed"), bytes).unwrap();
        self.run("chmod", &["+x", "changed"]);
        plan
    }

    /// Runs it. Another test may have started a program of its own while the file was being written; until that one is
    /// executed, it holds the file open, which then cannot be.
    fn output(&self, name: &str, args: &[&str]) -> Output {
        for _ in 0..1000 {
            match Command::new(self.path(name)).args(args).output() {
                Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                result => return result.unwrap(),
            }
        }
        panic!("{name} stays busy");
    }
}

/// Where things are in a file.
struct Changer<'m> {
    module: &'m Module,
    stubs: u64,
    room: usize,
    moved: u64,
    handler: u64,
}

impl Changer<'_> {
    fn new<'m>(path: &Path, module: &'m Module) -> Changer<'m> {
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let section = |name: &str| file.section_by_name(name).unwrap();
        let handler = file.symbols().find(|s| s.name() == Ok("no_checks_left")).unwrap().address();
        Changer {
            module,
            stubs: section(".stubs").address(),
            room: section(".stubs").size() as usize,
            moved: section(".moved").address(),
            handler,
        }
    }

    fn write(&self, bytes: &mut [u8], at: u64, new: &[u8]) {
        let offset = self.module.file_offset(at).unwrap() as usize;
        bytes[offset..offset + new.len()].copy_from_slice(new);
    }

    fn apply(&self, plan: &InPlace, bytes: &mut [u8]) {
        let mut stubs = plan.stubs.clone();
        assert!(stubs.len() <= self.room, "{} bytes of stubs", stubs.len());
        for at in &plan.relative {
            let field = &mut stubs[*at as usize..*at as usize + 4];
            let value = u32::from_le_bytes(field.try_into().unwrap()).wrapping_sub(self.stubs as u32);
            field.copy_from_slice(&value.to_le_bytes());
        }
        // The engine fills in an absolute address; here the program may be moved, and the handler with it.
        let to_handler = (self.handler as u32).wrapping_sub(self.stubs as u32 + 5);
        stubs[0] = 0xe9;
        stubs[1..5].copy_from_slice(&to_handler.to_le_bytes());
        self.write(bytes, self.stubs, &stubs);
        let mut table = Vec::new();
        for (at, copy) in &plan.moved {
            table.extend(at.wrapping_sub(self.moved).to_le_bytes());
            table.extend((self.stubs + u64::from(*copy)).wrapping_sub(self.moved).to_le_bytes());
        }
        assert!(plan.moved.len() <= 65536);
        table.resize(16 * 65536, 0x7f);
        self.write(bytes, self.moved, &table);
        for edit in &plan.edits {
            let to = (self.stubs + u64::from(edit.to)).wrapping_sub(edit.field + 4) as u32;
            if edit.jump {
                self.write(bytes, edit.field - 1, &[0xe9]);
            }
            self.write(bytes, edit.field, &to.to_le_bytes());
        }
    }
}

/// Checks and bursts that a run told of.
fn told(output: &Output) -> (u64, u64) {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn same_output(source: &str, options: &[&str]) {
    let built = Built::new(source, options);
    let original = built.output("original", &["200", ":1000000"]);
    assert!(original.status.success() && !original.stdout.is_empty(), "{options:?}: {original:?}");
    assert_eq!(told(&original), (0, 0));
    for scheme in ["orig", "EC+L4"] {
        let plan = built.change(scheme);
        for period in [":1000000000", ":97", ":3"] {
            let changed = built.output("changed", &["200", period]);
            let what = format!("{scheme} {period} {options:?}, {} placed", plan.placed);
            assert!(changed.status.success(), "{what}: {changed:?}");
            assert_eq!(changed.stdout, original.stdout, "{what}");
            let (checks, bursts) = told(&changed);
            assert!(checks > 100, "{what}: {checks} checks");
            assert_eq!(bursts == 0, period == ":1000000000", "{what}: {bursts} bursts");
        }
    }
}

#[test]
fn c_programs_do_what_they_did() {
    for options in [
        &["-O0"][..],
        &["-O2"],
        &["-O2", "-no-pie"],
        &["-O3", "-fcf-protection=full"],
        &["-O2", "-fcf-protection=none", "-no-pie", "-fno-plt"],
        &["-Os"],
    ] {
        same_output(C, options);
    }
}

#[test]
fn cpp_programs_that_throw_do_what_they_did() {
    for options in [&["-O0"][..], &["-O2"], &["-O3", "-no-pie"], &["-Os", "-fcf-protection=none"]] {
        same_output(CPP, options);
    }
}

/// All of the C and C++ libraries too: resolvers, system calls, signals, unwinding, hand-written code.
#[test]
fn programs_that_hold_their_libraries_do_what_they_did() {
    same_output(C, &["-O2", "-static"]);
    same_output(CPP, &["-O2", "-static"]);
}

/// Checks that a part of `exact.c` makes for each of what its argument counts.
fn checks_per(built: &Built, part: &str) -> u64 {
    let checks = |n: &str| told(&built.output("changed", &[part, n, ":1000000000"])).0;
    let (few, many) = (checks("1000"), checks("3000"));
    assert_eq!((many - few) % 2000, 0, "{part}: {few} {many}");
    (many - few) / 2000
}

#[test]
fn checks_are_as_many_as_are_known() {
    for options in [&["-O1"][..], &["-O2", "-no-pie"]] {
        let built =
            Built::new(EXACT, &[options, &["-fno-optimize-sibling-calls", "-fno-unroll-loops"]].concat());
        let plan = built.change("orig");
        assert!(plan.opaque <= 4, "{} functions left alone", plan.opaque);
        assert_eq!(checks_per(&built, "d"), 1, "a call each");
        assert_eq!(checks_per(&built, "l"), 2, "a back-edge and a call each");
        assert_eq!(checks_per(&built, "b"), 1, "a back-edge each");
        assert_eq!(checks_per(&built, "t"), 4, "a back-edge, an entry by pointer, two calls");
        built.change("EC+L4");
        assert_eq!(checks_per(&built, "d"), 1, "recursion");
        assert_eq!(checks_per(&built, "l"), 1, "not the leaf");
        assert_eq!(checks_per(&built, "b"), 0, "boring");
        assert_eq!(checks_per(&built, "t"), 1, "nor what leads nowhere but to leaves");
    }
}
