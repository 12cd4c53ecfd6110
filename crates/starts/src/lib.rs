//! Where bursts begin: a sample of where the time goes.
//!
//! A burst begins at the instruction that a thread has reached when its CPU time is up, so beginnings are what an ordinary
//! profiler's samples are: code that takes 30 % of the time gets 30 % of them, whether it computes or waits for memory. Every
//! share of time that Sonde shows rests on them (`docs/design/weights.md`).
//!
//! A trigger that falls into a system call begins its burst right behind it, one that falls into a page fault at the
//! instruction that made it (trigger `stops`): these are samples of the kernel's time, and are counted apart.
//!
//! Duties of the caller: the whole stream of one process in order. Non-goals: names; the time inside bursts.
//!
//! ```
//! use sonde_event::{Begin, Reader};
//! use sonde_starts::{StartsConfig, StartsReader};
//!
//! let mut reader = StartsReader::new(StartsConfig { picoseconds: 10, ..StartsConfig::default() });
//! reader.begin(&Begin { tid: 1, time: 0, pc: 0x1000, kernel: None });
//! let profile = reader.finish();
//! assert_eq!((profile.starts[0].pc, profile.starts[0].sum.weight), (0x1000, 10));
//! ```
#![forbid(unsafe_code)]

mod profile;
mod reader;

pub use profile::{Start, StartsProfile, Sum};
pub use reader::{StartsConfig, StartsReader};
