//! The burst engine: what runs inside the program under study.
//!
//! The program's own code is never changed. A trigger signal interrupts a thread; its handler rewrites the program
//! counter, and the thread goes on in an instrumented copy of its code, made lazily superblock by superblock. Calls in
//! the copy push the original return addresses, so that the thread can go native at any block boundary: it does when
//! its checks are used up, before a system call, or at anything the copy does not run. See docs/design/translation.md.
//!
//! Duties of the caller ([`start`]): give a shared mapping laid out by `sonde-wire`, once per process, from a thread
//! with all signals blocked. Non-goals: deciding when to record (policy), understanding what was recorded (launch).
#![no_std]

extern crate alloc;

mod ask;
mod burst;
pub mod cache;
pub mod code_map;
pub mod deliver;
pub mod entry;
pub mod fault;
mod filling;
pub mod found;
pub mod frame;
pub mod heap;
mod in_place;
pub mod log;
pub mod mask;
pub mod program_memory;
pub mod random;
pub mod resident;
pub mod room;
pub mod spin;
pub mod state;
pub mod syscall;
pub mod thread;
pub mod translate;
pub mod trigger;
pub mod virtual_signals;
pub mod wanted;
pub mod whole;

pub use state::{Start, start};
