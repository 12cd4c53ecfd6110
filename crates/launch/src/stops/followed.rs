//! Child processes that are followed: they stay under our control, and get a probe when a burst is due.

use super::{ATTEMPTS, Inside, Process, Stops};
use crate::begin::{self, ptrace};
use crate::place::Holdings;
use crate::shared::SharedMemory;
use crate::thread_files::{family_of, status_of};
use std::fs::File;

impl Stops {
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
        let _ = ptrace(libc::PTRACE_CONT, tid, 0, 0);
    }

    /// It could not get one. After some attempts it is let be; says whether that is so now.
    pub fn failed(&mut self, pid: i32, tid: i32) -> bool {
        let _ = ptrace(libc::PTRACE_CONT, tid, 0, 0);
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
