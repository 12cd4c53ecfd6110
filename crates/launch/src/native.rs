//! Runs of a program by itself, to compare with.

use crate::children;
use crate::error::{LaunchError, own};
use crate::program::Program;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(1);

impl Program {
    /// Runs it without a probe, and gives its CPU time, measured as that of recorded runs is.
    pub fn run_natively(&self) -> Result<Duration, LaunchError> {
        let mut command = Command::new(&self.path);
        if let Some((name, rest)) = self.args.split_first() {
            command.arg0(name).args(rest);
        }
        let child = command.spawn().map_err(|error| LaunchError::Exec { path: self.path.clone(), error })?;
        let pid = child.id() as i32;
        loop {
            if let Some((_, true)) = children::next_report(pid, 0) {
                let ended = children::take_end(pid).ok_or_else(|| own("waiting for the program"))?;
                return Ok(ended.own);
            }
            std::thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_with_work() {
        let time = |rounds: u32| {
            let script = format!("i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); done");
            let args = ["-c".into(), script.into()];
            Program::find("sh".as_ref(), &args).unwrap().run_natively().unwrap()
        };
        assert!(time(400_000) > 2 * time(10));
    }
}
