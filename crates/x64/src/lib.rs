//! Decode, classify, plan and emit instrumented copies of x86-64 code.
//!
//! A *superblock* is a run of instructions that starts at one pc, follows fall-through paths and direct jumps, and
//! can be left at several *exits*. Its [`Plan`](plan::Plan) says what one execution writes into the log: a header
//! word that names the exit, then the words from which every address and value of the path can be computed. The
//! plan is a pure function of the code bytes, so the program under study only publishes the bytes, and whoever
//! reads the log plans again to understand it. The same pass drives an [`Emitter`](emit::Emitter) inside the
//! program, which writes the instrumented copy.
//!
//! Duties of the caller: give bytes that stay what they are while the copy is in use, and run the copy with the
//! register convention of [`emit`] (r15 is the log pointer, r14 is scratch, the program's own r14 and r15 live in
//! the thread context behind gs).
//!
//! Non-goals: 16- and 32-bit code, executing anything, knowing about processes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod asm;
pub mod class;
pub mod emit;
pub mod flags;
pub mod memory;
pub mod plan;
mod planner;
mod references;
pub mod rewrite;
mod rules;
pub mod symbolic;
