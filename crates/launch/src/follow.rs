//! Child processes that are recorded too (`Options::follow`): each gets a probe, a reader and a decoder of its own when
//! its first burst is due, and ends when it execs, exits, or outlives the program.
//!
//! A probe is placed only then because most children of a script are gone before: they cost two stops and nothing else.
//! So that short processes are seen in proportion to their CPU time all the same, the first gap of a process is drawn
//! between nothing and a whole period.

use crate::children::Ended;
use crate::place_running::{Outcome, place_in_running};
use crate::reading::{Clerk, Desk};
use crate::serve::{Exit, Totals, exit_of};
use crate::session::{SIGNAL, Session};
use crate::shared::SharedMemory;
use crate::study::Study;
use crate::watch;
use sonde_event::{Decoder, Reader};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One image that a followed process ran, from its first burst to its end.
pub struct Part {
    /// The process.
    pub pid: i32,
    /// The file that it ran.
    pub exe: PathBuf,
    /// How it ended; None if it replaced itself by another program, or outlived the program that was run.
    pub exit: Option<Exit>,
    /// What it came to.
    pub totals: Totals,
    /// The decoder, with the catalog of all code seen in it.
    pub decoder: Decoder,
}

/// Where the streams of followed processes go. Each process has at most one part at a time.
///
/// Parts are handed over as they end rather than all at once, so that what is kept of them stays small however many
/// there are.
pub trait Parts: Send {
    /// A part begins: process `pid` runs `exe`.
    fn begin(&mut self, pid: i32, exe: &Path);
    /// Who reads the stream of the part of this process. None: it is not decoded.
    fn reader(&mut self, pid: i32) -> Option<&mut dyn Reader>;
    /// A part ended.
    fn end(&mut self, part: Part);
}

/// What became of the processes that were followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Child processes that were followed, with their own children.
    pub processes: u64,
    /// Of those, the ones that got a probe; the others ended before a burst was due.
    pub recorded: u64,
    /// That no probe could be placed in.
    pub refused: u64,
    /// That were still there when the program ended; they go on alone.
    pub left_running: u64,
    /// CPU time of all of them.
    pub cpu: Duration,
    /// The part of it in the kernel, of those that ended.
    pub system: Duration,
}

/// A followed process with a probe.
pub(crate) struct Child {
    pub study: Study,
    pub exe: PathBuf,
}

impl Session {
    /// A process without a probe is due for a burst, and its thread `tid` stands still where one can begin.
    pub(crate) fn place_in_child(&mut self, pid: i32, tid: i32, clerk: &Clerk<'_>) {
        let Some(stops) = &mut self.stops else { return };
        let options = &self.options;
        let inside = sonde_wire::control::trigger::STOPS;
        let make = |fd| SharedMemory::over(fd, options, inside, SIGNAL);
        stops.is_ours(tid);
        let outcome = place_in_running(tid, &stops.holdings(pid), make, SIGNAL);
        stops.is_its_own(tid);
        match outcome {
            Ok(Outcome::Placed(shared, holdings)) => {
                let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
                let now = self.shared.control();
                let control = shared.control();
                control.period_now.store(now.period_now.load(Relaxed), Relaxed);
                control.burst_checks_now.store(now.burst_checks_now.load(Relaxed), Relaxed);
                let shared: Arc<SharedMemory> = Arc::from(shared);
                let mut study = Study::new(pid, Arc::clone(&shared), options.detail);
                // While it stands still: by the time that somebody reads, a short process is gone.
                let mappings = study.look();
                clerk.order(move |desk| desk.begin_part(Child { study, exe }, &mappings));
                stops.placed(pid, tid, holdings, &shared);
                self.followed.recorded += u64::from(self.recorded.insert(pid));
                self.children.insert(pid, shared);
            }
            Ok(Outcome::NotNow) => stops.not_now(tid),
            Err(_) => self.followed.refused += u64::from(stops.failed(pid, tid)),
        }
    }

    /// A followed process ended.
    pub(crate) fn child_ended(&mut self, pid: i32, ended: &Ended, clerk: &Clerk<'_>) {
        self.followed.cpu += ended.own;
        self.followed.system += ended.system;
        let before = self.cpu_before_exec.remove(&pid).unwrap_or_default();
        self.recorded.remove(&pid);
        self.end_part(pid, Some(exit_of(ended.status)), ended.own.saturating_sub(before), clerk);
    }

    /// A followed process is gone, and nobody told how it ended.
    pub(crate) fn child_lost(&mut self, pid: i32, cpu: Duration, clerk: &Clerk<'_>) {
        self.followed.cpu += cpu;
        let before = self.cpu_before_exec.remove(&pid).unwrap_or_default();
        self.recorded.remove(&pid);
        self.end_part(pid, None, cpu.saturating_sub(before), clerk);
    }

    /// A followed process replaced itself by another program.
    pub(crate) fn child_replaced(&mut self, pid: i32, clerk: &Clerk<'_>) {
        let now = watch::cpu_time(pid);
        let before = self.cpu_before_exec.insert(pid, now).unwrap_or_default();
        self.end_part(pid, None, now.saturating_sub(before), clerk);
        let Some(stops) = &mut self.stops else { return };
        if stops.part_with(pid) {
            self.followed.refused += 1;
            self.followed.cpu += now;
            self.cpu_before_exec.remove(&pid);
            self.recorded.remove(&pid);
        } else {
            stops.go_on_without_probe(pid);
        }
    }

    fn end_part(&mut self, pid: i32, exit: Option<Exit>, cpu: Duration, clerk: &Clerk<'_>) {
        if let Some(shared) = self.children.remove(&pid) {
            self.gone.add(shared.control());
            let clock = self.clock;
            clerk.order(move |desk| desk.end_part(pid, exit, cpu, &clock));
        }
    }

    /// The program ended: those that are still there go on without us.
    pub(crate) fn leave_children(&mut self, desk: &mut Desk<'_>) {
        for shared in self.children.values() {
            shared.control().stop.store(1, Relaxed);
        }
        let Some(stops) = &mut self.stops else { return };
        let left = stops.release();
        self.followed.processes = stops.followed;
        self.followed.left_running = left.len() as u64;
        for pid in left {
            let cpu = watch::cpu_time(pid);
            self.followed.cpu += cpu;
            let before = self.cpu_before_exec.remove(&pid).unwrap_or_default();
            desk.end_part(pid, None, cpu.saturating_sub(before), &self.clock);
        }
    }
}
