//! Keeps the trigger on every thread of the program.

use crate::answers::Answers;
use crate::children::Lookout;
use crate::gaps::Gaps;
use crate::perf::Event;
use crate::shared::SharedMemory;
use crate::thread_files::{MaskLook, is_running};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who raises the trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Threads stopped for a moment through ptrace; no signal.
    Stops,
    /// Perf events held here.
    Perf,
    /// Timers armed inside; a new thread needs a first signal to arm its own.
    Timer,
}

/// The threads that the trigger covers.
pub struct Threads {
    pid: i32,
    kind: Kind,
    signal: i32,
    gaps: Gaps,
    varies: bool,
    known: HashMap<i32, Option<Event>>,
    next_scan: Instant,
    next_change: Instant,
    /// Whether another period was asked for than the events have.
    changed: bool,
    interval: Duration,
    /// Threads that could not be covered.
    pub uncovered: u64,
    /// Threads that block the trigger signal: it would stay pending, where the program could see it.
    blocking: HashSet<i32>,
    /// Threads that were seen not to.
    takes: HashSet<i32>,
    /// What was last seen of the masks of threads.
    looks: HashMap<i32, MaskLook>,
    answers: Answers,
    /// Children seen.
    pub children: Lookout,
}

const FASTEST: Duration = Duration::from_millis(2);
const SLOWEST: Duration = Duration::from_millis(50);

impl Threads {
    /// Starts with no thread known.
    pub fn new(pid: i32, kind: Kind, signal: i32, shared: &Arc<SharedMemory>) -> Threads {
        let config = &shared.control().config;
        Threads {
            pid,
            kind,
            signal,
            gaps: Gaps::new(config),
            varies: config.jitter != 0,
            known: HashMap::new(),
            next_scan: Instant::now(),
            next_change: Instant::now(),
            changed: false,
            interval: FASTEST,
            uncovered: 0,
            blocking: HashSet::new(),
            takes: HashSet::new(),
            looks: HashMap::new(),
            answers: Answers::new(pid, shared),
            children: Lookout::default(),
        }
    }

    /// Covers the first thread before it runs.
    pub fn cover_first(&mut self) {
        self.set_trigger(self.pid);
    }

    /// A preloaded probe arms the first thread's timer itself before `main`: a signal from here would only come later,
    /// in whatever system call the thread is then.
    pub fn first_arms_itself(&mut self) {
        if self.kind == Kind::Timer {
            self.known.insert(self.pid, None);
        }
    }

    /// Looks for new threads if it is time to; quickly while they change, seldom when they do not.
    pub fn scan(&mut self, now: Instant) {
        if now < self.next_scan {
            return;
        }
        let before = self.known.len() + self.blocking.len();
        let tids: Vec<i32> = fs::read_dir(format!("/proc/{}/task", self.pid))
            .map(|dir| dir.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
            .unwrap_or_default();
        self.children.look(self.pid, &tids);
        self.take_back();
        let is_new = |tid: &i32| !self.known.contains_key(tid) && !self.blocking.contains(tid);
        let changed = tids.iter().any(is_new) || tids.len() < before;
        for tid in &tids {
            if !self.known.contains_key(tid) {
                self.cover(*tid);
            }
        }
        self.known.retain(|tid, _| tids.contains(tid));
        self.blocking.retain(|tid| tids.contains(tid));
        self.takes.retain(|tid| tids.contains(tid));
        self.looks.retain(|tid, _| tids.contains(tid));
        self.tell();
        // Setting a period starts it anew, so it must not be done more often than the period is long.
        if now >= self.next_change {
            self.vary();
            self.next_change = now + Duration::from_nanos(8 * self.gaps.period());
        }
        self.interval = if changed { FASTEST } else { (self.interval * 2).min(SLOWEST) };
        self.next_scan = now + self.interval;
    }

    /// Takes the trigger back from threads that block its signal or may not make system calls.
    fn take_back(&mut self) {
        let (confined, late) = {
            let mut known = self.answers.known();
            (known.confined.clone(), std::mem::take(&mut known.late))
        };
        for (tid, event) in &mut self.known {
            if confined.contains(tid) {
                *event = None;
            }
        }
        if self.kind == Kind::Timer {
            // Their timer is armed in the handler, which did not get that far.
            self.known.retain(|tid, _| !late.contains(tid) || confined.contains(tid));
        } else {
            let tids: Vec<i32> =
                self.known.iter().filter(|(_, event)| event.is_some()).map(|(t, _)| *t).collect();
            for tid in tids {
                if self.blocks(tid) == Some(true) {
                    self.known.remove(&tid);
                    self.takes.remove(&tid);
                    self.uncovered += u64::from(self.blocking.insert(tid));
                }
            }
        }
    }

    /// Whether a thread blocks the trigger signal, if that can be told now.
    fn blocks(&mut self, tid: i32) -> Option<bool> {
        let (look, verdict) = MaskLook::at(self.pid, tid, self.signal, self.looks.get(&tid))?;
        self.looks.insert(tid, look);
        verdict
    }

    /// Tells who answers which threads there are.
    fn tell(&self) {
        let mut known = self.answers.known();
        known.threads = self.known.len();
        known.events =
            self.known.iter().filter_map(|(tid, event)| Some((event.as_ref()?.number(), *tid))).collect();
    }

    fn cover(&mut self, tid: i32) {
        match self.blocks(tid) {
            Some(true) => {
                // Looked at again: it may unblock it.
                self.uncovered += u64::from(self.blocking.insert(tid));
                self.takes.remove(&tid);
            }
            Some(false) => {
                self.uncovered -= u64::from(self.blocking.remove(&tid));
                self.takes.insert(tid);
            }
            None => {}
        }
        // A signal could interrupt a system call that a thread sleeps in; wait until it runs.
        if self.takes.contains(&tid) && (self.kind != Kind::Timer || is_running(self.pid, tid)) {
            self.set_trigger(tid);
        }
    }

    fn set_trigger(&mut self, tid: i32) {
        let event = match self.kind {
            Kind::Perf => match Event::open(tid, self.signal, self.gaps.next()) {
                Ok(event) => Some(event),
                Err(error) => {
                    // A thread that is gone already is nothing to report.
                    if error.raw_os_error() != Some(libc::ESRCH) {
                        self.uncovered += 1;
                    }
                    None
                }
            },
            Kind::Stops => None,
            Kind::Timer => {
                queue(self.pid, tid, self.signal);
                None
            }
        };
        self.known.insert(tid, event);
        self.tell();
    }

    fn vary(&mut self) {
        if self.kind != Kind::Perf || !(self.varies || self.changed) {
            return;
        }
        self.changed = false;
        let known = std::mem::take(&mut self.known);
        for event in known.values().flatten() {
            let gap = self.gaps.next();
            event.set_period(gap.max(1000));
        }
        self.known = known;
    }

    /// Changes the mean period, with the next change that is due: at once, periods longer than the time between two calls
    /// would never come to their end.
    pub fn set_period(&mut self, period_ns: u64) {
        self.gaps.set_period(period_ns);
        self.changed = true;
    }
}

/// Sends a thread a signal that tells it which thread it is, so that its handler need not ask.
fn queue(pid: i32, tid: i32, signal: i32) {
    const SI_QUEUE: i32 = -1;
    let mut info = [0i32; 32];
    (info[0], info[2]) = (signal, SI_QUEUE);
    // SAFETY: takes no arguments.
    (info[4], info[5]) = unsafe { (libc::getpid(), libc::getuid() as i32) };
    info[6] = tid;
    // SAFETY: the block has the 128 bytes of a siginfo; the probe handles the signal in every thread.
    unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info.as_ptr()) };
}
