//! Runs the built `sonde` with any subcommand, in a folder of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use sonde_harness::leftovers::Folder;
use sonde_harness::start::with_default_signals;

/// A folder for one test, with text to work on. No process that was started in it outlives it.
pub struct Bench {
    folder: Folder,
}

/// What a run left behind.
pub struct Done {
    pub status: Option<i32>,
    pub signal: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Done {
    fn new(output: Output) -> Done {
        Done {
            status: output.status.code(),
            signal: output.status.signal(),
            out: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// It must have ended well.
    pub fn good(self) -> Done {
        assert_eq!(self.status, Some(0), "{}{}", self.text(), self.err);
        self
    }
}

impl Bench {
    pub fn new() -> Bench {
        let bench = Bench { folder: Folder::new().unwrap() };
        // Recording everything of a run over all lines would take too long without optimization.
        for (name, count) in [("lines", 60_000u32), ("few", 4_000)] {
            let lines: String = (0..count).map(|i| format!("{}\n", i.wrapping_mul(2_654_435_761))).collect();
            std::fs::write(bench.path(name), lines).unwrap();
        }
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in this folder, with default signals whoever runs the tests.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        with_default_signals(&mut command);
        command
    }

    /// `sonde ARGS`.
    pub fn sonde(&self, args: &[&str]) -> Done {
        Done::new(self.command(env!("CARGO_BIN_EXE_sonde"), args).output().unwrap())
    }

    /// The same program without sonde.
    pub fn native(&self, args: &[&str]) -> Done {
        Done::new(self.command(args[0], &args[1..]).output().unwrap())
    }

    /// `sonde run OPTIONS --json=report --quiet -- PROGRAM`, and its report.
    pub fn report(&self, options: &[&str], program: &[&str]) -> (Done, serde_json::Value) {
        let args = [&["run", "--quiet", "--json=report"], options, &["--"], program].concat();
        let done = self.sonde(&args);
        let text = std::fs::read_to_string(self.path("report")).unwrap_or_else(|_| panic!("{}", done.err));
        (done, serde_json::from_str(&text).unwrap())
    }

    /// A C program, compiled here.
    pub fn compile(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let (file, program) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).unwrap();
        let status = Command::new("cc").args(options).arg("-o").arg(&program).arg(&file).status().unwrap();
        assert!(status.success());
        program
    }
}

/// Whether this machine lets us use perf events.
pub fn perf_is_allowed(bench: &Bench) -> bool {
    bench.sonde(&["run", "--quiet", "--trigger", "perf", "--", "true"]).status == Some(0)
}

/// Writes a script.
pub fn script(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
