//! What one way through a superblock means for control flow, worked out once for each.

use crate::code::{Code, Jump};
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
    IndirectJump {
        /// The jump.
        site: u64,
        /// First address and end of the function it is in; both 0 if that is not known.
        within: (u64, u64),
    },
    /// With a jump to the beginning of another function.
    Tail {
        /// The jump.
        site: u64,
    },
    /// With a jump in code of which nothing is known.
    Jump {
        /// The jump.
        site: u64,
    },
    /// In another way.
    Other,
}

/// A call, return or jump to another function inside a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What it is.
    pub last: Last,
    /// Instructions of the pass up to and including it.
    pub insns: u32,
    /// Where the pass goes on.
    pub target: u64,
    /// Whether that is a stub, which leads to somewhere else.
    pub to_stub: bool,
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

/// Whether a call goes through a pass to get to its callee, as through a procedure linkage table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stub {
    /// It does not.
    #[default]
    No,
    /// It does.
    Through,
    /// It does, to what looks the callee up first and then jumps to it.
    Binding,
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
    /// Calls, returns and jumps to other functions before the end.
    pub turns: Vec<Turn>,
    /// How it ends.
    pub last: Last,
    /// Whether it leads to a callee.
    pub stub: Stub,
}

/// A stub that jumps through a table has few instructions.
const STUB: u32 = 4;

impl Steps {
    /// Works a path out.
    pub fn of(superblock: &Superblock, path: &Path, code: &mut Code) -> Steps {
        let mut steps = Steps {
            pc: superblock.pc,
            insns: u32::from(path.insns),
            branches: Vec::new(),
            tail: 0,
            turns: Vec::new(),
            last: Last::Other,
            stub: Stub::No,
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
            let jumps = matches!(insn.class, Class::Conditional | Class::Jump) && taken && next != 0;
            let backward = jumps && next <= insn.pc;
            steps.branches.push(Branch { pc: insn.pc, insns: since, backward });
            since = 0;
            let last = match insn.class {
                Class::Call => Last::Call { site: insn.pc, back: behind },
                Class::Return => Last::Return,
                Class::IndirectJump => {
                    let within = code.piece(insn.pc).map_or((0, 0), |piece| (piece.start, piece.end));
                    Last::IndirectJump { site: insn.pc, within }
                }
                class if jumps => match code.jump(insn.pc, next, class == Class::Conditional) {
                    Jump::Tail => Last::Tail { site: insn.pc },
                    Jump::Unknown => Last::Jump { site: insn.pc },
                    Jump::Plain => Last::Other,
                },
                _ => Last::Other,
            };
            if at_end {
                steps.last = last;
            } else if !matches!(last, Last::Other | Last::IndirectJump { .. }) {
                let to_stub = code.is_stub(next);
                steps.turns.push(Turn { last, insns: i as u32 + 1, target: next, to_stub });
            }
        }
        steps.tail = since;
        steps.stub = steps.stub_kind(code);
        steps
    }

    /// Whether a thread only goes on by it where it is: no call or return, and a branch at the end.
    pub fn is_straight(&self) -> bool {
        self.last == Last::Other && self.turns.is_empty() && self.tail == 0 && self.stub == Stub::No
    }

    fn stub_kind(&self, code: &mut Code) -> Stub {
        let indirect = matches!(self.last, Last::IndirectJump { .. });
        let direct = self.last == Last::Other && self.tail == 0;
        match code.piece(self.pc) {
            // On its first call a stub jumps to the part that all of them have in common.
            Some(_) if code.is_stub(self.pc) && self.turns.is_empty() => match self.branches.len() {
                1 if indirect => Stub::Through,
                2.. if indirect => Stub::Binding,
                1 if direct => Stub::Binding,
                _ => Stub::No,
            },
            Some(_) => Stub::No,
            None if indirect && self.insns <= STUB && self.turns.is_empty() => Stub::Through,
            None => Stub::No,
        }
    }
}
