//! The plan of a superblock: its instructions, its exits, and what each exit's log record contains.

use crate::asm::Gpr;
use crate::class::Class;
use crate::memory::{Facts, Operand, Reference};
use alloc::vec::Vec;
use iced_x86::Instruction;

pub use crate::planner::Planner;

/// What is written to the log besides the path taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Blocks only.
    Blocks,
    /// Blocks and addresses of loads and stores.
    Addresses,
    /// Blocks, addresses and values.
    Values,
}

/// Bounds of a superblock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most instructions.
    pub insns: usize,
    /// No new instruction once the record has this many words.
    pub words: usize,
    /// Direct jumps that may be followed.
    pub jumps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { insns: 48, words: 96, jumps: 3 }
    }
}

/// Largest record in words that any plan can reach: the word limit plus what one instruction can add.
pub const MAX_RECORD_WORDS: usize = 96 + 64;

/// Something to write to the log at a point of the superblock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Log {
    /// A general register.
    Gpr {
        /// Where.
        word: u16,
        /// Which.
        reg: Gpr,
    },
    /// `base + index * scale`.
    Sum {
        /// Where.
        word: u16,
        /// Base register.
        base: Gpr,
        /// Index register.
        index: Gpr,
        /// Scale of the index.
        scale: u8,
    },
    /// `size` bytes of memory, in words.
    Memory {
        /// Where the first word goes.
        word: u16,
        /// The operand.
        operand: Operand,
        /// 1, 2, 4, or a multiple of 8.
        size: u8,
    },
    /// The low bytes of a vector register.
    Vector {
        /// Where the first word goes.
        word: u16,
        /// Register number, below 16.
        reg: u8,
        /// 4, 8, 16 or 32.
        bytes: u8,
        /// Whether the program's instruction is VEX-encoded.
        vex: bool,
    },
}

/// Why a superblock ends at an exit and where the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitKind {
    /// A conditional branch is taken.
    Taken,
    /// A direct jump.
    Jump,
    /// A direct call; the return address is pushed.
    Call,
    /// A return; the top of the stack is the target.
    Return,
    /// An indirect jump.
    IndirectJump,
    /// An indirect call.
    IndirectCall,
    /// The next instruction is a system call.
    Syscall,
    /// The next instruction is one that the copy does not run.
    Native,
    /// A limit was reached; the program goes on at the target.
    Fall,
}

/// One way out of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Why.
    pub kind: ExitKind,
    /// Instructions executed when leaving here.
    pub insns: u16,
    /// References made when leaving here.
    pub refs: u16,
    /// Words of the record, the header included.
    pub words: u16,
    /// Next pc, for direct exits.
    pub target: u64,
    /// Whether a burst counts this edge: function entries, back-edges, indirect branches (paper 4 section 2).
    pub check: bool,
}

/// Which instructions are recorded with their references.
#[derive(Clone, Copy)]
pub enum Watch<'a> {
    /// All.
    All,
    /// All but those with a bit here, by their place in the superblock: as another plan of the same code found out.
    AllBut(u64),
    /// Those with a load whose value can be recorded, if they are wanted by their pc.
    Loads(&'a dyn Fn(u64) -> bool),
}

/// One instruction of the superblock.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Where it lies in the program.
    pub pc: u64,
    /// Bytes.
    pub len: u8,
    /// Class.
    pub class: Class,
    /// Whether control can go elsewhere than to the next instruction in memory.
    pub branch: bool,
}

/// The plan of one superblock.
#[derive(Default)]
pub struct Plan {
    /// Instructions in the order of execution.
    pub insns: Vec<Insn>,
    /// References in the order of execution.
    pub refs: Vec<Reference>,
    /// Exits in the order of execution; the last one ends the superblock.
    pub exits: Vec<Exit>,
    /// Distinct stretches of program bytes used: start and length.
    pub segments: Vec<(u64, u32)>,
    /// Instructions with references that are not recorded, a bit each; for [`Watch::AllBut`].
    pub unrecorded: u64,
}

/// Receives the plan while it is made; the emitter is one.
pub trait Sink {
    /// A new instruction begins at the current position; a later [`rollback`](Sink::rollback) returns here.
    fn begin(&mut self, insn: &Instruction);
    /// Forget everything since the last `begin`.
    fn rollback(&mut self);
    /// Write this to the log here.
    fn log(&mut self, log: &Log);
    /// The program's instruction itself; false if it cannot be copied.
    fn insn(&mut self, insn: &Instruction, bytes: &[u8], facts: &Facts<'_>) -> bool;
    /// Whether the flags at the target of this exit matter, because the branch at `pc` is going to count a check there.
    fn asks_for_flags(&self, _pc: u64, _exit: &Exit) -> bool {
        false
    }
    /// Whether the flags are overwritten at the target of the next exit before they are read.
    fn flags_are_dead(&mut self, _dead: bool) {}
    /// A conditional exit.
    fn side_exit(&mut self, insn: &Instruction, exit: &Exit) -> bool;
    /// The last exit; `insn` is the branch that makes it, if one does. False if it cannot be copied.
    fn last_exit(&mut self, insn: Option<&Instruction>, exit: &Exit) -> bool;
}

/// A sink for readers of the log, who need the plan only.
pub struct NoSink;

impl Sink for NoSink {
    fn begin(&mut self, _: &Instruction) {}
    fn rollback(&mut self) {}
    fn log(&mut self, _: &Log) {}
    fn insn(&mut self, _: &Instruction, _: &[u8], _: &Facts<'_>) -> bool {
        true
    }
    fn side_exit(&mut self, _: &Instruction, _: &Exit) -> bool {
        true
    }
    fn last_exit(&mut self, _: Option<&Instruction>, _: &Exit) -> bool {
        true
    }
}
