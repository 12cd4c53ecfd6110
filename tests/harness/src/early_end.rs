//! Kills Sonde at a chosen system call of its own and looks at what becomes of the program it was starting.
//!
//! Killing after a random time mostly meets the same long moments. So Sonde's main thread, which starts the program and is its
//! tracer, is traced here, and killed at the n-th system call after the fork: every state that the kernel can see comes up, and
//! each run can be repeated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::support::Sonde;

/// The program: says when it begins and when it ends. A little work is between.
const SCRIPT: &str = r#"echo begin >"$1"; i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; echo end >>"$1""#;

/// How long processes may take to end by themselves.
const PATIENCE: Duration = Duration::from_secs(20);

/// A way to start a program.
#[derive(Clone, Debug)]
pub struct Way {
    /// For the reader.
    pub name: &'static str,
    /// Arguments of Sonde, up to the program's.
    arguments: Vec<String>,
}

/// All ways that this Sonde and this machine have.
pub fn ways(sonde: &Sonde) -> Vec<Way> {
    let runs: [(&str, &[&str], &str, &str); 8] = [
        ("default", &[], "--quiet", ""),
        ("perf", &["--trigger", "perf"], "--trigger", "perf"),
        ("timer", &["--trigger", "timer"], "--trigger", "timer"),
        ("preload", &["--loader", "preload"], "--loader", "preload"),
        ("always", &["--policy", "always"], "--policy", "always"),
        ("counter", &["--policy", "counter"], "--policy", "counter"),
        ("in place", &["--policy", "counter", "--in-place"], "--in-place", ""),
        ("follow", &["--follow"], "--follow", ""),
    ];
    let mut ways: Vec<Way> = runs
        .iter()
        .filter(|(.., option, value)| sonde.offers(option, value))
        .map(|(name, options, ..)| {
            let arguments = ["run", "--quiet"].iter().chain(*options).map(|a| (*a).to_owned()).collect();
            Way { name, arguments }
        })
        .collect();
    if sonde.traces() {
        let arguments = ["trace", "record", "-o", "/dev/null"].map(str::to_owned).to_vec();
        ways.push(Way { name: "trace", arguments });
    }
    ways
}

/// Runs of one way, in a folder of their own, which is how their processes are told from others.
pub struct Trials {
    sonde: PathBuf,
    way: Way,
    folder: PathBuf,
    files: Vec<(u64, PathBuf)>,
}

impl Trials {
    /// None yet.
    pub fn new(sonde: &Sonde, way: Way, folder: &Path) -> io::Result<Trials> {
        fs::create_dir_all(folder)?;
        Ok(Trials { sonde: sonde.path.clone(), way, folder: folder.into(), files: Vec::new() })
    }

    /// Starts a program and kills Sonde at a moment: so many stops at system calls, on their way in and out, after its fork.
    /// Says how many there were, if it ended before.
    pub fn kill_at(&mut self, moment: u64) -> io::Result<Option<u64>> {
        let file = self.folder.join(format!("{}", self.files.len()));
        let mut child = self.start(&file)?;
        let pid = Pid::from_raw(child.id() as i32);
        let end = follow(pid, moment)?;
        if end.is_none() {
            kill(pid, Signal::SIGKILL)?;
            child.wait()?;
        }
        self.files.push((moment, file));
        Ok(end)
    }

    /// Sonde, behind a shell that stops until it is traced.
    fn start(&self, file: &Path) -> io::Result<Child> {
        let child = Command::new("sh")
            .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
            .arg(&self.sonde)
            .args(&self.way.arguments)
            .args(["--", "sh", "-c", SCRIPT, "sh"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        waitpid(Pid::from_raw(child.id() as i32), Some(WaitPidFlag::WUNTRACED))?;
        Ok(child)
    }

    /// Waits until all processes are gone, and says what is wrong: processes that stay for ever, which are killed then, and
    /// programs that began and did not come to their end.
    pub fn wrong(&self) -> Vec<String> {
        let mark = self.folder.to_string_lossy().into_owned();
        let until = Instant::now() + PATIENCE;
        while !processes(&mark).is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut wrong = Vec::new();
        for pid in processes(&mark) {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let told = |line: &&str| line.starts_with("State") || line.starts_with("TracerPid");
            let status: Vec<&str> = status.lines().filter(told).collect();
            wrong.push(format!("{}: process {pid} stays: {}", self.way.name, status.join(", ")));
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        for (moment, file) in &self.files {
            let text = fs::read_to_string(file);
            if text.as_deref().is_ok_and(|text| text != "begin\nend\n") {
                wrong.push(format!("{}: killed at {moment}, the program wrote {text:?}", self.way.name));
            }
        }
        wrong
    }
}

/// Lets a stopped process run to a moment, and there stand still. Says how many moments there were, if it ends before.
fn follow(pid: Pid, moment: u64) -> nix::Result<Option<u64>> {
    ptrace::seize(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC)?;
    kill(pid, Signal::SIGCONT)?;
    let (mut is_sonde, mut forked, mut seen) = (false, false, 0);
    loop {
        let mut deliver = None;
        match waitpid(pid, Some(WaitPidFlag::__WALL))? {
            WaitStatus::PtraceEvent(_, _, event) => {
                is_sonde |= event == ptrace::Event::PTRACE_EVENT_EXEC as i32
            }
            WaitStatus::PtraceSyscall(_) if is_sonde => {
                forked |= is_fork(ptrace::getregs(pid)?.orig_rax);
                if forked {
                    if seen == moment {
                        return Ok(None);
                    }
                    seen += 1;
                }
            }
            WaitStatus::Stopped(_, signal) => deliver = Some(signal),
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(Some(seen)),
            _ => {}
        }
        ptrace::syscall(pid, deliver)?;
    }
}

/// Numbers of clone, fork and vfork; threads are made by clone3.
fn is_fork(number: u64) -> bool {
    (56..=58).contains(&number)
}

/// Processes with this in their arguments, but not those that are gone already and wait for their parent.
fn processes(mark: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id() as i32 && String::from_utf8_lossy(&arguments).contains(mark) {
            found.push(pid);
        }
    }
    found
}
