//! Finds out what the `sonde` at hand can do, from its own help: tests run with every mode that exists, no list of ours goes stale.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The `sonde` at hand with the help of its commands.
#[derive(Clone, Debug)]
pub struct Sonde {
    /// The executable.
    pub path: PathBuf,
    run_help: Option<String>,
    trace_help: Option<String>,
    refused: Vec<String>,
}

impl Sonde {
    /// Asks the executable. A command that it does not know is not an error: it is then not used.
    pub fn probe(path: &Path) -> Self {
        let mut sonde = Self {
            path: path.into(),
            run_help: help(path, "run"),
            trace_help: help(path, "trace"),
            refused: Vec::new(),
        };
        if sonde.accepts("--trigger", "perf") && !sonde.starts(&["--trigger", "perf"]) {
            sonde.refused.push("--trigger perf: this machine does not allow it".into());
        }
        if sonde.accepts("--in-place", "") && !sonde.starts(&["--policy", "counter", "--in-place"]) {
            sonde.refused.push("--in-place needs userfaultfd, which this machine does not allow".into());
        }
        sonde
    }

    /// A `sonde` described by its help texts.
    pub fn described(path: &Path, run_help: Option<&str>, trace_help: Option<&str>) -> Self {
        let owned = |text: Option<&str>| text.map(String::from);
        Self {
            path: path.into(),
            run_help: owned(run_help),
            trace_help: owned(trace_help),
            refused: Vec::new(),
        }
    }

    /// Whether there is `sonde run`.
    pub fn runs(&self) -> bool {
        self.run_help.is_some()
    }

    /// Whether there is `sonde trace` with `record` and `check`.
    pub fn traces(&self) -> bool {
        self.trace_help.as_ref().is_some_and(|h| has_word(h, "record") && has_word(h, "check"))
    }

    /// Whether `sonde run` knows the option and the value of it; an empty value asks for the option only.
    pub fn accepts(&self, option: &str, value: &str) -> bool {
        let Some(part) = self.run_help.as_deref().and_then(|h| option_help(h, option)) else { return false };
        value.is_empty() || has_word(&part, value)
    }

    /// Like [`Sonde::accepts`], and this machine allows it.
    pub fn offers(&self, option: &str, value: &str) -> bool {
        let refused = self.refused.iter().any(|r| r.starts_with(&format!("{option} {value}")));
        self.accepts(option, value) && !refused
    }

    /// What exists but cannot be used here, one sentence each.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    fn starts(&self, options: &[&str]) -> bool {
        let status =
            Command::new(&self.path).arg("run").args(options).args(["--quiet", "--", "true"]).output();
        status.is_ok_and(|o| o.status.success())
    }
}

fn help(path: &Path, command: &str) -> Option<String> {
    let output = Command::new(path).args([command, "--help"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The lines that describe an option: from the line that begins with it to the next line that begins with a dash.
fn option_help(help: &str, option: &str) -> Option<String> {
    let begins = |line: &str| line.trim_start().starts_with('-');
    let names = |line: &str| begins(line) && line.split([' ', ',', '=', '[', '<']).any(|w| w == option);
    let mut lines = help.lines().skip_while(|l| !names(l));
    let first = lines.next()?;
    let rest = lines.take_while(|l| !begins(l) || l.trim_start().starts_with("- "));
    Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n"))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|w| w == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Run a program\n\nUsage: sonde run [OPTIONS] -- <PROG>...\n\nOptions:\n      --policy <P>     When to record [possible values: bursts, always]\n      --trigger <T>\n          What begins a burst\n\n          Possible values:\n          - auto:  the best\n          - timer: CPU time\n  -o, --output <FILE>  Where to\n      --json[=<FILE>]  always as JSON\n";

    #[test]
    fn options_and_values_are_found_in_their_own_place() {
        let sonde = Sonde::described(Path::new("sonde"), Some(HELP), None);
        assert!(sonde.runs() && !sonde.traces());
        assert!(sonde.accepts("--policy", "always") && sonde.accepts("--policy", "bursts"));
        assert!(!sonde.accepts("--policy", "counter") && !sonde.accepts("--trigger", "always"));
        assert!(sonde.accepts("--trigger", "timer") && !sonde.accepts("--trigger", "perf"));
        assert!(sonde.accepts("-o", "") && sonde.accepts("--json", "") && !sonde.accepts("--follow", ""));
    }

    #[test]
    fn a_program_without_the_command_runs_nothing() {
        let sonde = Sonde::probe(Path::new("/bin/false"));
        assert!(!sonde.runs() && !sonde.traces() && sonde.refused().is_empty());
    }
}
