//! What one way through a superblock means for control flow, worked out once for each.

use sonde_event::{Class, ExitKind, Path, Superblock};

/// How a pass ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// With a call; the address is where it returns to.
    Call {
        /// The call instruction.
        site: u64,
        /// Where it returns to.
        back: u64,
    },
    /// With a return.
    Return,
    /// With an indirect jump.
    IndirectJump,
    /// In another way.
    Other,
}

/// A call or return inside a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What it is.
    pub last: Last,
    /// Instructions of the pass up to and including it.
    pub insns: u32,
    /// Where the pass goes on.
    pub target: u64,
}

/// A branch executed in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its pc.
    pub pc: u64,
    /// Instructions since the branch before it in the pass, or the start; itself included.
    pub insns: u32,
    /// Whether it was taken, backwards.
    pub backward: bool,
}

/// One way through a superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Where it starts.
    pub pc: u64,
    /// Instructions.
    pub insns: u32,
    /// Branches executed, in order.
    pub branches: Vec<Branch>,
    /// Instructions behind the last branch.
    pub tail: u32,
    /// Calls and returns before the end.
    pub turns: Vec<Turn>,
    /// How it ends.
    pub last: Last,
}

/// A stub that jumps through a table has few instructions.
const STUB: u32 = 4;

impl Steps {
    /// Works a path out.
    pub fn of(superblock: &Superblock, path: &Path) -> Steps {
        let mut steps = Steps {
            pc: superblock.pc,
            insns: u32::from(path.insns),
            branches: Vec::new(),
            tail: 0,
            turns: Vec::new(),
            last: Last::Other,
        };
        let insns = &superblock.insns[..path.insns as usize];
        let mut since = 0;
        for (i, insn) in insns.iter().enumerate() {
            since += 1;
            if !insn.branch {
                continue;
            }
            let behind = insn.pc + u64::from(insn.len);
            let at_end = i + 1 == insns.len();
            let next = if at_end { path.target } else { insns[i + 1].pc };
            // A conditional branch at the end is taken or falls out of the superblock: the kind of the exit tells.
            let taken = if at_end { path.kind != ExitKind::Fall } else { next != behind };
            let jumps = matches!(insn.class, Class::Conditional | Class::Jump);
            let backward = jumps && taken && next != 0 && next <= insn.pc;
            steps.branches.push(Branch { pc: insn.pc, insns: since, backward });
            since = 0;
            let last = match insn.class {
                Class::Call => Last::Call { site: insn.pc, back: behind },
                Class::Return => Last::Return,
                Class::IndirectJump => Last::IndirectJump,
                _ => Last::Other,
            };
            if at_end {
                steps.last = last;
            } else if matches!(last, Last::Call { .. } | Last::Return) {
                steps.turns.push(Turn { last, insns: i as u32 + 1, target: next });
            }
        }
        steps.tail = since;
        steps
    }

    /// Whether a thread only goes on by it where it is: no call or return, and a branch at the end.
    pub fn is_straight(&self) -> bool {
        self.last == Last::Other && self.turns.is_empty() && self.tail == 0
    }

    /// Whether it is a stub that a call goes through to get to its callee, as in a procedure linkage table.
    pub fn is_stub(&self) -> bool {
        self.last == Last::IndirectJump && self.insns <= STUB && self.turns.is_empty()
    }
}
