//! The trigger without signals: Sonde stops a thread for a moment and lets it go on in the engine.
//!
//! The program sees no signal, no handler, no interrupted system call and no changed stack; threads that block all
//! signals are covered, new threads from their first instruction on; seccomp is looked at before the engine would make
//! a system call. If Sonde dies, the kernel lets all threads go. The price: no other tracer can attach meanwhile, and
//! each signal that the program gets takes a detour of some microseconds.
//!
//! Child processes are reported by the kernel, stopped before their first instruction. Without `follow` they are
//! counted and let go at once; with it they stay under our control like the program itself.

mod apart;
mod attach;
mod covered;
mod followed;
mod moment;
mod ringing;
mod seat;
mod storm;
mod unfinished;

use self::apart::Apart;
pub use self::attach::{Care, attach, finish_exec, is_its_own, is_ours};
use self::covered::{Covered, MOST_SPARED};
use self::moment::Tells;
use self::seat::Seat;
use self::unfinished::{CALL_STOP, Unfinished};
use crate::begin::{self, Begun, Site, ptrace};
use crate::children::{Ended, next_report, take_end};
use crate::gaps::Gaps;
use crate::habits::Habits;
use crate::in_place::{Changes, Entry};
use crate::place::Holdings;
use crate::shared::SharedMemory;
use crate::thread_files::{cpu_ns, family_of, is_running, open_cpu, processor_of, status_of};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const EVENT_STOP: i32 = 128;
/// Least and most time between two looks at the threads.
const SHORTEST: Duration = Duration::from_micros(200);
const LONGEST: Duration = Duration::from_millis(50);
/// CPU time up to which a thread is young.
const YOUNG_NS: u64 = 5_000_000;
/// Attempts to place a probe in a process.
const ATTEMPTS: u32 = 3;

/// What of ours is in a process.
enum Inside {
    /// A probe, which can be reached through this file.
    Probe(File),
    /// No probe of its own yet.
    Nothing,
    /// None, and none can be placed.
    Refused,
    /// It runs in its parent's memory until it execs (vfork).
    ParentsMemory,
}

/// A process under our control.
struct Process {
    inside: Inside,
    seccomp: u32,
    /// Mappings of ours in it: its own, or copies of those of the process that it was forked from.
    holdings: Holdings,
    /// Attempts to place a probe that failed.
    failures: u32,
}

/// All threads of the program, and of the processes that are followed, under our control.
pub struct Stops {
    program: i32,
    care: Care,
    processes: HashMap<i32, Process>,
    threads: HashMap<i32, Covered>,
    gaps: Gaps,
    seat: Seat,
    /// The signal by which job control stopped the program, until its other threads have reported.
    stopped_by: Option<i32>,
    next_look: Instant,
    /// The program's entry, while it is not there yet and its code is to be changed.
    entry: Option<Entry>,
    /// What was changed in its code.
    changes: Option<Changes>,
    /// Most child processes that are followed at a time; 0 for none.
    most: usize,
    /// Child processes that went their own way.
    pub children: u64,
    /// Child processes that were followed.
    pub followed: u64,
    /// Threads that could not be covered.
    pub uncovered: u64,
    /// What files of followed processes do with ptrace, by device and number.
    habits: HashMap<(u64, u64), Habits>,
    /// Threads that were let go.
    apart: Apart,
    /// Reports so far, and those of threads that had been asked to stop.
    reports: u64,
    answers: u64,
}

/// What became of the program or a followed process.
pub enum News {
    /// A process ended.
    Ended(i32, Ended),
    /// The program stands still at its entry.
    AtEntry,
    /// Job control stopped the program, by this signal.
    Stopped(i32),
    /// A process replaced itself by another program (exec) and stands still in it: the program itself before its first
    /// instruction, others still in that call.
    Replaced(i32),
    /// A process ends: its first thread stands still, with its memory as it was, until it is let go.
    Leaving(i32),
    /// A followed process, whose end is not reported, is gone; and the CPU time it had used.
    Lost(i32, Duration),
    /// A process has no probe and its thread, the second number, stands still where a burst can begin.
    Due(i32, i32),
}

/// Finds the memory that is shared with a process.
pub type Find<'f> = dyn Fn(i32) -> Option<&'f SharedMemory> + 'f;

impl Stops {
    /// In charge of a process that was attached and stands still before its first instruction, with a probe inside.
    /// Follows at most so many of its children at a time.
    pub fn new(pid: i32, care: Care, shared: &SharedMemory, most: usize) -> Stops {
        let seccomp = status_of(pid, pid).seccomp;
        let program =
            Process { inside: Inside::Nothing, seccomp, holdings: Holdings::default(), failures: 0 };
        Stops {
            program: pid,
            care,
            processes: HashMap::from([(pid, program)]),
            threads: HashMap::new(),
            gaps: Gaps::new(&shared.control().config),
            seat: Seat::default(),
            stopped_by: None,
            next_look: Instant::now(),
            entry: None,
            changes: None,
            most,
            children: 0,
            followed: 0,
            uncovered: 0,
            habits: HashMap::new(),
            apart: Apart::default(),
            reports: 0,
            answers: 0,
        }
    }

    /// Watches the CPU time of a thread, whose first burst is due after `gap` of it.
    fn cover(&mut self, pid: i32, tid: i32, gap: u64) {
        if self.care == Care::Exec {
            return;
        }
        match open_cpu(pid, tid) {
            Ok(cpu) => {
                let by_time = || cpu_ns(&cpu).unwrap_or(0) + gap;
                let due_ns = if self.care == Care::Checks { u64::MAX } else { by_time() };
                self.threads.insert(tid, Covered::new(pid, cpu, due_ns));
                self.next_look = Instant::now();
            }
            // A thread that is gone already is nothing to report.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => self.uncovered += 1,
        }
    }

    /// Changes the mean period.
    pub fn set_period(&mut self, period_ns: u64) {
        self.gaps.set_period(period_ns);
        self.next_look = Instant::now();
    }

    /// The part of all reports that nobody asked for: signals, threads and processes of the program.
    pub fn part_unasked(&self) -> f64 {
        (self.reports - self.answers) as f64 / self.reports.max(1) as f64
    }

    /// Children of threads that were let go, at least, and how often one was.
    pub fn apart(&self) -> (u64, u64) {
        (self.apart.children(), self.apart.times)
    }

    /// How long the caller may sleep before [`serve`](Self::serve) has something to do, unless something is reported.
    pub fn patience(&self) -> Duration {
        self.next_look.saturating_duration_since(Instant::now()).clamp(SHORTEST, LONGEST)
    }

    /// The longest that a thread may be due without being asked.
    fn lateness(&self) -> Duration {
        Duration::from_nanos(self.gaps.period() / 4).clamp(SHORTEST, Duration::from_millis(2))
    }

    /// Handles what the threads reported, and asks those whose time has come. Tells what the caller has to act upon.
    pub fn serve(&mut self, shared: &Find<'_>) -> Option<News> {
        while let Some((tid, ended)) = next_report(-1, libc::WSTOPPED | libc::__WALL) {
            self.reports += 1;
            if ended && self.processes.contains_key(&tid) {
                self.forget(tid);
                return take_end(tid).map(|ended| News::Ended(tid, ended));
            }
            let mut status = 0;
            // SAFETY: the status is written to a local.
            if unsafe { libc::waitpid(tid, &mut status, libc::WNOHANG | libc::WUNTRACED | libc::__WALL) }
                != tid
            {
                break;
            }
            if !libc::WIFSTOPPED(status) {
                self.threads.remove(&tid);
                self.apart.forget_thread(tid);
                continue;
            }
            if self.apart.is_alone(tid) {
                // Its parent is told that job control stopped it, as of any other.
                return (tid == self.program).then_some(News::Stopped(libc::WSTOPSIG(status)));
            }
            let Some(pid) = self.process_of(tid) else {
                self.child(tid);
                continue;
            };
            if status >> 16 == libc::PTRACE_EVENT_EXEC {
                return Some(self.replaced(pid));
            }
            if let Some(news) = self.stopped(pid, tid, status, shared) {
                return Some(news);
            }
        }
        // Each of its threads reports: Sonde stops like it when all that have are seen to, and once more if one comes later.
        if let Some(signal) = self.stopped_by.take() {
            return Some(News::Stopped(signal));
        }
        let now = Instant::now();
        if now >= self.next_look {
            self.next_look = now + self.ask();
        }
        self.hear();
        self.look_apart()
    }

    fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.threads.retain(|_, thread| thread.pid != pid);
        self.apart.forget_process(pid);
    }

    /// The process of a thread that reported, if it is one of ours.
    fn process_of(&self, tid: i32) -> Option<i32> {
        if let Some(thread) = self.threads.get(&tid) {
            return Some(thread.pid);
        }
        let pid = if self.processes.contains_key(&tid) { tid } else { family_of(tid)?.0 };
        self.processes.contains_key(&pid).then_some(pid)
    }

    /// A child process, reported because its parent is ours, before its first instruction.
    fn child(&mut self, pid: i32) {
        // The program itself is one of those under our control.
        let room = self.processes.len() <= self.most;
        if self.most == 0 || !room || self.is_traced_by_its_parent(pid) || !self.adopt(pid) {
            self.children += 1;
            if let Some(entry) = self.entry {
                entry.take_away_from(pid);
            }
            if let Some(changes) = &self.changes {
                changes.let_go(pid);
            }
            let _ = ptrace(libc::PTRACE_DETACH, pid, 0, 0);
        }
    }

    /// All other threads are gone, and what was ours with the old image.
    fn replaced(&mut self, pid: i32) -> News {
        self.threads.retain(|_, thread| thread.pid != pid);
        self.apart.forget_process(pid);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.inside = Inside::Nothing;
            process.holdings = Holdings::default();
        }
        if pid == self.program {
            (self.entry, self.changes) = (None, None);
            finish_exec(pid);
        }
        News::Replaced(pid)
    }

    /// The probe is in the program's new image, which stands still.
    pub fn hold(&mut self, holdings: Holdings) {
        let pid = self.program;
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        if let (Ok(memory), Some(process)) = (memory, self.processes.get_mut(&pid)) {
            process.inside = Inside::Probe(memory);
            process.holdings = holdings;
            let gap = self.gaps.next();
            self.cover(pid, pid, gap);
        }
    }

    /// The program's first thread, which stands still, runs on.
    pub fn go_on(&mut self) {
        // With a breakpoint in its way it would not get far without us.
        if self.entry.is_none() {
            is_its_own(self.program, self.care);
        }
        let _ = ptrace(libc::PTRACE_CONT, self.program, 0, 0);
    }

    /// The probe is about to be placed by this thread, which stands still.
    pub fn is_ours(&self, tid: i32) {
        is_ours(tid, self.care);
    }

    /// That is done, and everything as it should be.
    pub fn is_its_own(&self, tid: i32) {
        is_its_own(tid, self.care);
    }

    /// Whether the program cannot be recorded without a tracer.
    pub fn stays(&self) -> bool {
        self.care != Care::Exec
    }

    /// The program's new image runs without us.
    pub fn give_up(&mut self) {
        let _ = ptrace(libc::PTRACE_DETACH, self.program, 0, 0);
    }

    /// Lets a thread that stands still go on as it is.
    pub fn not_now(&mut self, tid: i32) {
        self.resume(tid, 0);
    }

    /// Asks the threads whose CPU time has come to stop. Says after what time it makes sense to look again: no thread takes
    /// more CPU time than time passes.
    fn ask(&mut self) -> Duration {
        let (mut next, lateness) = (LONGEST, self.lateness());
        if self.care == Care::Checks {
            // They tell by themselves.
            return next;
        }
        let mut due = Vec::new();
        for (tid, thread) in &mut self.threads {
            let process = self.processes.get(&thread.pid);
            let can = process.is_some_and(|p| matches!(p.inside, Inside::Probe(_) | Inside::Nothing))
                && thread.unfinished.is_none();
            let Some(cpu) = cpu_ns(&thread.cpu).filter(|_| can) else { continue };
            if thread.asked || cpu < thread.due_ns {
                // One that was asked has been told when it is due again.
                let least = if thread.asked { lateness } else { SHORTEST };
                next = next.min(Duration::from_nanos(thread.due_ns.saturating_sub(cpu)).max(least));
                continue;
            }
            if thread.is_to_be_spared(cpu) {
                next = next.min(SHORTEST);
                continue;
            }
            // A thread that sleeps in a system call is left alone: some calls fail with EINTR when they are interrupted.
            if is_running(thread.pid, *tid) {
                due.push((*tid, cpu));
            } else {
                next = next.min(lateness);
            }
        }
        let mut sits = false;
        for (tid, cpu) in due {
            if let Some(thread) = self.threads.get_mut(&tid) {
                // One that makes many faults is asked from elsewhere, where a fault can be told.
                let pid = thread.pid;
                let processor = processor_of(pid, tid).filter(|_| !thread.moment.makes_faults(pid, tid, cpu));
                // One that has just begun may be gone before Sonde sits beside it.
                let processor = processor.filter(|_| cpu > YOUNG_NS);
                if processor.is_some_and(|processor| !self.seat.is_at(processor)) {
                    (next, sits) = (SHORTEST, true);
                    break;
                }
                thread.moment.ask(pid, tid, &thread.cpu);
            }
            if !self.interrupt(tid) {
                next = next.min(lateness);
            } else if let Some(thread) = self.threads.get_mut(&tid) {
                let gap = self.gaps.next();
                (thread.asked, thread.due_ns) = (true, cpu + gap);
                next = next.min(Duration::from_nanos(gap).max(SHORTEST));
            }
        }
        if !sits {
            self.seat.leave();
        }
        next
    }

    fn stopped(&mut self, pid: i32, tid: i32, status: i32, shared: &Find<'_>) -> Option<News> {
        let (event, signal) = (status >> 16, libc::WSTOPSIG(status));
        let at_call = event == 0 && signal == CALL_STOP;
        if self.threads.get_mut(&tid).is_some_and(|thread| thread.is_finishing(tid, at_call)) {
            return None;
        }
        if event == EVENT_STOP && signal != libc::SIGTRAP {
            // Stopped by job control: stay so until it is continued.
            let _ = ptrace(libc::PTRACE_LISTEN, tid, 0, 0);
            if pid == self.program {
                self.stopped_by = Some(signal);
            }
            return None;
        }
        if event == 0 && signal == libc::SIGTRAP && self.entry.is_some_and(|entry| entry.is_reached(tid)) {
            self.entry = None;
            is_its_own(tid, self.care);
            return Some(News::AtEntry);
        }
        if event == libc::PTRACE_EVENT_EXIT && tid == pid {
            return Some(News::Leaving(pid));
        }
        let makes_child =
            matches!(event, libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE);
        if makes_child && self.habits(pid).traces {
            self.settle_child(pid, tid);
        }
        if event == EVENT_STOP {
            match self.threads.get_mut(&tid) {
                // One of many, perhaps, that all live shorter than a period.
                None => {
                    // It may have been made by a thread that was ours for a moment.
                    is_its_own(tid, self.care);
                    let gap = self.gaps.first();
                    self.cover(pid, tid, gap);
                    if let Some(shared) = shared(pid) {
                        self.arm(tid, shared);
                    }
                }
                Some(thread) if thread.asked => {
                    self.answers += 1;
                    (thread.asked, thread.spared) = (false, 0);
                    if self.care == Care::Checks {
                        self.rang(pid, tid, shared);
                        let _ = ptrace(libc::PTRACE_CONT, tid, 0, 0);
                        return None;
                    }
                    thread.unfinished = Unfinished::find(pid, tid).filter(|call| call.prepare(tid));
                    if thread.unfinished.is_some() {
                        let _ = ptrace(libc::PTRACE_SYSCALL, tid, 0, 0);
                        self.sooner(tid, Covered::miss);
                        return None;
                    }
                    if self.answered(pid, tid, shared) {
                        return Some(News::Due(pid, tid));
                    }
                }
                Some(_) => {}
            }
        }
        if event != EVENT_STOP {
            self.ask_again(tid, event == 0);
        }
        if event == 0 {
            self.lead_out(pid, tid);
            if self.is_in_storm(pid, tid, signal) && self.let_go(pid, tid, signal) {
                return None;
            }
        }
        self.resume(tid, if event == 0 { signal } else { 0 });
        None
    }

    /// The kernel forgets a request to stop when another report (of a fork, say) comes first: it has to be made again, or
    /// the thread would count as asked for ever. Behind a signal not at once.
    fn ask_again(&mut self, tid: i32, is_signal: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let by_time = self.care == Care::Bursts;
        if let Some(cpu) = cpu_ns(&thread.cpu).filter(|_| is_signal && by_time) {
            thread.signalled_ns = cpu;
            thread.spared += u8::from(thread.spared < MOST_SPARED && (thread.asked || cpu >= thread.due_ns));
            if thread.asked && thread.spared < MOST_SPARED {
                (thread.asked, thread.due_ns) = (false, cpu);
                self.next_look = self.next_look.min(Instant::now() + SHORTEST);
            }
        }
        if thread.asked {
            let _ = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
        }
    }

    /// A thread that was asked stands still: begins a burst, or says that the process needs a probe first.
    fn answered(&mut self, pid: i32, tid: i32, shared: &Find<'_>) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        match (&process.inside, shared(pid)) {
            (Inside::Probe(_), Some(shared)) if !self.is_same_image(pid, tid, shared) => {
                // It replaced itself, and nobody was told.
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.inside = Inside::Refused;
                }
                false
            }
            (Inside::Probe(_), Some(shared)) => {
                if shared.control().stop.load(Relaxed) == 0 {
                    self.begin(pid, tid, shared);
                }
                false
            }
            (Inside::Nothing, _) => {
                let ready = begin::can_be_placed_in(pid, tid, process.seccomp);
                if !ready {
                    self.sooner(tid, Covered::miss);
                }
                ready
            }
            _ => false,
        }
    }

    fn begin(&mut self, pid: i32, tid: i32, shared: &SharedMemory) {
        let asked = self.threads.get_mut(&tid);
        let tells = asked.map_or(Tells::Code, |thread| thread.moment.stop(pid, tid, &thread.cpu));
        if tells == Tells::Nothing {
            return self.sooner(tid, |thread, _| thread.due_ns = 0);
        }
        let Some(Process { inside: Inside::Probe(memory), seccomp, .. }) = self.processes.get(&pid) else {
            return;
        };
        let lives = |tid: i32| self.threads.get(&tid).is_some_and(|thread| thread.pid == pid);
        let (control, faulted) = (shared.control(), tells == Tells::Fault);
        let site = Site { pid, tid, memory, seccomp: *seccomp, control, faulted, lives: &lives };
        match site.begin() {
            Begun::Settled => self.threads.get_mut(&tid).into_iter().for_each(Covered::meet),
            Begun::NotThere => self.sooner(tid, Covered::miss),
            Begun::Anew => self.sooner(tid, Covered::miss_again),
        }
    }

    /// The thread was in a system call or in our own code: it is asked again earlier, mostly.
    fn sooner(&mut self, tid: i32, miss: fn(&mut Covered, u64)) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            miss(thread, self.gaps.period());
        }
        self.next_look = self.next_look.min(Instant::now() + self.lateness());
    }

    /// The program ended: lets all that is left go, as soon as it can be stopped for that, and says which processes
    /// there were. What does not stop in time is let go by the kernel when Sonde ends.
    pub fn release(&mut self) -> Vec<i32> {
        self.seat.leave();
        self.threads.retain(|tid, _| !self.apart.is_alone(*tid));
        for tid in self.threads.keys() {
            let _ = ptrace(libc::PTRACE_INTERRUPT, *tid, 0, 0);
        }
        let until = Instant::now() + Duration::from_millis(100);
        while !self.processes.is_empty() && !self.threads.is_empty() && Instant::now() < until {
            let Some((tid, _)) = next_report(-1, libc::WSTOPPED | libc::__WALL) else {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            };
            let mut status = 0;
            // SAFETY: the status is written to a local.
            unsafe { libc::waitpid(tid, &mut status, libc::WNOHANG | libc::__WALL) };
            if libc::WIFSTOPPED(status) {
                let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
                let _ = ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize);
            } else {
                self.processes.remove(&tid);
            }
            self.threads.remove(&tid);
        }
        self.threads.clear();
        let mut left: Vec<i32> = self.processes.drain().map(|(pid, _)| pid).collect();
        left.sort_unstable();
        left
    }
}
