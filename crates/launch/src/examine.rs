//! Finds out what this machine allows, by trying: the questions behind `sonde doctor`.

use crate::error::LaunchError;
use crate::in_place::Bell;
use crate::options::{Loader, Options, Policy};
use crate::program::Program;
use crate::serve::{Exit, Outlets};
use crate::session::Session;
use crate::{perf, timer_grain};
use sonde_event::Detail;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::time::Duration;

/// How well something works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should.
    Good,
    /// Not, but there is another way.
    Limited,
    /// Not, and `sonde run` needs it.
    Missing,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What was asked.
    pub subject: &'static str,
    /// How well it works.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub advice: Option<String>,
}

fn good(subject: &'static str, detail: impl Into<String>) -> Finding {
    Finding { subject, state: State::Good, detail: detail.into(), advice: None }
}

fn bad(subject: &'static str, state: State, detail: impl Into<String>, advice: &str) -> Finding {
    Finding { subject, state, detail: detail.into(), advice: Some(advice.to_owned()) }
}

fn setting(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Asks everything.
pub fn examine() -> Vec<Finding> {
    vec![
        kernel(),
        processor(),
        perf_events(),
        cpu_timers(),
        ptrace(),
        memory_files(),
        watched_pages(),
        low_memory(),
        process_files(),
        filters(),
        whole_run(),
    ]
}

fn kernel() -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (5, 10) {
        return good("kernel", format!("Linux {release}"));
    }
    bad("kernel", State::Limited, format!("Linux {release}"), "Sonde is tested on 5.10 and newer")
}

fn processor() -> Finding {
    let (highest, seven) = (__cpuid(0).eax, __cpuid_count(7, 0));
    let state = if highest >= 0xd { __cpuid_count(0xd, 0).ebx } else { 0 };
    let has_xsave = __cpuid(1).ecx & 1 << 27 != 0;
    let vectors = match (seven.ebx & 1 << 16 != 0, seven.ebx & 1 << 5 != 0) {
        (true, _) => "AVX-512",
        (false, true) => "AVX2",
        _ => "SSE",
    };
    let detail = format!("{vectors}, {state} bytes of vector state");
    if has_xsave {
        return good("processor", detail);
    }
    bad("processor", State::Missing, "no xsave", "the system must enable it; very old machines cannot")
}

fn perf_events() -> Finding {
    let level = setting("/proc/sys/kernel/perf_event_paranoid");
    let level = level.map_or("unknown level".to_owned(), |level| format!("perf_event_paranoid = {level}"));
    match perf::allowed() {
        Ok(()) => good("perf events", level),
        Err(error) => bad(
            "perf events",
            State::Limited,
            format!("{error}; {level}"),
            "CPU timers are used instead; for finer periods set kernel.perf_event_paranoid to 2 or lower with sysctl, \
             or allow perf_event_open in the container's seccomp profile",
        ),
    }
}

fn cpu_timers() -> Finding {
    match timer_grain::measure() {
        Ok(grain) => {
            let hertz = 1.0 / grain.as_secs_f64();
            let detail = format!("finest period about {:.1} ms ({hertz:.0} Hz)", grain.as_secs_f64() * 1e3);
            good("CPU timers", detail)
        }
        Err(error) => bad(
            "CPU timers",
            State::Limited,
            error.to_string(),
            "perf events are needed for --policy bursts; --policy always works without either",
        ),
    }
}

/// A child that asks to be traced and waits.
fn traced_child() -> io::Result<()> {
    // SAFETY: between fork and its end the child only makes system calls.
    unsafe {
        let parent = libc::getpid();
        let pid = libc::fork();
        if pid == 0 {
            // Whoever adopts it if Sonde dies would not know that it waits.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let ok = libc::getppid() == parent && libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0;
            if ok {
                libc::raise(libc::SIGSTOP);
            }
            libc::_exit(i32::from(!ok));
        }
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut status = 0;
        libc::waitpid(pid, &mut status, libc::__WALL);
        if libc::WIFEXITED(status) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let memory = fs::File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, &mut status, libc::__WALL);
        memory.map(|_| ())
    }
}

fn ptrace() -> Finding {
    let scope = setting("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.map_or("no yama".to_owned(), |scope| format!("yama ptrace_scope = {scope}"));
    match traced_child() {
        Ok(()) => good("ptrace", scope),
        Err(error) => bad(
            "ptrace",
            State::Limited,
            format!("{error}; {scope}"),
            "the probe is preloaded instead, which does bursts of dynamic programs only (no --follow, no --policy always); \
             for the rest allow ptrace (containers: --cap-add SYS_PTRACE or a seccomp profile \
             that allows it; yama: ptrace_scope below 3)",
        ),
    }
}

fn memory_files() -> Finding {
    // SAFETY: the name is a C string; the descriptor is closed again.
    let fd = unsafe { libc::memfd_create(c"sonde-doctor".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        let error = io::Error::last_os_error().to_string();
        return bad(
            "shared memory",
            State::Missing,
            error,
            "allow memfd_create (container's seccomp profile)",
        );
    }
    // SAFETY: our own descriptor.
    unsafe { libc::close(fd) };
    good("shared memory", "memfd_create works")
}

fn watched_pages() -> Finding {
    match Bell::is_allowed() {
        Ok(()) => good("watched pages", "userfaultfd works"),
        Err(error) => {
            bad("watched pages", State::Limited, error.to_string(), "leave --in-place out; all else works")
        }
    }
}

fn low_memory() -> Finding {
    let (read, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT);
    // SAFETY: maps fresh memory and unmaps it again.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, read, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        let error = io::Error::last_os_error().to_string();
        return bad("low memory", State::Limited, error, "the code cache is placed elsewhere, at some cost");
    }
    // SAFETY: just mapped.
    unsafe { libc::munmap(at, 4096) };
    good("low memory", "mappings below 2 GiB work")
}

fn process_files() -> Finding {
    let maps = fs::read_to_string("/proc/self/maps").is_ok_and(|text| !text.is_empty());
    let pages = fs::File::open("/proc/self/pagemap").is_ok();
    match (maps, pages) {
        (true, true) => good("/proc", "maps and pagemap are readable"),
        (true, false) => bad(
            "/proc",
            State::Limited,
            "pagemap is not readable",
            "code is compared with its file by other means; mount /proc without restrictions to avoid that",
        ),
        (false, _) => bad("/proc", State::Missing, "maps is not readable", "mount /proc"),
    }
}

fn filters() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map_or("?", str::trim);
    match field("Seccomp:") {
        "0" => good("seccomp", "no filter on this process"),
        "2" => good("seccomp", "a filter is active (a container?); what it forbids shows above"),
        other => good("seccomp", format!("mode {other}")),
    }
}

/// The proof: a program recorded from its first instruction to its last.
fn whole_run() -> Finding {
    let subject = "a whole run";
    let failed = |detail: String| {
        bad(subject, State::Missing, detail, "see what is missing above; if nothing is, please report this")
    };
    let program = match Program::find(OsStr::new("true"), &[]) {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    let options = Options {
        policy: Policy::Always,
        detail: Detail::Values,
        max_memory: 32 << 20,
        ..Options::default()
    };
    let mut count = sonde_event::Count::default();
    let session = match Session::start(&program, &options) {
        Ok(session) => session,
        Err(LaunchError::NoTracing(_) | LaunchError::NoWay(_)) => return preloaded_run(&program),
        Err(error) => return failed(error.to_string()),
    };
    let outlets = Outlets { reader: Some(&mut count), ..Outlets::default() };
    let served = session.serve(outlets, &mut |_| {});
    match (served.exit, served.totals.error, count.counts.instructions) {
        (Exit::Status(0), None, seen @ 1..) => good(subject, format!("`true` recorded: {seen} instructions")),
        (Exit::Status(0), None, 0) => failed("`true` ran, but nothing was recorded".into()),
        (Exit::Status(0), Some(error), _) => failed(format!("`true` ran, but its log is wrong: {error}")),
        (other, ..) => failed(format!("`true` did not end as it should: {other:?}")),
    }
}

/// The same without ptrace: the probe must start, which is all that can be said of so short a run.
fn preloaded_run(program: &Program) -> Finding {
    let subject = "a whole run";
    let options = Options { max_memory: 32 << 20, loader: Loader::Preload, ..Options::default() };
    let advice = "see ptrace above";
    let missing = |detail: String| bad(subject, State::Missing, detail, advice);
    let session = match Session::start(program, &options) {
        Ok(session) => session,
        Err(error) => return missing(error.to_string()),
    };
    let served = session.serve(Outlets::default(), &mut |_| {});
    match (served.exit, served.totals.started) {
        (Exit::Status(0), true) => {
            bad(subject, State::Limited, "the probe starts in `true`, preloaded: bursts only", advice)
        }
        (exit, started) => {
            missing(format!("`true` with the probe preloaded {exit}; probe started: {started}"))
        }
    }
}

/// How long [`timer_grain::measure`] may take.
pub(crate) const LONGEST: Duration = Duration::from_millis(100);
