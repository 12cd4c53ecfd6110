//! The trigger without signals: Sonde stops a thread for a moment and lets it go on in the engine.
//!
//! The program sees no signal, no handler, no interrupted system call and no changed stack; threads that block all
//! signals are covered, new threads from their first instruction on; seccomp is looked at before the engine would make
//! a system call. If Sonde dies, the kernel lets all threads go. The price: no other tracer can attach meanwhile, and
//! each signal that the program gets takes a detour of some microseconds.

use crate::children::{Ended, next_report, take_end};
use crate::shared::SharedMemory;
use sonde_wire::Counter;
use sonde_wire::slot::{BY_SONDE, BY_SONDE_NEW, Head, MAX_THREADS, SLOT_BYTES};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const GETSIGMASK: libc::c_uint = 0x420a;
const SETSIGMASK: libc::c_uint = 0x420b;
const EVENT_STOP: i32 = 128;
const TRAP_FLAG: u64 = 0x100;
/// Signals that instructions raise: the faults, SIGTRAP, SIGSYS.
const SYNCHRONOUS: u64 = FAULTS | 1 << 4 | 1 << 30;
/// SIGILL, SIGBUS, SIGFPE, SIGSEGV: deliverable in the copy.
const FAULTS: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 10;

struct Covered {
    cpu: File,
    due_ns: u64,
    asked: bool,
}

/// All threads of the program under our control.
pub struct Stops {
    pid: i32,
    memory: File,
    threads: HashMap<i32, Covered>,
    period_ns: u64,
    jitter: u32,
    random: u64,
    next_look: Instant,
    seccomp: u8,
    /// Child processes that went their own way.
    pub children: u64,
}

/// What became of the program.
pub enum News {
    /// It ended.
    Ended(Ended),
    /// Job control stopped it, by this signal.
    Stopped(i32),
    /// It replaced itself by another program (exec) and is stopped at the first instruction of that.
    Replaced,
}

fn ptrace(what: libc::c_uint, tid: i32, addr: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests used here take plain values or pointers to locals of the right size.
    let r = unsafe { libc::ptrace(what, tid, addr as *mut libc::c_void, data as *mut libc::c_void) };
    if r == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Stops {
    /// Takes charge of all threads of a process that this thread may trace.
    pub fn seize(pid: i32, shared: &SharedMemory) -> io::Result<Stops> {
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        let config = &shared.control().config;
        let mut stops = Stops {
            pid,
            memory,
            threads: HashMap::new(),
            period_ns: config.period_ns.max(1000),
            jitter: config.jitter,
            random: config.seed | 1,
            next_look: Instant::now(),
            seccomp: status_of(pid, pid).seccomp,
            children: 0,
        };
        stops.seize_thread(pid)?;
        for entry in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            if let Some(tid) = entry.file_name().to_str().and_then(|n| n.parse().ok())
                && tid != pid
            {
                // A thread that is gone already, or that a traced clone attached, is nothing to report.
                let _ = stops.seize_thread(tid);
            }
        }
        wake_on_child();
        Ok(stops)
    }

    fn seize_thread(&mut self, tid: i32) -> io::Result<()> {
        let options = libc::PTRACE_O_TRACECLONE
            | libc::PTRACE_O_TRACEFORK
            | libc::PTRACE_O_TRACEVFORK
            | libc::PTRACE_O_TRACEEXEC;
        ptrace(libc::PTRACE_SEIZE, tid, 0, options as usize)?;
        self.cover(tid);
        Ok(())
    }

    fn cover(&mut self, tid: i32) {
        let Ok(cpu) = File::open(format!("/proc/{}/task/{tid}/schedstat", self.pid)) else { return };
        let due_ns = cpu_ns(&cpu).unwrap_or(0) + self.gap();
        self.threads.insert(tid, Covered { cpu, due_ns, asked: false });
    }

    /// The report of an exec comes from inside that system call, where registers cannot be set yet: lets it come to its
    /// end, and stops the process before the first instruction.
    fn finish_exec(&self) {
        let asked = ptrace(libc::PTRACE_INTERRUPT, self.pid, 0, 0)
            .and_then(|()| ptrace(libc::PTRACE_CONT, self.pid, 0, 0));
        if asked.is_ok() {
            let mut status = 0;
            // SAFETY: the status is written to a local.
            unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
        }
    }

    /// The probe is in the new image: it runs on.
    pub fn go_on_after_exec(&mut self) {
        if let Ok(memory) = File::options().read(true).write(true).open(format!("/proc/{}/mem", self.pid)) {
            self.memory = memory;
            self.cover(self.pid);
        }
        let _ = ptrace(libc::PTRACE_CONT, self.pid, 0, 0);
    }

    /// The new image runs without us.
    pub fn give_up(&mut self) {
        let _ = ptrace(libc::PTRACE_DETACH, self.pid, 0, 0);
    }

    /// A period varied at random, so that bursts do not lock step with the program.
    fn gap(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let span = self.period_ns / 1000 * u64::from(self.jitter);
        if span == 0 { self.period_ns } else { self.period_ns - span + self.random % (2 * span) }
    }

    /// Changes the mean period.
    pub fn set_period(&mut self, period_ns: u64) {
        self.period_ns = period_ns.max(1000);
    }

    /// How long the caller may sleep before [`serve`](Self::serve) has something to do.
    pub fn patience(&self) -> Duration {
        Duration::from_nanos(self.period_ns / 4).clamp(Duration::from_micros(200), Duration::from_millis(2))
    }

    /// Handles what the threads reported, and asks those whose time has come. Tells when the program stopped or ended.
    pub fn serve(&mut self, shared: &SharedMemory) -> Option<News> {
        while let Some((tid, ended)) = next_report(-1, libc::WSTOPPED | libc::__WALL) {
            if ended && tid == self.pid {
                self.threads.remove(&tid);
                return take_end(tid).map(News::Ended);
            }
            let mut status = 0;
            // SAFETY: the status is written to a local.
            if unsafe { libc::waitpid(tid, &mut status, libc::WNOHANG | libc::__WALL) } != tid {
                break;
            }
            if !libc::WIFSTOPPED(status) {
                self.threads.remove(&tid);
                continue;
            }
            if tid != self.pid && !self.is_thread(tid) {
                // A child process, reported because its parent is ours: it goes its own way.
                self.children += 1;
                let _ = ptrace(libc::PTRACE_DETACH, tid, 0, 0);
                continue;
            }
            if status >> 16 == libc::PTRACE_EVENT_EXEC {
                // All other threads are gone, and the probe with the old image.
                self.threads.clear();
                self.finish_exec();
                return Some(News::Replaced);
            }
            self.stopped(tid, status, shared);
            if status >> 16 == EVENT_STOP && libc::WSTOPSIG(status) != libc::SIGTRAP && tid == self.pid {
                return Some(News::Stopped(libc::WSTOPSIG(status)));
            }
        }
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + self.patience();
            self.ask();
        }
        None
    }

    fn is_thread(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid)
            || fs::exists(format!("/proc/{}/task/{tid}", self.pid)).unwrap_or(false)
    }

    /// Asks the threads whose CPU time has come to stop.
    fn ask(&mut self) {
        let mut threads = std::mem::take(&mut self.threads);
        for (tid, thread) in &mut threads {
            let Some(cpu) = cpu_ns(&thread.cpu) else { continue };
            // A thread that sleeps in a system call is left alone: some calls fail with EINTR when they are interrupted.
            let due = !thread.asked && cpu >= thread.due_ns && is_running(self.pid, *tid);
            if due && ptrace(libc::PTRACE_INTERRUPT, *tid, 0, 0).is_ok() {
                thread.asked = true;
                thread.due_ns = cpu + self.gap();
            }
        }
        self.threads = threads;
    }

    fn stopped(&mut self, tid: i32, status: i32, shared: &SharedMemory) {
        let (event, signal) = (status >> 16, libc::WSTOPSIG(status));
        if event == EVENT_STOP && signal != libc::SIGTRAP {
            // Stopped by job control: stay so until it is continued.
            let _ = ptrace(libc::PTRACE_LISTEN, tid, 0, 0);
            return;
        }
        if event == EVENT_STOP {
            match self.threads.get_mut(&tid) {
                None => self.cover(tid),
                Some(thread) if thread.asked => {
                    thread.asked = false;
                    if shared.control().stop.load(Relaxed) == 0 {
                        self.begin(tid, shared);
                    }
                }
                Some(_) => {}
            }
        }
        let deliver = if event == 0 { signal } else { 0 };
        let _ = ptrace(libc::PTRACE_CONT, tid, 0, deliver as usize);
    }

    /// Lets a stopped thread go on in the engine, if it is in a state for it.
    fn begin(&mut self, tid: i32, shared: &SharedMemory) {
        // SAFETY: all bit patterns are valid for plain integers.
        let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        if ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut regs as usize).is_err() {
            return;
        }
        let control = shared.control();
        let within = |from: u64, to: u64| from <= regs.rip && regs.rip < to;
        let ours = within(control.probe_start.load(Relaxed), control.probe_end.load(Relaxed))
            || within(control.cache_start.load(Relaxed), control.cache_end.load(Relaxed));
        // Only where user code was interrupted: a system call is restarted by the kernel as if nothing had been.
        if ours || regs.orig_rax as i64 >= 0 {
            self.restart(tid, &mut regs);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.due_ns = thread.due_ns.saturating_sub(self.period_ns / 2);
            }
            return;
        }
        let pool = control.pool.load(Relaxed);
        let in_pool = regs.gs_base >= pool && regs.gs_base < pool + (MAX_THREADS * SLOT_BYTES) as u64;
        if regs.gs_base != 0 && !in_pool {
            control.count(Counter::SkippedGs, 1);
            return;
        }
        if regs.eflags & TRAP_FLAG != 0 {
            control.count(Counter::SkippedState, 1);
            return;
        }
        let status = status_of(self.pid, tid);
        if status.seccomp != self.seccomp {
            control.count(Counter::SkippedSeccomp, 1);
            return;
        }
        if status.pending & SYNCHRONOUS != 0 {
            // An instruction has just raised a signal, which belongs to the pc it was raised at.
            control.count(Counter::SkippedState, 1);
            return;
        }
        if control.config.burst_checks == 0 {
            control.count(Counter::Triggers, 1);
            return;
        }
        let Some((at, mut head)) = self.slot(tid, pool) else {
            control.count(Counter::SkippedThreads, 1);
            return;
        };
        if head.is_active() {
            return;
        }
        let mut mask = 0u64;
        if ptrace(GETSIGMASK, tid, 8, &raw mut mask as usize).is_err() {
            return;
        }
        head.origin = if head.tid() == tid && head.me == at { BY_SONDE } else { BY_SONDE_NEW };
        head.me = at;
        head.stack_top = Head::stack_top_of(at);
        (head.app_r14, head.app_r15) = (regs.r14, regs.r15);
        head.old_gs = regs.gs_base;
        head.app_mask = mask;
        head.tid_active = u64::from(tid as u32);
        let blocked = !FAULTS;
        regs.r14 = regs.rip;
        regs.rip = control.begin_at.load(Relaxed);
        regs.gs_base = at;
        let ready = self.memory.write_all_at(&head.encode(), at).is_ok()
            && ptrace(SETSIGMASK, tid, 8, &raw const blocked as usize).is_ok();
        if ready && ptrace(libc::PTRACE_SETREGS, tid, 0, &raw const regs as usize).is_err() {
            let _ = ptrace(SETSIGMASK, tid, 8, &raw const mask as usize);
        }
    }

    /// The thread entered a system call that the kernel does not restart (epoll_wait and a few others) between our look
    /// and the stop: lets it call again, so that the program does not see EINTR.
    fn restart(&self, tid: i32, regs: &mut libc::user_regs_struct) {
        const EINTR: i64 = -4;
        let interrupted = regs.orig_rax as i64 >= 0 && regs.rax as i64 == EINTR;
        if interrupted && status_of(self.pid, tid).deliverable == 0 {
            regs.rip -= 2;
            regs.rax = regs.orig_rax;
            regs.orig_rax = u64::MAX;
            let _ = ptrace(libc::PTRACE_SETREGS, tid, 0, ptr::from_ref(regs) as usize);
        }
    }

    /// The context of a thread: its own, or one that nobody uses.
    fn slot(&self, tid: i32, pool: u64) -> Option<(u64, Head)> {
        for i in 0..MAX_THREADS {
            let at = pool + ((tid as usize + i) % MAX_THREADS * SLOT_BYTES) as u64;
            let mut bytes = [0; 64];
            self.memory.read_exact_at(&mut bytes, at).ok()?;
            let head = Head::decode(&bytes);
            if head.tid() == tid || head.tid() == 0 || !self.threads.contains_key(&head.tid()) {
                return Some((at, head));
            }
        }
        None
    }
}

/// CPU time of a thread so far, from its open schedstat file.
fn cpu_ns(file: &File) -> Option<u64> {
    let mut text = [0; 64];
    let n = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..n]).ok()?.split(' ').next()?.parse().ok()
}

/// What the kernel tells about a thread that decides whether it can be interrupted.
#[derive(Clone, Copy, Default)]
struct Status {
    seccomp: u8,
    /// Signals for this thread that wait.
    pending: u64,
    /// Signals, for it or its process, that wait and are not blocked.
    deliverable: u64,
}

fn status_of(pid: i32, tid: i32) -> Status {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
    let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).map(str::trim);
    let mask = |name: &str| field(name).and_then(|v| u64::from_str_radix(v, 16).ok()).unwrap_or(0);
    let pending = mask("SigPnd:");
    Status {
        seccomp: field("Seccomp:").and_then(|v| v.parse().ok()).unwrap_or(0),
        pending,
        deliverable: (pending | mask("ShdPnd:")) & !mask("SigBlk:"),
    }
}

/// Whether a thread is on a processor, or ready for one, rather than asleep in a system call.
fn is_running(pid: i32, tid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).is_ok_and(|s| s.starts_with("running"))
}

/// Makes reports of children interrupt our sleep.
fn wake_on_child() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: a handler that does nothing; no SA_RESTART, so that waiting calls return.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
    }
}
