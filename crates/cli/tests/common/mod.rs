//! Runs the built `sonde` and keeps what it said.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run left behind.
pub struct Run {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The output as JSON.
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.status, 0, "{}", self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// The built program, with `rap` and these arguments.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sonde"));
    command.arg("rap").args(args);
    command
}

/// Runs `sonde rap ARGS` with `input` on standard input.
pub fn rap(args: &[&str], input: impl AsRef<[u8]>) -> Run {
    let mut command = command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    // The program may stop reading at the first error: a broken pipe here is part of such a test.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        status: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder with one file in it.
pub fn file(content: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

/// `count` lines of `number`.
pub fn lines(number: &str, count: usize) -> String {
    format!("{number}\n").repeat(count)
}
