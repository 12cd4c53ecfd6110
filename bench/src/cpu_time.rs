//! CPU time of one run with all its descendants.
//!
//! CPU time, not wall time: the machines that we measure on are shared. The system adds it up for children that have been
//! waited for, so one measurement at a time and no other children meanwhile.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use sonde_harness::process::{self, Ending, Job};

/// User and system time that the job took, its descendants included, and what its observer wrote. It must end with status 0.
pub fn of(job: &Job) -> Result<(Duration, Vec<u8>)> {
    let before = children()?;
    let outcome = process::run(&Job { discard: true, ..job.clone() })?;
    let spent = children()? - before;
    let complaint = || {
        format!(
            "{}: {}\n{}",
            process::shell_line(job),
            outcome.ending,
            String::from_utf8_lossy(&outcome.stderr)
        )
    };
    ensure!(outcome.ending == Ending::Exit(0), complaint());
    Ok((spent, outcome.summary))
}

fn children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    let micros = |t: nix::sys::time::TimeVal| (t.tv_sec() * 1_000_000 + t.tv_usec()).unsigned_abs();
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

/// For tests that start programs: they run beside each other in one process, and all its children count.
#[cfg(test)]
pub fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Job {
        let command = ["sh", "-c", line].map(Into::into).to_vec();
        let limit = Duration::from_secs(60);
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

    #[test]
    fn work_of_grandchildren_counts_and_sleep_does_not() {
        let _alone = alone();
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let once = of(&shell(work)).unwrap().0;
        let thrice = of(&shell(&format!("sh -c '{work}'; sh -c '{work}'; {work}"))).unwrap().0;
        let asleep = of(&shell("sleep 0.3")).unwrap().0;
        assert!(thrice > once * 3 / 2, "{thrice:?} {once:?}");
        assert!(asleep < once, "{asleep:?} {once:?}");
    }

    #[test]
    fn a_failing_program_is_an_error_that_shows_what_it_said() {
        let _alone = alone();
        let error = of(&shell("echo why >&2; exit 3")).unwrap_err().to_string();
        assert!(error.contains("exit status 3") && error.contains("why"), "{error}");
    }
}
