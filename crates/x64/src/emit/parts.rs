//! What the emitter tells of a copy: where its parts lie.

use crate::asm::Gpr;

/// A patchable jump of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Position of the rel32.
    pub at: usize,
    /// Index of the exit within the superblock.
    pub exit: usize,
    /// The rel32 that leads to the engine.
    pub away: i32,
}

/// Where one instruction lies in the copy.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// The program's pc.
    pub pc: u64,
    /// First byte of its instrumentation.
    pub start: usize,
    /// The instruction itself, or the part of it that first changes the program's state: up to and including here,
    /// the state before the instruction can be put back.
    pub exec: usize,
    /// First byte after the instruction itself took effect.
    pub done: usize,
    /// Where the rewritten instruction with its borrowed registers begins.
    pub body: usize,
    /// Registers borrowed besides r14, by spill slot.
    pub borrowed: [Option<Gpr>; 3],
}
