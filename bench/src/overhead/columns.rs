//! The columns of the overhead table: in which ways each workload is run.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use sonde_harness::process::{self, Job};
use sonde_harness::support::Sonde;
use sonde_harness::trial::{self, Subject};

/// Columns that are run side by side on one input, each against a native run of the same round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Close to native: long inputs, many rounds.
    Light,
    /// Several times native: shorter inputs.
    Heavy,
    /// Thousands of times native: very short inputs, once.
    Lackey,
}

/// One way of running.
#[derive(Clone, Debug)]
pub struct Column {
    /// The head of the column.
    pub title: &'static str,
    /// Beside which others.
    pub group: Group,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Sonde(&'static [&'static str]),
    Valgrind(&'static [&'static str]),
}

const fn sonde(title: &'static str, group: Group, options: &'static [&'static str]) -> Column {
    Column { title, group, how: How::Sonde(options) }
}

const TRIGGER_ONLY: &str = "trigger only";
/// What the trigger costs is below the noise of most machines at the default period: ten times as often it is not.
const TRIGGER_TEN: &str = "trigger only, 10 times as often";

/// What a profile can hold that is made by trees or of calls: loops, values by load and streams are apart.
const TREES: &str =
    "code,loads,stores,load-values,dl1-miss-values,dl2-miss-values,narrow,zero-loads,edges,code-data,calls";

const COLUMNS: [Column; 11] = [
    sonde(TRIGGER_ONLY, Group::Light, &["--burst", "0"]),
    sonde(TRIGGER_TEN, Group::Light, &["--burst", "0", "--period", "2ms"]),
    sonde("default", Group::Light, &[]),
    sonde("default, all trees and calls", Group::Light, &["--what", TREES]),
    sonde("1 %", Group::Light, &["--rate", "1%"]),
    sonde("5 %", Group::Light, &["--rate", "5%"]),
    sonde("always, blocks", Group::Heavy, &["--policy", "always", "--record", "blocks"]),
    sonde("always, + addresses", Group::Heavy, &["--policy", "always", "--record", "addresses"]),
    sonde("always, + values", Group::Heavy, &["--policy", "always", "--record", "values"]),
    Column { title: "valgrind none", group: Group::Heavy, how: How::Valgrind(&["-q", "--tool=none"]) },
    Column {
        title: "lackey trace-mem",
        group: Group::Lackey,
        how: How::Valgrind(&["--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null"]),
    },
];

/// All columns that this sonde can fill; and the titles of those that it cannot.
pub fn possible(known: &Sonde) -> (Vec<Column>, Vec<&'static str>) {
    let (can, cannot): (Vec<Column>, Vec<Column>) = COLUMNS.into_iter().partition(|c| c.is_possible(known));
    (can, cannot.into_iter().map(|c| c.title).collect())
}

impl Column {
    fn is_possible(&self, known: &Sonde) -> bool {
        match self.how {
            How::Valgrind(_) => true,
            How::Sonde(options) => options.chunks(2).all(|pair| match pair {
                ["--burst" | "--rate" | "--period" | "--what", _] => known.accepts(pair[0], ""),
                [option, value] => known.accepts(option, value),
                _ => false,
            }),
        }
    }

    /// The job of this column. Exhaustive runs throw away what they recorded, where sonde has a way to: the cost of recording
    /// is asked for, not that of whoever reads.
    pub fn job(&self, subject: &Subject, known: &Sonde) -> Job {
        match self.how {
            How::Sonde(options) => {
                let mut options: Vec<String> = options.iter().map(|o| (*o).into()).collect();
                if self.group == Group::Heavy {
                    options.extend(known.accepts("--discard", "").then(|| "--discard".into()));
                }
                if !known.accepts("--json", "") {
                    return subject.observed_job(known, &options);
                }
                options.push(format!("--json={}", trial::SUMMARY));
                Job { summary: Some(trial::SUMMARY.into()), ..subject.observed_job(known, &options) }
            }
            How::Valgrind(options) => {
                let words = ["valgrind"].iter().chain(options).map(OsString::from);
                Job {
                    command: words.chain(subject.job.command.iter().cloned()).collect(),
                    ..subject.job.clone()
                }
            }
        }
    }

    /// Complains about a run that cost little because nothing was recorded.
    pub fn check(&self, job: &Job, summary: &[u8]) -> Result<()> {
        let asked = job.summary.is_some() && ![TRIGGER_ONLY, TRIGGER_TEN].contains(&self.title);
        ensure!(
            !asked || trial::log_bytes(summary) > Some(0),
            "{}: recorded nothing",
            process::shell_line(job)
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn columns_follow_what_sonde_accepts() {
        let none = Sonde::described(Path::new("sonde"), Some(""), None);
        let (can, cannot) = possible(&none);
        assert_eq!(
            can.iter().map(|c| c.title).collect::<Vec<_>>(),
            ["default", "valgrind none", "lackey trace-mem"]
        );
        assert_eq!(cannot.len(), 8);
        let full = Sonde::described(
            Path::new("sonde"),
            Some(
                " --burst N\n --period T\n --rate R\n --what LIST\n --policy always\n --record blocks addresses values\n",
            ),
            None,
        );
        assert!(possible(&full).1.is_empty());
    }
}
