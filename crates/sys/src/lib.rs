//! Raw Linux from inside a foreign process: system calls without a C library, and the structures they use.
//!
//! The probe lives in programs whose C library may be absent, different, or in the middle of a lock, so nothing here
//! calls one. Errors are the kernel's negative numbers turned into [`Errno`].
//!
//! Duties of the caller: every pointer given to a call is valid for what that call does with it. Non-goals: other
//! architectures, convenience.
#![no_std]

mod call;
pub mod memory;
pub mod process;
pub mod signal;
pub mod time;

pub use call::{Errno, syscall, syscall_raw};
