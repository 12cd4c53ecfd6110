//! The README's examples are run as they stand: every `console` block, each command after `$ `, its output compared.
//!
//! `UPDATE_README=1 cargo test -p sonde --test readme` writes the real output into the README instead.

use std::path::{Path, PathBuf};
use std::process::Command;

use sonde_harness::leftovers::Folder;
use sonde_harness::start::with_default_signals;

/// One command and the output that the README shows for it.
#[derive(Debug)]
struct Example {
    command: String,
    shown: String,
}

/// The README in pieces: text to be kept, and examples.
enum Piece {
    Text(String),
    Example(Example),
}

fn pieces(readme: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut inside = false;
    for line in readme.split_inclusive('\n') {
        let fence = line.starts_with("```");
        if fence {
            inside = line.trim_end() == "```console";
        }
        match (pieces.last_mut(), line.strip_prefix("$ ")) {
            (_, Some(command)) if inside => {
                let command = command.trim_end().to_string();
                pieces.push(Piece::Example(Example { command, shown: String::new() }));
            }
            (Some(Piece::Example(example)), _) if inside => example.shown.push_str(line),
            (Some(Piece::Text(text)), _) => text.push_str(line),
            _ => pieces.push(Piece::Text(line.to_string())),
        }
    }
    pieces
}

/// Runs a command as a reader would, with the built program in the path; standard error is shown as well.
fn run(command: &str, folder: &Path) -> String {
    let built = Path::new(env!("CARGO_BIN_EXE_sonde")).parent().unwrap();
    let path = format!("{}:{}", built.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(folder).env("PATH", path);
    let output = with_default_signals(&mut bash).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn readme_examples_show_what_really_comes_out() {
    let readme = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    let folder = Folder::new().unwrap();
    let (mut real, mut examples) = (String::new(), 0);
    for piece in pieces(&text) {
        match piece {
            Piece::Text(text) => real.push_str(&text),
            Piece::Example(example) => {
                examples += 1;
                let output = run(&example.command, folder.path());
                real.push_str(&format!("$ {}\n{output}", example.command));
            }
        }
    }
    assert!(examples > 0, "the README has no examples in console blocks");
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&readme, real).unwrap();
    } else {
        assert!(real == text, "README.md shows other output than this (UPDATE_README=1 writes it):\n{real}");
    }
}

/// The tour's program is in the repository, and what the tour says of it is so. Its figures differ from run to run.
#[test]
fn the_tour_can_be_followed() {
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/tour/walk.c");
    let folder = Folder::new().unwrap();
    let build = format!("gcc -O2 -g -fno-inline -o walk {}", source.display());
    assert_eq!(run(&build, folder.path()), "");
    let ran = run("sonde run -o walk.sonde ./walk", folder.path());
    assert!(ran.starts_with("807243594000\n"), "{ran}");
    assert!(ran.contains("walk, walk.c:14  walk+0x"), "{ran}");
    let report =
        run("sonde report walk.sonde --section functions,code,data,load-values --top 3", folder.path());
    for words in [
        "histogram.constprop.0  walk.c:",
        "walk, walk.c:14",
        "walk:.bss counts.0, 2 KiB",
        "hot values loaded",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
}
