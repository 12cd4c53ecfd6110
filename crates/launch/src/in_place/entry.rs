//! Waits until a program is at its entry: its libraries are mapped then, and none of its own code has run.

use crate::begin::{clone_flags, registers};
use crate::error::LaunchError;
use crate::ptrace::Tracee;
use crate::stops::finish_exec;
use std::fs;

/// A breakpoint at a program's entry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    at: u64,
    /// What was there.
    byte: u8,
}

const BREAKPOINT: u8 = 0xcc;
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;

/// The entry of a program that stands still before its first instruction. None if it is there already (no dynamic loader).
pub fn expect(tracee: &Tracee) -> Result<Option<Entry>, LaunchError> {
    let at = auxiliary(tracee.pid, AT_ENTRY).unwrap_or(0);
    if tracee.registers()?.rip == at {
        return Ok(None);
    }
    let mut byte = [0];
    tracee.read(at, &mut byte)?;
    tracee.write(at, &[BREAKPOINT])?;
    Ok(Some(Entry { at, byte: byte[0] }))
}

impl Entry {
    /// Whether a thread that a trap stopped has reached it: then the breakpoint is taken away.
    pub fn is_reached(self, tid: i32) -> bool {
        let Ok(mut regs) = registers(tid) else { return false };
        if regs.rip != self.at + 1 {
            return false;
        }
        regs.rip = self.at;
        let restored = Tracee::new(tid).and_then(|tracee| {
            tracee.write(self.at, &[self.byte])?;
            tracee.set_registers(&regs)
        });
        if restored.is_ok() {
            // Not in the stop of the trap, which the program would get if Sonde died now: analysing takes seconds.
            finish_exec(tid);
        }
        restored.is_ok()
    }

    /// A child process that a library started before, and that is let go, may come there, too. One that runs in its parent's
    /// memory execs before.
    pub fn take_away_from(self, child: i32) {
        if clone_flags(child).is_some_and(|flags| flags & libc::CLONE_VM as u64 == 0) {
            let _ = Tracee::new(child).and_then(|tracee| tracee.write(self.at, &[self.byte]));
        }
    }
}

/// Where the dynamic loader lies, if there is one.
pub fn loader(pid: i32) -> Option<u64> {
    auxiliary(pid, AT_BASE).filter(|base| *base != 0)
}

fn auxiliary(pid: i32, name: u64) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
    bytes.chunks_exact(16).find(|pair| word(&pair[..8]) == name).map(|pair| word(&pair[8..]))
}
