//! Threads that count their checks themselves, in the program's own code, and ring when they used them up.

use super::{Find, Inside, Process, Stops, is_its_own, is_ours};
use crate::begin::{Site, ptrace, registers};
use crate::in_place::{Changes, Entry};
use crate::shared::SharedMemory;
use sonde_wire::slot::Head;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;

impl Stops {
    /// Stops those that used their checks up.
    pub(super) fn hear(&mut self) {
        let Some(changes) = &self.changes else { return };
        while let Some(tid) = changes.next_ring() {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.asked = ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0).is_ok();
            }
        }
    }

    /// A descriptor that tells when there is something to do, besides reports.
    pub fn fd(&self) -> Option<i32> {
        self.changes.as_ref().map(Changes::fd)
    }

    /// The program stands still before its first instruction, and its code is to be changed when it comes to its entry.
    pub fn change_at_entry(&mut self, entry: Entry) {
        self.entry = Some(entry);
    }

    /// The program stands at its entry: its code was changed.
    pub fn changed(&mut self, changes: Changes, shared: &SharedMemory) {
        self.changes = Some(changes);
        let memory = File::options().read(true).write(true).open(format!("/proc/{}/mem", self.program));
        if let (Some(changes), Ok(memory)) = (&self.changes, memory) {
            changes.prepare(&memory);
        }
        self.arm(self.program, shared);
    }

    /// A thread gets a context to count its checks in. One that is not covered is not to ring: nobody would answer.
    pub(super) fn arm(&self, tid: i32, shared: &SharedMemory) {
        let pid = self.program;
        let (Some(changes), Some(process)) = (&self.changes, self.processes.get(&pid)) else { return };
        let Inside::Probe(memory) = &process.inside else { return };
        let lives = |tid: i32| self.threads.get(&tid).is_some_and(|thread| thread.pid == pid);
        let control = shared.control();
        let site =
            Site { pid, tid, memory, seccomp: process.seccomp, control, faulted: false, lives: &lives };
        let slot = site.slot().filter(|_| self.threads.contains_key(&tid));
        changes.arm(tid, slot.map(|(at, _)| at), memory);
    }

    /// What was changed in the program's code.
    pub fn changes(&self) -> Option<&Changes> {
        self.changes.as_ref()
    }

    /// A thread that rang stands still: begins a burst.
    pub(super) fn rang(&mut self, pid: i32, tid: i32, shared: &Find<'_>) {
        let Some(Process { inside: Inside::Probe(memory), .. }) = self.processes.get(&pid) else { return };
        let Some(changes) = &self.changes else { return };
        let (true, Some(shared)) = (changes.answer(tid, memory), shared(pid)) else { return };
        if shared.control().stop.load(Relaxed) == 0 {
            self.begin(pid, tid, shared);
        }
        if let Some(changes) = &self.changes {
            changes.go_on(tid);
        }
    }

    /// The program's only thread, which stands still with a signal and in no stub, gets its code as it was: from now on it counts
    /// nothing.
    pub(super) fn give_back(&mut self, pid: i32, tid: i32) -> bool {
        let Some(changes) = &self.changes else { return false };
        let inside = self.processes.get(&pid).map(|process| &process.inside);
        let Some(Inside::Probe(memory)) = inside else { return false };
        let mut head = [0; 64];
        let read = registers(tid).is_ok_and(|regs| memory.read_exact_at(&mut head, regs.gs_base).is_ok());
        // In a burst, which a fault ends, it is in the engine and its copies.
        if !read || Head::decode(&head).is_active() {
            return false;
        }
        is_ours(tid, self.care);
        let given = changes.give_back(tid);
        is_its_own(tid, self.care);
        if let Some(process) = self.processes.get_mut(&pid).filter(|_| given) {
            process.inside = Inside::Refused;
        }
        given
    }

    /// A signal is about to be delivered: not in the middle of a stub.
    pub(super) fn lead_out(&self, pid: i32, tid: i32) {
        let process = self.processes.get(&pid).filter(|_| pid == self.program);
        if let (Some(changes), Some(Process { inside: Inside::Probe(memory), .. })) = (&self.changes, process)
        {
            changes.lead_out(tid, memory);
        }
    }
}
