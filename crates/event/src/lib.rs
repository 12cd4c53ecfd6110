//! What happened in a program: descriptions of its code (static) and the stream of executed paths with their memory
//! references (dynamic), live or replayed.
//!
//! One stream, many readers: everything that summarizes, models hardware or counts exactly implements [`Reader`]. The
//! unit of the stream is a [`Run`]: one pass through a superblock up to one of its exits. A reader that only needs
//! blocks looks at [`Run::blocks`] and never pays for references; one that needs data iterates [`Run::references`],
//! which computes addresses and values from the logged words.
//!
//! Duties of the caller: feed descriptions before the log that uses them ([`Decoder::describe`], then
//! [`Decoder::log`]). Non-goals: symbols, sampling decisions.
//!
//! ```
//! use sonde_event::{Reader, Run};
//!
//! #[derive(Default)]
//! struct Instructions(u64);
//!
//! impl Reader for Instructions {
//!     fn run(&mut self, run: &Run<'_>) {
//!         self.0 += run.instructions();
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

mod catalog;
pub mod check;
mod decode;
mod error;
mod found;
pub mod maps;
mod passes;
mod plain;
mod reader;
mod readers;
mod recipe;
mod sums;
pub mod trace;

pub use catalog::{Block, Catalog, Path, PathSize, Superblock};
pub use decode::{Decoder, Lost};
pub use error::StreamError;
pub use passes::{PassAt, Passes, Taken};
pub use plain::{PlainKind, PlainRecipe, PlainRef};
pub use reader::{Begin, BlockRun, Count, Counts, End, Kernel, Reader, Ref, Run, Signal, Syscall, Unwatched};
pub use sonde_wire::marker::Cause;
pub use sonde_x64::class::Class;
pub use sonde_x64::memory::Access;
pub use sonde_x64::plan::{Detail, ExitKind, Insn};
pub use sums::total;
