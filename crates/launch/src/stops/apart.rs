//! Threads that were let go, because they get more signals than stops are cheap (`storm.rs`): they have no tracer but for the moment
//! in which a burst begins.
//!
//! What the kernel reports of a traced thread is not known of these: new threads are looked for in `/proc`, children are counted
//! there (so that the count is a lower bound), an exec is noticed at the next visit and the new image is not recorded, the end of a
//! followed process is seen when it is gone. After a while each is traced again, in case that its signals have become fewer.

use super::attach::seize;
use super::storm::Storm;
use super::{Care, Inside, News, Stops};
use crate::begin::{SYNCHRONOUS, ptrace, registers};
use crate::children::Lookout;
use crate::shared::SharedMemory;
use crate::thread_files::{cpu_ns, open_cpu};
use crate::watch;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long a thread is let go at first, and at most; each time twice as long as before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// Time between two looks for what nobody reports.
const LOOK: Duration = Duration::from_millis(10);

/// A thread that was let go.
struct Away {
    pid: i32,
    /// Whether it is traced at this moment.
    visited: bool,
    /// When it is to be traced again.
    back: Instant,
}

/// All that is known of signals and of threads that were let go.
#[derive(Default)]
pub struct Apart {
    storms: HashMap<i32, Storm>,
    away: HashMap<i32, Away>,
    pauses: HashMap<i32, Duration>,
    next_look: Option<Instant>,
    lookouts: HashMap<i32, Lookout>,
    /// Children that they had, seen by looking.
    children: u64,
    /// CPU time of processes of which the end is not reported.
    cpu: HashMap<i32, Duration>,
    /// How often a thread was let go.
    pub times: u64,
}

impl Apart {
    /// Whether a thread has no tracer now.
    pub fn is_alone(&self, tid: i32) -> bool {
        self.away.get(&tid).is_some_and(|away| !away.visited)
    }

    /// Children of such threads, at least.
    pub fn children(&self) -> u64 {
        self.children + self.lookouts.values().map(Lookout::count).sum::<u64>()
    }

    pub fn forget_thread(&mut self, tid: i32) {
        self.storms.remove(&tid);
        self.away.remove(&tid);
        self.pauses.remove(&tid);
    }

    pub fn forget_process(&mut self, pid: i32) {
        let gone: Vec<i32> = self.away.iter().filter(|(_, away)| away.pid == pid).map(|(t, _)| *t).collect();
        gone.into_iter().chain([pid]).for_each(|tid| self.forget_thread(tid));
        self.children += self.lookouts.remove(&pid).map_or(0, |lookout| lookout.count());
        self.cpu.remove(&pid);
    }
}

impl Stops {
    /// A thread stands still with a signal that it is about to get: whether these come so fast that it is to be let go.
    pub(super) fn is_in_storm(&mut self, pid: i32, tid: i32, signal: i32) -> bool {
        // As many as it has children, each of which costs as much: they are its own progress. But a debugger is told of each stop.
        if signal == libc::SIGCHLD && !self.habits(pid).traces {
            return false;
        }
        let can = match self.care {
            // Its code has to be given back for that, which other threads may be in.
            // Not at what an instruction raised: giving back takes steps, and the handler would be told of those.
            Care::Checks => {
                let only = self.threads.values().filter(|thread| thread.pid == pid).count() == 1;
                self.changes.is_some() && only && SYNCHRONOUS & 1 << (signal - 1) == 0
            }
            _ => true,
        };
        if !can || self.apart.away.contains_key(&tid) {
            return false;
        }
        // Behind a call the kernel keeps its number.
        let at_work = registers(tid).is_ok_and(|regs| (regs.orig_rax as i64) < 0);
        let cpu = || open_cpu(pid, tid).ok().and_then(|file| cpu_ns(&file)).unwrap_or(0);
        let storm = self.apart.storms.entry(tid).or_insert_with(|| Storm::new(Instant::now(), cpu()));
        storm.note(at_work) && storm.verdict(Instant::now(), cpu())
    }

    /// Lets a thread that stands still go on alone, with this signal. Says whether it could.
    pub(super) fn let_go(&mut self, pid: i32, tid: i32, signal: i32) -> bool {
        if self.care == Care::Checks && !self.give_back(pid, tid) {
            return false;
        }
        if ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize).is_err() {
            return false;
        }
        let pause = self.apart.pauses.entry(tid).or_insert(FIRST_PAUSE);
        let away = Away { pid, visited: false, back: Instant::now() + *pause };
        *pause = (*pause * 2).min(LONGEST_PAUSE);
        self.apart.away.insert(tid, away);
        self.apart.times += 1;
        // Children that it has already were reported.
        self.apart.lookouts.entry(pid).or_default().know(pid, &[tid]);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.asked = false;
        }
        true
    }

    /// Asks a thread to stop, which may have to be traced for that.
    pub(super) fn interrupt(&mut self, tid: i32) -> bool {
        if let Some(away) = self.apart.away.get_mut(&tid).filter(|away| !away.visited) {
            // Somebody else may trace it now.
            if seize(tid, self.care).is_err() {
                return false;
            }
            away.visited = true;
        }
        ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0).is_ok()
    }

    /// Lets a thread that stands still go on with a signal or none: alone, if it was visited only, unless it is time to try again.
    pub(super) fn resume(&mut self, tid: i32, signal: i32) {
        let busy = self.threads.get(&tid).is_some_and(|thread| thread.asked || thread.unfinished.is_some());
        match self.apart.away.get_mut(&tid) {
            Some(away) if !busy && Instant::now() < away.back => {
                away.visited = ptrace(libc::PTRACE_DETACH, tid, 0, signal as usize).is_err();
            }
            other => {
                if other.is_some() && !busy {
                    self.apart.away.remove(&tid);
                }
                let _ = ptrace(libc::PTRACE_CONT, tid, 0, signal as usize);
            }
        }
    }

    /// A visited thread stands still: whether it is still in the image that its probe is in.
    pub(super) fn is_same_image(&self, pid: i32, tid: i32, shared: &SharedMemory) -> bool {
        let Some(Inside::Probe(memory)) = self.processes.get(&pid).map(|process| &process.inside) else {
            return true;
        };
        let at = shared.control().begin_at.load(Relaxed);
        let bytes = |file: &File| {
            let mut bytes = [0; 16];
            file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
        };
        let now = File::open(format!("/proc/{tid}/mem")).ok();
        !self.apart.away.contains_key(&tid)
            || bytes(memory).is_some() && bytes(memory) == now.as_ref().and_then(bytes)
    }

    /// Looks for what is not reported of threads that were let go.
    pub(super) fn look_apart(&mut self) -> Option<News> {
        let now = Instant::now();
        if self.apart.away.is_empty() || self.apart.next_look.is_some_and(|at| now < at) {
            return None;
        }
        self.apart.next_look = Some(now + LOOK);
        let mut pids: Vec<i32> = self.apart.away.values().map(|away| away.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        for pid in pids {
            let tids: Vec<i32> = fs::read_dir(format!("/proc/{pid}/task"))
                .map(|all| all.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect())
                .unwrap_or_default();
            if tids.is_empty() && pid != self.program {
                let cpu = self.apart.cpu.get(&pid).copied().unwrap_or_default();
                self.forget(pid);
                return Some(News::Lost(pid, cpu));
            }
            self.apart.cpu.insert(pid, watch::cpu_time(pid));
            self.look_at(pid, &tids, now);
        }
        None
    }

    fn look_at(&mut self, pid: i32, tids: &[i32], now: Instant) {
        let away: Vec<i32> = tids.iter().copied().filter(|tid| self.apart.is_alone(*tid)).collect();
        self.apart.lookouts.entry(pid).or_default().look(pid, &away);
        let gone = |(tid, away): (&i32, &Away)| (away.pid == pid && !tids.contains(tid)).then_some(*tid);
        let gone: Vec<i32> = self.apart.away.iter().filter_map(gone).collect();
        for tid in gone {
            self.apart.forget_thread(tid);
            self.threads.remove(&tid);
        }
        if self.care == Care::Checks {
            return;
        }
        if self.care == Care::Exec {
            let due = |tid: &i32| self.apart.away.get(tid).is_some_and(|away| now >= away.back);
            for tid in away.into_iter().filter(due).collect::<Vec<_>>() {
                if seize(tid, self.care).is_ok() {
                    self.apart.away.remove(&tid);
                }
            }
            return;
        }
        let known = |tid: &i32| self.threads.contains_key(tid) || self.apart.away.contains_key(tid);
        for tid in tids.iter().copied().filter(|tid| !known(tid)).collect::<Vec<_>>() {
            // One that is traced already is about to be reported.
            if seize(tid, self.care).is_ok() {
                let gap = self.gaps.first();
                self.cover(pid, tid, gap);
            }
        }
    }
}
