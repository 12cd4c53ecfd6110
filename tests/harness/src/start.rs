//! Starts programs as a shell at a terminal would, whoever started the tests: under `nohup`, cron or in the background
//! some signals are ignored, children inherit that, and a program that sends itself SIGHUP then lives on.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

pub use nix::sys::signal::Signal;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, kill, signal, sigprocmask};
use nix::unistd::Pid;

/// Lets the command begin with every signal at its default and none blocked.
///
/// In the child only: the tests themselves stay deaf to what they were told to ignore.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for number in Signal::iterator().filter(|s| !matches!(s, Signal::SIGKILL | Signal::SIGSTOP)) {
            // SAFETY: no handler of ours is set, and none was: this is a child before its `execve`.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(reset) }
}

/// Sends a signal to a child that was not waited for: its number is still its own. By `kill(2)`: the program of that name is
/// not on every machine.
pub fn send(signal: Signal, child: &Child) -> std::io::Result<()> {
    Ok(kill(Pid::from_raw(child.id().cast_signed()), signal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of the signals that a program ignores when it starts like this. Not those of real-time signals, of which the C
    /// library keeps two for itself and lets nobody change them.
    fn ignored(command: &mut Command) -> u64 {
        let output = command.args(["SigIgn", "/proc/self/status"]).output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        u64::from_str_radix(line.trim_start_matches("SigIgn:").trim(), 16).unwrap() & 0x7fff_ffff
    }

    #[test]
    fn what_was_ignored_is_default_again() {
        const NAME: &str = "start::tests::what_was_ignored_is_default_again";
        if std::env::var_os("SONDE_DEAF").is_none() {
            // The test once more, as `nohup` and a shell in the background start it.
            let this = std::env::current_exe().unwrap();
            let script = "trap '' HUP INT QUIT; exec \"$@\"";
            let mut again = Command::new("sh");
            again.args(["-c", script, "sh"]).arg(this).args(["--exact", NAME]).env("SONDE_DEAF", "1");
            let output = again.output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        assert_eq!(ignored(&mut Command::new("grep")) & 0b111, 0b111, "HUP, INT and QUIT are inherited");
        assert_eq!(ignored(with_default_signals(&mut Command::new("grep"))), 0);
    }
}
