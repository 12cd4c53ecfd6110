//! One subject, natively and observed: what the tests and the stress command both do, with a failure that can be repeated.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::compile;
use crate::manifest::{Program, Sees};
use crate::process::{self, Ending, Job, Outcome};
use crate::settings::Mode;
use crate::support::Sonde;
use crate::verdict;

/// A program with all it needs to run: a hostile one or a workload.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name in reports.
    pub name: String,
    /// How it runs natively.
    pub job: Job,
    /// How it must end natively.
    pub ending: Ending,
    /// What it looks at that some modes cannot hide.
    pub sees: Sees,
}

/// The file in which sonde says what it did, in the folder of the run.
pub const SUMMARY: &str = "sonde-summary.json";

/// Instructions recorded according to a summary; `None` when it does not say.
pub fn instructions(summary: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(summary).ok()?.get("instructions")?.as_u64()
}

/// Bytes of log that were handed over according to a summary; `None` when it does not say.
pub fn log_bytes(summary: &[u8]) -> Option<u64> {
    serde_json::from_slice::<serde_json::Value>(summary).ok()?.get("log_bytes")?.as_u64()
}

/// CPU seconds of the program itself and the children it waited for, according to a summary; `None` when it does not say.
pub fn program_seconds(summary: &[u8]) -> Option<f64> {
    let summary = serde_json::from_slice::<serde_json::Value>(summary).ok()?;
    let children = summary.get("children_cpu_seconds").and_then(serde_json::Value::as_f64).unwrap_or(0.0);
    Some(summary.get("cpu_seconds")?.as_f64()? + children)
}

/// A run that was not what it should have been.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which subject.
    pub subject: String,
    /// `native` or the name of the mode.
    pub mode: String,
    /// The command, for a shell.
    pub command: String,
    /// What was wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}\n  repeat: {}",
            self.subject,
            self.mode,
            self.what.replace('\n', "\n  "),
            self.command
        )
    }
}

impl Subject {
    /// A hostile program that [`compile::build`] put into `folder`; `None` for libraries.
    pub fn hostile(program: &Program, folder: &Path, limit: Duration) -> Option<Self> {
        let mut command: Vec<OsString> = vec![compile::path(program, folder).into()];
        command.extend(program.arguments.iter().map(OsString::from));
        let stdin =
            (1..=program.stdin_lines).flat_map(|i| format!("line {i} of the input\n").into_bytes()).collect();
        let environment =
            std::env::var("SONDE_WORK").ok().map(|work| ("SONDE_WORK".into(), work)).into_iter().collect();
        let job = Job {
            command,
            stdin,
            merge: program.merge,
            environment,
            discard: false,
            result: None,
            summary: None,
            limit,
        };
        Some(Self { name: program.name.clone(), job, ending: program.ending?, sees: program.sees })
    }

    /// The same program with its amount of work in percent; the output is another one then.
    pub fn with_work(&self, percent: u32) -> Self {
        let mut subject = self.clone();
        subject.job.environment.retain(|(name, _)| name != "SONDE_WORK");
        subject.job.environment.push(("SONDE_WORK".into(), percent.to_string()));
        subject
    }

    /// The same program, told how many microseconds to let pass between two signals, which changes no output.
    pub fn with_signals(&self, apart: u64) -> Self {
        let mut subject = self.clone();
        subject.job.environment.push(("SONDE_SIGNALS".into(), apart.to_string()));
        subject
    }

    /// Runs natively; the outcome is what every observed run is compared with.
    pub fn native(&self) -> Result<Outcome, Failure> {
        let outcome =
            process::run(&self.job).map_err(|e| self.failure("native", &self.job, e.to_string()))?;
        if outcome.ending == self.ending {
            return Ok(outcome);
        }
        let printed = String::from_utf8_lossy(&outcome.stdout).chars().take(400).collect::<String>();
        let what = format!("{} instead of {}; it printed: {printed}", outcome.ending, self.ending);
        Err(self.failure("native", &self.job, what))
    }

    /// Runs under `sonde run` and compares. Gives the number of instructions that sonde says it recorded, where it can say.
    pub fn observed(
        &self,
        native: &Outcome,
        sonde: &Sonde,
        mode: Mode,
        options: &[String],
    ) -> Result<Option<u64>, Failure> {
        if !mode.is_hidden_from(self.sees) {
            return Ok(None);
        }
        let tells = sonde.accepts("--json", "");
        let mut options = options.to_vec();
        options.extend(tells.then(|| format!("--json={SUMMARY}")));
        let job = Job { summary: tells.then(|| SUMMARY.into()), ..self.observed_job(sonde, &options) };
        let failure = |what: String| self.failure(&mode.to_string(), &job, what);
        let outcome = process::run(&job).map_err(|e| failure(e.to_string()))?;
        if let Some(what) = verdict::difference(native, &outcome) {
            return Err(failure(what));
        }
        if !tells {
            return Ok(None);
        }
        // A run that nobody observed is always the native one: that must not pass for transparency.
        match instructions(&outcome.summary) {
            None => Err(failure("no summary with a number of instructions was written".into())),
            // With few checks, a short program may not pass enough of them for a burst.
            Some(0) if mode.records_always() && !options.iter().any(|o| o == "--checks") => {
                Err(failure("recorded nothing".into()))
            }
            some => Ok(some),
        }
    }

    /// The job with `sonde run` in front.
    pub fn observed_job(&self, sonde: &Sonde, options: &[String]) -> Job {
        let mut command: Vec<OsString> = vec![sonde.path.clone().into(), "run".into()];
        command.extend(options.iter().map(OsString::from));
        command.extend(["--quiet".into(), "--".into()]);
        command.extend(self.job.command.iter().cloned());
        Job { command, ..self.job.clone() }
    }

    fn failure(&self, mode: &str, job: &Job, what: String) -> Failure {
        Failure { subject: self.name.clone(), mode: mode.into(), command: process::shell_line(job), what }
    }
}
