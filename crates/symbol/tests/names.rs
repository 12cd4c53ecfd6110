//! Names from real files: with debug information, without, stripped, with it apart, and wrong ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use sonde_symbol::Symbols;

const SOURCE: &str = "\
int counter[100];
static int helper(int x) {
    return x * 3 + counter[x & 63];
}
__attribute__((noinline)) int busy_function(int x) {
    counter[x & 63] += x;
    return helper(x);
}
int main(int argc, char **argv) {
    (void)argv;
    return busy_function(argc);
}
";

fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new(options: &[&str]) -> Built {
        Built::of(SOURCE, options)
    }

    fn of(source: &str, options: &[&str]) -> Built {
        let built = Built { folder: tempfile::tempdir().unwrap() };
        std::fs::write(built.path("source.c"), source).unwrap();
        let common = ["-O1", "-o", "program", "source.c", "-Wl,--build-id"];
        run("cc", &[&common[..], options].concat(), built.folder.path());
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self) -> String {
        self.path("program").display().to_string()
    }

    /// The address of a symbol as the file has it.
    fn address(&self, name: &str) -> u64 {
        let table = run("nm", &["program"], self.folder.path());
        let line = table.lines().find(|l| l.split(' ').nth(2) == Some(name)).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    fn build_id(&self) -> Vec<u8> {
        let notes = run("readelf", &["-n", "program"], self.folder.path());
        let id = notes.lines().find_map(|l| l.trim().strip_prefix("Build ID: ")).unwrap();
        (0..id.len() / 2).map(|i| u8::from_str_radix(&id[2 * i..2 * i + 2], 16).unwrap()).collect()
    }
}

/// In these small programs code has the same offset in the file as in memory.
#[test]
fn debug_information_gives_function_file_and_line() {
    let built = Built::new(&["-g"]);
    let at = built.address("busy_function");
    let mut symbols = Symbols::new();
    assert_eq!(symbols.address(&built.program(), &[], at), Some(at));
    let place = symbols.code(&built.program(), &built.build_id(), at);
    assert_eq!(place.function.as_deref(), Some("busy_function"));
    assert!(place.file.unwrap().ends_with("source.c"));
    assert!((5..=7).contains(&place.line.unwrap()), "{:?}", place.line);
}

#[test]
fn inlined_functions_are_told_with_where_they_went() {
    let built = Built::new(&["-g", "-O2"]);
    let (at, mut symbols) = (built.address("busy_function"), Symbols::new());
    let places = (at..at + 64).map(|pc| symbols.code(&built.program(), &[], pc));
    let inlined = places.filter(|p| p.function.as_deref() == Some("helper")).collect::<Vec<_>>();
    assert!(!inlined.is_empty());
    assert!(inlined.iter().all(|p| p.inlined_into.as_deref() == Some("busy_function")), "{inlined:?}");
}

#[test]
fn without_debug_information_the_symbol_table_does() {
    let built = Built::new(&[]);
    let at = built.address("busy_function");
    let place = Symbols::new().code(&built.program(), &[], at + 2);
    assert_eq!((place.function.as_deref(), place.file, place.line), (Some("busy_function"), None, None));
}

#[test]
fn stripped_files_give_no_names() {
    let built = Built::new(&[]);
    let at = built.address("busy_function");
    run("strip", &["program"], built.folder.path());
    assert_eq!(Symbols::new().code(&built.program(), &[], at), sonde_symbol::Place::default());
}

#[test]
fn debug_files_apart_are_found_by_build_id() {
    let built = Built::new(&["-g"]);
    let (at, id) = (built.address("busy_function"), built.build_id());
    let rest: String = id[1..].iter().map(|b| format!("{b:02x}")).collect();
    let folder = built.path(&format!("debug/.build-id/{:02x}", id[0]));
    std::fs::create_dir_all(&folder).unwrap();
    let apart = folder.join(format!("{rest}.debug")).display().to_string();
    run("objcopy", &["--only-keep-debug", "program", &apart], built.folder.path());
    run("strip", &["program"], built.folder.path());
    let mut symbols = Symbols::with_debug_roots(vec![built.path("debug")]);
    let place = symbols.code(&built.program(), &id, at);
    assert_eq!(place.function.as_deref(), Some("busy_function"));
    assert!(place.line.is_some());
}

#[test]
fn another_build_gives_no_names_rather_than_wrong_ones() {
    let built = Built::new(&["-g"]);
    let at = built.address("busy_function");
    let place = Symbols::new().code(&built.program(), &[1, 2, 3, 4], at);
    assert_eq!(place, sonde_symbol::Place::default());
}

#[test]
fn data_has_a_section_and_a_variable() {
    let built = Built::new(&[]);
    let at = built.address("counter");
    let mut symbols = Symbols::new();
    for offset in [0, 100, 399] {
        let place = symbols.data(&built.program(), &[], at + offset);
        assert_eq!(place.section.as_deref(), Some(".bss"));
        assert_eq!(place.variable.as_deref(), Some("counter"));
    }
    assert_eq!(symbols.data(&built.program(), &[], 1 << 40), sonde_symbol::DataPlace::default());
}

#[test]
fn mangled_names_are_made_readable() {
    let folder = tempfile::tempdir().unwrap();
    let source = "extern \"C\" int puts(const char *);\nnamespace space { template <typename T> struct Box { \
                  __attribute__((noinline)) int open(T x) { return x + puts(\"\"); } }; }\n\
                  int main(int n, char **) { return space::Box<int>().open(n); }\n";
    std::fs::write(folder.path().join("a.cc"), source).unwrap();
    if Command::new("c++").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no C++ compiler");
    }
    run("c++", &["-O1", "-o", "a", "a.cc"], folder.path());
    let table = run("nm", &["a"], folder.path());
    let line = table.lines().find(|l| l.contains("open")).unwrap();
    let at = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let file = folder.path().join("a").display().to_string();
    let name = Symbols::new().code(&file, &[], at).function.unwrap();
    assert_eq!(name, "space::Box<int>::open(int)");
}

#[test]
fn nonsense_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let mut symbols = Symbols::new();
    let cases: [(&str, Vec<u8>); 4] = [
        ("empty", Vec::new()),
        ("text", b"hello".repeat(100)),
        ("cut", own[..own.len() / 3].to_vec()),
        ("holes", own.iter().enumerate().map(|(i, b)| if i % 97 == 0 { 0xff } else { *b }).collect()),
    ];
    for (name, bytes) in cases {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        for offset in [0, 0x1000, 0x5_0000, u64::MAX] {
            let _ = symbols.code(path.to_str().unwrap(), &[], offset);
            let _ = symbols.data(path.to_str().unwrap(), &[], offset);
        }
    }
    let _ = symbols.code("/dev/null", &[], 0);
    let _ = symbols.code("/", &[], 0);
}

#[test]
fn frames_lines_and_spans_of_a_stretch_of_code() {
    let built = Built::new(&["-g", "-O2"]);
    let (program, id, mut symbols) = (built.program(), built.build_id(), Symbols::new());
    let at = built.address("busy_function");
    let span = symbols.function(&program, &id, at + 1).unwrap();
    assert_eq!((span.name.as_str(), span.start), ("busy_function", at));
    assert_eq!(symbols.function(&program, &id, at + span.size).filter(|s| s.start == at), None);
    let frames: Vec<_> = (at..at + span.size).map(|pc| symbols.frames(&program, &id, pc)).collect();
    let deepest = frames.iter().max_by_key(|f| f.len()).unwrap();
    let names: Vec<_> = deepest.iter().map(|f| f.function.as_deref().unwrap()).collect();
    assert_eq!(names, ["helper", "busy_function"]);
    assert_eq!((deepest[0].line, deepest[1].line), (Some(3), Some(7)));
    let lines = symbols.lines(&program, &id, at, at + span.size - 1);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].file.ends_with("source.c"));
    assert_eq!((lines[0].first, lines[0].last), (3, 8), "{lines:?}");
    assert_eq!(lines[0].bytes, span.size);
    let variable = symbols.variable(&program, &id, built.address("counter") + 44).unwrap();
    assert_eq!((variable.name.as_str(), variable.size), ("counter", 400));
}

#[test]
fn offsets_from_the_lowest_mapping_are_understood_wherever_the_program_wants_to_be() {
    for (option, base) in [("-no-pie", 0x40_0000), ("-pie", 0)] {
        let built = Built::new(&["-g", option, "-fPIE"]);
        let at = built.address("busy_function");
        let found = Symbols::new().image_address(&built.program(), &[], at - base);
        assert_eq!(found, Some(at), "{option}");
    }
}

#[test]
fn split_debug_information_is_followed() {
    let built = Built::new(&["-g", "-gsplit-dwarf"]);
    let at = built.address("busy_function");
    let frames = Symbols::new().frames(&built.program(), &[], at);
    let last = frames.last().unwrap();
    assert_eq!(last.function.as_deref(), Some("busy_function"));
    assert!((5..=7).contains(&last.line.unwrap()));
}

#[test]
fn a_linked_debug_file_beside_the_program_is_used_if_it_is_of_the_same_build() {
    let built = Built::new(&["-g"]);
    let folder = built.folder.path();
    let (at, id) = (built.address("busy_function"), built.build_id());
    run("objcopy", &["--only-keep-debug", "program", "program.debug"], folder);
    run("objcopy", &["--strip-all", "--add-gnu-debuglink=program.debug", "program"], folder);
    let line = |symbols: &mut Symbols| symbols.frames(&built.program(), &id, at).last().and_then(|f| f.line);
    assert!(line(&mut Symbols::new()).is_some());
    std::fs::create_dir(built.path(".debug")).unwrap();
    std::fs::rename(built.path("program.debug"), built.path(".debug/program.debug")).unwrap();
    assert!(line(&mut Symbols::new()).is_some());
    let other = Built::new(&["-g", "-O2", "-DX"]);
    run("objcopy", &["--only-keep-debug", "program", "program.debug"], other.folder.path());
    std::fs::copy(other.path("program.debug"), built.path(".debug/program.debug")).unwrap();
    assert!(line(&mut Symbols::new()).is_none(), "lines of another build are wrong lines");
}

#[test]
fn functions_of_stripped_files_still_begin_and_end() {
    let built = Built::new(&["-g"]);
    let at = built.address("busy_function");
    let whole = Symbols::new().extent(&built.program(), &[], at + 3).unwrap();
    run("strip", &["program"], built.folder.path());
    let mut symbols = Symbols::new();
    assert_eq!(symbols.function(&built.program(), &[], at), None);
    assert_eq!(symbols.extent(&built.program(), &[], at + 3), Some(whole));
    assert_eq!(whole.0, at);
    assert_eq!(symbols.extent(&built.program(), &[], 1), None);
}

#[test]
fn names_of_c_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let source = "int i(int x) { return x + 1; }\nint Pc(int x) { return i(x); }\nint main(int n, char **v) { (void)v; return Pc(n); }\n";
    std::fs::write(folder.path().join("a.c"), source).unwrap();
    run("cc", &["-O0", "-o", "a", "a.c"], folder.path());
    let table = run("nm", &["a"], folder.path());
    let file = folder.path().join("a").display().to_string();
    for name in ["i", "Pc", "main"] {
        let line = table.lines().find(|l| l.split(' ').nth(2) == Some(name)).unwrap();
        let at = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        assert_eq!(Symbols::new().function(&file, &[], at).unwrap().name, name);
    }
}

/// Addresses of the stubs that objdump names, such as `puts@plt`.
fn stubs(built: &Built) -> Vec<(u64, String)> {
    let listing = run("objdump", &["-d", "program"], built.folder.path());
    let head = |line: &str| {
        let (at, name) = line.strip_suffix(">:")?.split_once(" <")?;
        let target = name.strip_suffix("@plt")?;
        let at = u64::from_str_radix(at, 16).ok()?;
        Some((at, format!("{}@plt", target.split('@').next()?)))
    };
    listing.lines().filter_map(head).collect()
}

#[test]
fn stubs_are_named_after_what_they_call() {
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        int main(int argc, char **argv) { char *p = malloc(argc * 99); memcpy(p, argv[0], argc);\n\
        void (*f)(void *) = free; puts(p); f(p); return getenv(argv[0]) != 0; }\n";
    for options in [&["-fcf-protection=full"][..], &["-fcf-protection=none"], &["-Wl,-z,now"], &["-no-pie"]] {
        let built = Built::of(source, options);
        let known = stubs(&built);
        let mut symbols = Symbols::new();
        for symbol in ["puts", "malloc", "memcpy", "getenv"] {
            let (at, name) = known.iter().find(|(_, name)| *name == format!("{symbol}@plt")).expect(symbol);
            for at in [*at, at + 7] {
                let span = symbols.function(&built.program(), &[], at).expect("a stub");
                assert_eq!(&span.name, name, "{options:?}");
            }
        }
        // The common part has no target, and is not the function in front of it.
        let common = run("readelf", &["-SW", "program"], built.folder.path());
        let line = common.lines().find(|line| line.contains(" .plt ")).expect("a section");
        let at = line.split(" .plt ").nth(1).unwrap().split_whitespace().nth(1).unwrap();
        let at = u64::from_str_radix(at, 16).unwrap();
        assert_eq!(symbols.function(&built.program(), &[], at).expect("a name").name, sonde_symbol::PLT);
    }
}

/// Variables and what lies between them cover the sections without a gap, each as `variable` has it.
#[test]
fn the_layout_covers_the_sections() {
    let built =
        Built::of("int a[7]; char b; static long c[3]; int main(void) { a[1] = b; return c[2]++; }\n", &[]);
    let program = built.program();
    let mut symbols = Symbols::new();
    let layout = symbols.layout(&program, &[]);
    assert!(layout.stretches.windows(2).all(|pair| pair[0].end <= pair[1].start));
    for (name, bytes) in [("a", 28), ("b", 1), ("c", 24)] {
        let at = built.address(name);
        let stretch = layout.stretches.iter().find(|s| s.start == at && s.is_variable).expect(name);
        assert_eq!((stretch.end - at, layout.sections[stretch.section].as_str()), (bytes, ".bss"));
    }
    let data = symbols.data(&program, &[], built.address("a")).section;
    assert_eq!(data.as_deref(), Some(".bss"));
    let text = layout.sections.iter().position(|name| name == ".text").unwrap();
    let code: Vec<_> = layout.stretches.iter().filter(|s| s.section == text).collect();
    assert!(code.len() == 1 && !code[0].is_variable && code[0].start <= built.address("main"));
    assert!(symbols.layout("/no/such/file", &[]).stretches.is_empty());
}

/// A program that was built anew: a copy of the old one is found by its build-id, whatever it is called; others are not taken.
#[test]
fn a_copy_names_what_was_changed_since() {
    let built = Built::new(&["-g"]);
    let (at, id) = (built.address("busy_function"), built.build_id());
    let kept = tempfile::tempdir().unwrap();
    std::fs::create_dir(kept.path().join("monday")).unwrap();
    std::fs::write(kept.path().join("a text"), "no program").unwrap();
    let other = Built::of("int main(void) { return 7; }", &[]);
    std::fs::copy(other.program(), kept.path().join("program")).unwrap();
    let names = |folders: &[PathBuf]| {
        let mut symbols = Symbols::new().with_copies(folders.to_vec());
        symbols.frames(&built.program(), &id, at).pop().and_then(|frame| frame.function)
    };
    let folders = [kept.path().to_owned()];
    std::fs::rename(built.program(), kept.path().join("monday/saved.old")).unwrap();
    assert_eq!(names(&folders).as_deref(), Some("busy_function"), "it is gone");
    std::fs::copy(other.program(), built.program()).unwrap();
    assert_eq!(names(&folders).as_deref(), Some("busy_function"), "it is another one");
    assert_eq!(names(&[]), None);
    // Too deep: it is not found, and that something was left out can be told.
    let deep = kept.path().join("1/2/3/4");
    std::fs::create_dir_all(&deep).unwrap();
    let mut symbols = Symbols::new().with_copies(folders.to_vec());
    assert!(!symbols.is_there("/no/such/file", &[7; 20]));
    assert_eq!(symbols.skipped_copies(), 1);
    std::fs::remove_dir_all(kept.path().join("1")).unwrap();
    // Debug information alone is enough, where debuggers look for it.
    let hex: Vec<String> = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = kept.path().join(".build-id").join(&hex[0]);
    std::fs::create_dir_all(&folder).unwrap();
    let apart = folder.join(format!("{}.debug", hex[1..].concat())).display().to_string();
    run("objcopy", &["--only-keep-debug", "monday/saved.old", &apart], kept.path());
    std::fs::remove_dir_all(kept.path().join("monday")).unwrap();
    assert_eq!(names(&folders).as_deref(), Some("busy_function"), "debug file");
    let mut symbols = Symbols::with_debug_roots(folders.to_vec());
    let frame = symbols.frames(&built.program(), &id, at).pop().unwrap();
    assert!((5..=7).contains(&frame.line.unwrap()), "{frame:?}");
}

/// A function with a part that lies elsewhere, and a call through a stub.
const PARTS: &str = "\
#include <stdlib.h>
volatile long sink, rarely = 7;
__attribute__((cold, noinline)) void rare(long n) { sink += n; }
__attribute__((noinline)) long divided(long a, long b, long c) {
    long x = lrand48(), y = lrand48();
    if (a % rarely == 0) { rare(a + x); sink++; }
    return sink + x * b + y * c;
}
int main(int argc, char **argv) { (void)argv; return (int)divided(argc, argc + 1, argc + 2); }
";

#[test]
fn pieces_of_code_are_told_apart() {
    use sonde_symbol::PieceKind;
    let built = Built::of(PARTS, &["-O2"]);
    let pieces = Symbols::new().pieces(&built.program(), &[]);
    assert!(pieces.windows(2).all(|w| w[0].end <= w[1].start && w[0].start < w[0].end), "{pieces:x?}");
    let at = |address: u64| pieces.iter().find(|p| p.start == address).copied().expect("a piece");
    let (whole, part) = (at(built.address("divided")), at(built.address("divided.cold")));
    assert_eq!((whole.kind, part.kind, part.function), (PieceKind::Function, PieceKind::Part, whole.start));
    assert_eq!(at(built.address("_start")).kind, PieceKind::Start);
    assert!(pieces.iter().any(|p| p.kind == PieceKind::Stub));

    // Without symbols: the part begins with a stack frame made already, which its function has not.
    run("strip", &["program"], built.folder.path());
    let stripped = Symbols::new().pieces(&built.program(), &[]);
    let kind = |address: u64| stripped.iter().find(|p| p.start == address).expect("a piece").kind;
    assert_eq!((kind(whole.start), kind(part.start)), (PieceKind::Unnamed, PieceKind::Part));
    let start = pieces.iter().find(|p| p.kind == PieceKind::Start).expect("a beginning");
    assert_eq!(kind(start.start), PieceKind::Start);
    assert!(stripped.iter().any(|p| p.kind == PieceKind::Stub));
    assert!(Symbols::new().pieces("/no/such/file", &[]).is_empty());
}
