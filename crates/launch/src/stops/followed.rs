//! Child processes that are followed: they stay under our control, and get a probe when a burst is due.

use super::{ATTEMPTS, Inside, Process, Stops};
use crate::begin::{self, ptrace};
use crate::habits::Habits;
use crate::place::Holdings;
use crate::shared::SharedMemory;
use crate::thread_files::{family_of, status_of};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

impl Stops {
    /// Whether a new child is one of a debugger, perhaps: a process has one tracer, and that is to be the debugger.
    pub(super) fn is_traced_by_its_parent(&mut self, child: i32) -> bool {
        family_of(child).is_some_and(|(_, parent)| self.habits(parent).traces)
    }

    /// A thread of a debugger, perhaps, has made a child: that is let go before the thread goes on, and may trace it.
    pub(super) fn settle_child(&mut self, pid: i32, tid: i32) {
        let (mut child, mut status) = (0u64, 0);
        if ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut child as usize).is_err() {
            return;
        }
        let child = child as i32;
        if family_of(child).is_none_or(|(process, _)| process == pid) {
            return;
        }
        // SAFETY: the status is written to a local. It stops at once; if it was let go already, it is not waited for.
        if unsafe { libc::waitpid(child, &mut status, libc::__WALL) } == child && libc::WIFSTOPPED(status) {
            self.child(child);
        }
    }

    /// What a process does with ptrace. Files are read once.
    pub(super) fn habits(&mut self, pid: i32) -> Habits {
        let exe = PathBuf::from(format!("/proc/{pid}/exe"));
        let Ok(file) = fs::metadata(&exe) else { return Habits::default() };
        *self.habits.entry((file.dev(), file.ino())).or_insert_with(|| Habits::of(&exe))
    }

    /// A followed process stands still in a new image: if that would fail under a tracer, it goes on without us.
    pub fn part_with(&mut self, pid: i32) -> bool {
        let parts = self.habits(pid).checks_leaks;
        if parts {
            let _ = ptrace(libc::PTRACE_DETACH, pid, 0, 0);
            self.forget(pid);
        }
        parts
    }

    /// Follows a child, if it is one that can be.
    pub(super) fn adopt(&mut self, pid: i32) -> bool {
        let Some(flags) = begin::clone_flags(pid) else { return false };
        let (shares, waits) = (flags & libc::CLONE_VM as u64 != 0, flags & libc::CLONE_VFORK as u64 != 0);
        if shares && !waits || flags & libc::CLONE_PARENT as u64 != 0 {
            return false;
        }
        let parent = family_of(pid).and_then(|(_, parent)| self.processes.get(&parent));
        let holdings = parent.filter(|_| !shares).map(|p| p.holdings.clone()).unwrap_or_default();
        let inside = if shares { Inside::ParentsMemory } else { Inside::Nothing };
        self.processes
            .insert(pid, Process { inside, seccomp: status_of(pid, pid).seccomp, holdings, failures: 0 });
        self.followed += 1;
        let gap = self.gaps.first();
        self.cover(pid, pid, gap);
        let _ = ptrace(libc::PTRACE_CONT, pid, 0, 0);
        true
    }

    /// A followed process runs on in its new image, and gets a probe when a burst is due.
    pub fn go_on_without_probe(&mut self, pid: i32) {
        let gap = self.gaps.first();
        self.cover(pid, pid, gap);
        let _ = ptrace(libc::PTRACE_CONT, pid, 0, 0);
    }

    /// Mappings of ours in a process.
    pub fn holdings(&self, pid: i32) -> Holdings {
        self.processes.get(&pid).map(|p| p.holdings.clone()).unwrap_or_default()
    }

    /// A process that was due got its probe: begins its burst.
    pub fn placed(&mut self, pid: i32, tid: i32, holdings: Holdings, shared: &SharedMemory) {
        let memory = File::options().read(true).write(true).open(format!("/proc/{tid}/mem"));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.holdings = holdings;
            process.inside = memory.map_or(Inside::Refused, Inside::Probe);
        }
        self.begin(pid, tid, shared);
        self.resume(tid, 0);
    }

    /// It could not get one. After some attempts it is let be; says whether that is so now.
    pub fn failed(&mut self, pid: i32, tid: i32) -> bool {
        self.resume(tid, 0);
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        // What of the old ones is left is not known now.
        process.holdings = Holdings::default();
        process.failures += 1;
        if process.failures < ATTEMPTS {
            return false;
        }
        process.inside = Inside::Refused;
        true
    }
}
