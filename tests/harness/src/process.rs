//! Runs one program to its end or to its time limit, with its outputs in files.
//!
//! Files, not pipes: a descendant that lives on would hold a pipe open and keep the reader waiting for it.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::leftovers::Folder;
use crate::start::with_default_signals;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed because it ran longer than the limit.
    TimedOut,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::TimedOut => f.write_str("killed at the time limit"),
        }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Program and arguments, as `execvp` takes them.
    pub command: Vec<OsString>,
    /// What the program reads.
    pub stdin: Vec<u8>,
    /// Both outputs into one file.
    pub merge: bool,
    /// Variables on top of the fixed small environment.
    pub environment: Vec<(String, String)>,
    /// Standard output goes nowhere; for measuring.
    pub discard: bool,
    /// A file that the program writes in its folder, part of the result.
    pub result: Option<String>,
    /// A file in its folder that is read but is no part of the result: what an observer says of itself.
    pub summary: Option<String>,
    /// When to kill it.
    pub limit: Duration,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Standard output (and error, when merged).
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The file that it wrote; empty when there is none.
    pub result: Vec<u8>,
    /// What its observer wrote; empty when there is none.
    pub summary: Vec<u8>,
}

/// The environment is the same for every run, whoever runs the tests: outputs that show it stay comparable.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/games"),
    ("LANG", "C"),
    ("HOME", "/nonexistent"),
    ("TMPDIR", "/tmp"),
];

/// Runs the job in a scratch folder that is removed afterwards, with every process that is still in it. An error means that it could not be started, not that the program failed.
pub fn run(job: &Job) -> io::Result<Outcome> {
    let files = Folder::new()?;
    let scratch = files.path().join("run");
    fs::create_dir(&scratch)?;
    let (out, err, input) = (files.path().join("out"), files.path().join("err"), files.path().join("in"));
    fs::write(&input, &job.stdin)?;
    let mut child = command(job)
        .current_dir(&scratch)
        .stdin(File::open(&input)?)
        .stdout(if job.discard { Stdio::null() } else { appending(&out)?.into() })
        .stderr(appending(if job.merge { &out } else { &err })?)
        .spawn()
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", job.command[0].display())))?;
    let ending = wait(&mut child, job.limit)?;
    let read = |path: &Path| if path.exists() { fs::read(path) } else { Ok(Vec::new()) };
    let named = |name: &Option<String>| name.as_ref().map_or(Ok(Vec::new()), |n| read(&scratch.join(n)));
    let (result, summary) = (named(&job.result)?, named(&job.summary)?);
    Ok(Outcome { ending, stdout: read(&out)?, stderr: read(&err)?, result, summary })
}

/// The command with its environment, default signals and a process group of its own, not started.
pub fn command(job: &Job) -> Command {
    let mut command = Command::new(&job.command[0]);
    command.args(&job.command[1..]).env_clear().envs(ENVIRONMENT).envs(job.environment.iter().cloned());
    command.stdin(Stdio::null()).process_group(0);
    with_default_signals(&mut command);
    command
}

fn appending(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Waits by asking now and then: short at first, so that short programs are not slowed down.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Ending> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ending(status));
        }
        if begin.elapsed() > limit {
            kill_group(child);
            child.wait()?;
            return Ok(Ending::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// The whole group: under sonde the program is a child of what we started.
fn kill_group(child: &mut Child) {
    // It may be gone in the meantime, which is as good.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    let _ = child.kill();
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::TimedOut,
    }
}

/// The command as a line for a shell, to repeat a run by hand.
pub fn shell_line(job: &Job) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:%,+@".contains(c);
    let quote = |word: &str| {
        if !word.is_empty() && word.chars().all(plain) {
            word.to_string()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    let variables = job.environment.iter().map(|(k, v)| format!("{k}={}", quote(v)));
    let words = variables.chain(job.command.iter().map(|w| quote(&w.to_string_lossy())));
    let line = words.collect::<Vec<_>>().join(" ");
    if job.stdin.is_empty() { line } else { format!("{line} # {} bytes on standard input", job.stdin.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, limit: Duration) -> Job {
        let command = ["sh", "-c", line].map(OsString::from).to_vec();
        Job {
            command,
            stdin: b"one\ntwo\n".to_vec(),
            merge: false,
            environment: Vec::new(),
            discard: false,
            result: None,
            summary: None,
            limit,
        }
    }

    #[test]
    fn outputs_input_and_endings_come_back() {
        let long = Duration::from_secs(60);
        let outcome = run(&shell("cat; echo no >&2; exit 5", long)).unwrap();
        assert_eq!(
            (outcome.ending, &outcome.stdout[..], &outcome.stderr[..]),
            (Ending::Exit(5), &b"one\ntwo\n"[..], &b"no\n"[..])
        );
        assert_eq!(run(&shell("kill -9 $$", long)).unwrap().ending, Ending::Signal(9));
        let merged = Job { merge: true, ..shell("echo 1; echo 2 >&2; echo 3", long) };
        assert_eq!(run(&merged).unwrap().stdout, b"1\n2\n3\n");
    }

    #[test]
    fn the_limit_kills_descendants_too() {
        let begin = Instant::now();
        let outcome = run(&shell("echo before; sleep 100 & sleep 100", Duration::from_millis(200))).unwrap();
        assert_eq!((outcome.ending, &outcome.stdout[..]), (Ending::TimedOut, &b"before\n"[..]));
        assert!(begin.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_missing_program_is_named() {
        let job = Job { command: vec!["/no/such/program".into()], ..shell("", Duration::from_secs(1)) };
        assert!(run(&job).unwrap_err().to_string().contains("/no/such/program"));
    }

    #[test]
    fn a_written_file_is_part_of_the_outcome() {
        let job = Job { result: Some("o".into()), ..shell("echo kept > o", Duration::from_secs(60)) };
        assert_eq!(run(&job).unwrap().result, b"kept\n");
        let none = Job { result: Some("o".into()), ..shell("true", Duration::from_secs(60)) };
        assert!(run(&none).unwrap().result.is_empty());
    }

    #[test]
    fn shell_lines_are_quoted() {
        let job =
            Job { command: vec!["a b".into(), "it's".into(), "--x=1%".into()], ..shell("", Duration::ZERO) };
        assert_eq!(shell_line(&job), r"'a b' 'it'\''s' --x=1% # 8 bytes on standard input");
    }
}
