//! Who calls whom, and where the instructions go: four summaries of control flow in one reader.
//!
//! After Nagpurkar, Mousa, Krintz and Sherwood, *Efficient Remote Profiling for Resource-Constrained Devices* (2006),
//! section 3.5:
//!
//! * **hot code regions**: each branch executed, with the instructions since the branch before it;
//! * **hot methods**: invocations and backward branches taken, by function;
//! * **hot call pairs**: call site and callee;
//!
//! and the **calling-context tree** (Zilles and Sohi 2001 name call-stack monitoring among what a profiling processor
//! has to run): instructions by the chain of calls that led to them, recursion folded onto the first activation.
//!
//! A jump from one function to the beginning of another is a call as well (`code.rs`).
//!
//! What is kept is exact for what was recorded, within [`Limits`]; what does not fit is counted in
//! [`CallProfile::not_kept`]. In bursts a context begins where the burst does: callers are known from the first return
//! to them on. Duties of the caller: the whole stream of one process in order. Non-goals: names (`sonde-symbol`), and
//! phases.
//!
//! ```
//! use sonde_calls::{CallsReader, Limits};
//!
//! let reader = CallsReader::new(Limits::default(), None);
//! assert_eq!(reader.finish().instructions, 0);
//! ```
#![forbid(unsafe_code)]

mod code;
mod contexts;
mod kept;
mod methods;
mod profile;
mod reader;
mod steps;
mod thread;

pub use contexts::{ELSEWHERE, ROOT};
pub use methods::{Method, methods};
pub use profile::{Backward, CallProfile, Context, Invoked, NotKept, Pair, Region};
pub use reader::{CallsReader, Limits};
