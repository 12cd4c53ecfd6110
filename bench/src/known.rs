//! Programs of our own whose shares are known, compiled where they are needed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sonde_harness::process::Job;

const FILES: [(&str, &str); 5] = [
    ("truth.h", include_str!("../programs/truth.h")),
    ("turns.c", include_str!("../programs/turns.c")),
    ("calls.c", include_str!("../programs/calls.c")),
    ("faults.c", include_str!("../programs/faults.c")),
    ("memory_bound.c", include_str!("../programs/memory_bound.c")),
];

/// Who knows the shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// The program, which writes them into the file that is its last argument.
    Itself,
    /// Perf: it can be asked for these functions.
    Perf(&'static [&'static str]),
}

/// A program.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name in tables.
    pub name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// Who knows.
    pub knows: Knows,
}

const fn known(name: &'static str, program: &'static str, arguments: &'static [&'static str]) -> Known {
    Known { name, program, arguments, knows: Knows::Itself }
}

/// Those that error bars are tried on: turns of about a microsecond, of thirty, of milliseconds; page faults; a system call
/// between two equal parts. Each takes about a second.
pub const WITH_TRUTH: [Known; 5] = [
    known("turns-1us", "turns", &["5", "600", "800000"]),
    known("turns-30us", "turns", &["150", "18000", "26000"]),
    known("turns-ms", "turns", &["7500", "900000", "520"]),
    known("system-calls", "calls", &["180000"]),
    Known { knows: Knows::Perf(&["touch", "compute"]), ..known("page-faults", "faults", &["40"]) },
];

/// Programs that wait for memory, each by turns with one that does not.
pub const MEMORY_BOUND: [Known; 5] = [
    known("chase", "memory_bound", &["chase", "30"]),
    known("fill", "memory_bound", &["fill", "60"]),
    known("scatter", "memory_bound", &["scatter", "60"]),
    known("look-up", "memory_bound", &["look-up", "60"]),
    known("columns", "memory_bound", &["columns", "60"]),
];

/// Compiles all of them into a folder.
pub fn build(folder: &Path) -> Result<()> {
    for (name, text) in FILES {
        std::fs::write(folder.join(name), text)?;
    }
    for source in FILES.map(|(name, _)| name).iter().filter(|name| name.ends_with(".c")) {
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-g", "-o", source.trim_end_matches(".c"), source]).current_dir(folder);
        ensure!(cc.status().context("no C compiler")?.success(), "{source} cannot be compiled");
    }
    Ok(())
}

impl Known {
    /// How it runs; `truth` is the file that it writes if it knows itself.
    pub fn job(&self, folder: &Path, truth: Option<&Path>, limit: Duration) -> Job {
        let mut command: Vec<OsString> = vec![folder.join(self.program).into()];
        command.extend(self.arguments.iter().map(OsString::from));
        command.extend(truth.map(|file| PathBuf::from(file).into()));
        Job {
            command,
            stdin: Vec::new(),
            merge: false,
            environment: Vec::new(),
            discard: false,
            result: None,
            summary: None,
            limit,
        }
    }
}

/// A share that is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// Section of the report.
    pub section: String,
    /// Row.
    pub name: String,
    /// Share of the time.
    pub share: f64,
}

/// What a program wrote about itself: lines of section, name and share.
pub fn truths(text: &str) -> Result<Vec<Truth>> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [section, name, share] = words[..] else { anyhow::bail!("three words expected: {line}") };
        let share: f64 = share.parse().with_context(|| format!("no share: {line}"))?;
        ensure!((0.0..=1.0).contains(&share), "no share: {line}");
        Ok(Truth { section: section.into(), name: name.into(), share })
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_the_truth_about_themselves() {
        let _alone = crate::cpu_time::alone();
        let folder = tempfile::tempdir().unwrap();
        build(folder.path()).unwrap();
        let (file, limit) = (folder.path().join("truth"), Duration::from_secs(60));
        let calls = WITH_TRUTH.iter().find(|known| known.name == "system-calls").unwrap();
        let short = Known { arguments: &["2000"], ..*calls };
        crate::shares::good(&short.job(folder.path(), Some(&file), limit)).unwrap();
        let told = truths(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let sections: Vec<&str> = told.iter().map(|truth| truth.section.as_str()).collect();
        assert_eq!(sections[..6], ["functions", "functions", "loops", "loops", "contexts", "contexts"]);
        assert!((told[0].share - 0.5).abs() < 0.1 && (told[1].share - 0.5).abs() < 0.1, "{told:?}");
        assert!(truths("functions chase").is_err() && truths("functions chase 1.5").is_err());
    }
}
