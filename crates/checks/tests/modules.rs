//! Real files: what is known of a program by construction, and that no cycle of real libraries is without a check.

use std::path::Path;
use std::process::Command;

use sonde_checks::{Module, Plan, Scheme};

const SOURCE: &str = "\
#include <stdio.h>
static volatile int sink;
__attribute__((noinline)) static void leaf(int n) { sink += n; }
__attribute__((noinline)) static void middle(int n) { leaf(n); leaf(n + 1); sink++; }
__attribute__((noinline)) static void even(int n);
__attribute__((noinline)) static void odd(int n) { if (n) even(n - 1); sink++; }
__attribute__((noinline)) static void even(int n) { if (n) odd(n - 1); sink++; }
__attribute__((noinline)) static void through_pointer(int n) { leaf(n); sink++; }
void (*volatile pointer)(int) = through_pointer;
__attribute__((noinline)) static long copy(char *to, const char *from) {
    long n = 0;
    while ((to[n] = from[n])) n++;
    return n;
}
int main(int argc, char **argv) {
    char name[4096];
    copy(name, argv[0]);
    for (int i = 0; i < 1000; i++) middle(i);
    even(argc);
    pointer(argc);
    return puts(name) < 0;
}
";

/// The module, and where its functions are.
fn built() -> (Module, impl Fn(&str) -> usize) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.c"), SOURCE).unwrap();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(
        "cc",
        &["-O1", "-fno-optimize-sibling-calls", "-fno-ipa-cp", "-fno-partial-inlining", "-o", "a", "a.c"],
    );
    let table = run("nm", &["a"]);
    let module = Module::open(&folder.path().join("a")).unwrap();
    let starts = module.starts.clone();
    let number = move |name: &str| {
        let line = table.lines().find(|l| l.split(' ').nth(2) == Some(name)).unwrap();
        let at = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        starts.binary_search(&at).unwrap()
    };
    (module, number)
}

#[test]
fn entries_of_a_known_program() {
    let (module, number) = built();
    let graph = &module.graph;
    assert!(graph.is_leaf(number("leaf")));
    assert!(graph.functions[number("middle")].calls.contains(&number("leaf")));
    assert!(graph.functions[number("through_pointer")].address_taken);
    let checked = graph.checked();
    assert!(!checked[number("leaf")] && !checked[number("middle")]);
    assert!(checked[number("even")] || checked[number("odd")], "mutual recursion");
    assert!(checked[number("through_pointer")] && checked[number("main")]);
    assert_eq!(graph.unchecked_cycle(&checked), None);
    let none = vec![false; checked.len()];
    assert!(graph.unchecked_cycle(&none).is_some(), "the test can fail");
}

#[test]
fn loops_of_a_known_program() {
    let (module, number) = built();
    let in_function = |name: &str| {
        let f = number(name);
        let its = |l: &&sonde_checks::Loop| module.function(l.branch) == Some(f);
        module.loops.iter().filter(its).copied().collect::<Vec<_>>()
    };
    let copy = in_function("copy");
    assert_eq!(copy.len(), 1);
    assert!(copy[0].is_boring(4), "{copy:?}");
    let main = in_function("main");
    assert!(!main.is_empty() && main.iter().all(|l| !l.is_boring(1000)), "it calls");
}

#[test]
fn schemes_leave_out_more_and_more() {
    let (module, _) = built();
    let unchecked = |name: &str| Plan::new(&module, name.parse().unwrap()).unchecked.len();
    assert_eq!(unchecked("orig"), 0);
    assert!(unchecked("EL") > 0 && unchecked("EL") < unchecked("EC") && unchecked("EC") < unchecked("EN"));
    assert!(unchecked("L4") > 0 && unchecked("L4") <= unchecked("L10") && unchecked("L10") < unchecked("LN"));
    assert_eq!(unchecked("EC+L4"), unchecked("EC") + unchecked("L4"));
    assert!("E5".parse::<Scheme>().is_err());
}

/// The whole graph of what every program runs: the C library and the loader, found by asking this process.
#[test]
fn no_cycle_of_real_libraries_is_without_a_check() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut files: Vec<&str> = maps.lines().filter_map(|l| l.split_whitespace().nth(5)).collect();
    files.retain(|f| f.starts_with('/') && f.contains(".so"));
    files.sort_unstable();
    files.dedup();
    assert!(!files.is_empty());
    for file in files {
        let module = Module::open(Path::new(file)).unwrap();
        let checked = module.graph.checked();
        assert_eq!(module.graph.unchecked_cycle(&checked), None, "{file}");
        let kept = checked.iter().filter(|c| **c).count();
        assert!(kept * 4 < module.starts.len() * 3, "{file}: {kept} of {} functions", module.starts.len());
        assert!(
            module.not_code * 10 < module.instructions * 4,
            "{file}: {} bytes not understood",
            module.not_code
        );
    }
}

#[test]
fn nonsense_is_refused_or_survived() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let path = folder.path().join("file");
    for bytes in [Vec::new(), b"text".to_vec(), own[..own.len() / 2].to_vec()] {
        std::fs::write(&path, bytes).unwrap();
        let _ = Module::open(&path);
    }
    assert!(Module::open(&folder.path().join("none")).is_err());
}
