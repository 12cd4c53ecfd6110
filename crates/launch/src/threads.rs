//! Keeps the trigger on every thread of the program.

use crate::children::Lookout;
use crate::gaps::Gaps;
use crate::perf::Event;
use crate::shared::SharedMemory;
use crate::thread_files::is_running;
use std::collections::HashMap;
use std::fs;
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
    /// Children seen.
    pub children: Lookout,
}

const FASTEST: Duration = Duration::from_millis(2);
const SLOWEST: Duration = Duration::from_millis(50);

impl Threads {
    /// Starts with no thread known.
    pub fn new(pid: i32, kind: Kind, signal: i32, shared: &SharedMemory) -> Threads {
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
            children: Lookout::default(),
        }
    }

    /// Covers the first thread before it runs.
    pub fn cover_first(&mut self) {
        self.cover(self.pid);
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
        let before = self.known.len();
        let tids: Vec<i32> = fs::read_dir(format!("/proc/{}/task", self.pid))
            .map(|dir| dir.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
            .unwrap_or_default();
        self.children.look(self.pid, &tids);
        let changed = tids.iter().any(|t| !self.known.contains_key(t)) || tids.len() < before;
        for tid in &tids {
            if !self.known.contains_key(tid) {
                self.cover(*tid);
            }
        }
        self.known.retain(|tid, _| tids.contains(tid));
        // Setting a period starts it anew, so it must not be done more often than the period is long.
        if now >= self.next_change {
            self.vary();
            self.next_change = now + Duration::from_nanos(8 * self.gaps.period());
        }
        self.interval = if changed { FASTEST } else { (self.interval * 2).min(SLOWEST) };
        self.next_scan = now + self.interval;
    }

    fn cover(&mut self, tid: i32) {
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
                // The first thread is stopped where it is covered from here.
                if tid != self.pid && !is_running(self.pid, tid) {
                    // A signal could interrupt a system call that it sleeps in; wait until it runs.
                    return;
                }
                // SAFETY: sends a signal that the probe handles in every thread.
                unsafe { libc::syscall(libc::SYS_tgkill, self.pid, tid, self.signal) };
                None
            }
        };
        self.known.insert(tid, event);
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
