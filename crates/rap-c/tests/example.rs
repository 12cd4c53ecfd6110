//! The example C program, compiled against the static and the shared library, says what is committed beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo has put the libraries of this very build: beside the test program.
fn libraries() -> PathBuf {
    let program = std::env::current_exe().expect("a test program knows where it is");
    program.parent().expect("it lies in a folder").to_path_buf()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    output
}

fn compile_and_run(name: &str, link: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    let program = folder.join("rap");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-o"]).arg(&program);
    compiler.arg(root.join("examples/rap.c")).arg("-I").arg(root.join("include"));
    run(compiler.args(link));
    let output = run(Command::new(&program).current_dir(&folder).env("LD_LIBRARY_PATH", libraries()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), include_str!("../examples/rap.expected"), "{name}");
    let dump = std::fs::read_to_string(folder.join("rap-profiles.txt")).expect("rap_finalize has written it");
    let (code, values) = dump.split_once("# profile 1\n").expect("there are two profiles");
    assert!(code.starts_with("# profile 0\n# rap-dump version=1 "), "{dump}");
    assert!(code.contains("events=10000 ") && values.contains("events=1000 "), "{dump}");
}

#[test]
fn the_example_runs_with_the_static_library() {
    let library = libraries().join("libsonde_rap_c.a");
    compile_and_run("static", &[&library.to_string_lossy(), "-lpthread", "-ldl", "-lm"]);
}

#[test]
fn the_example_runs_with_the_shared_library() {
    compile_and_run("shared", &["-L", &libraries().to_string_lossy(), "-Wl,-Bdynamic", "-lsonde_rap_c"]);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("shared/rap");
    let output = run(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", libraries()));
    assert!(String::from_utf8_lossy(&output.stdout).contains("libsonde_rap_c.so"), "it is the shared one");
}
