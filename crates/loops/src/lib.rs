//! Loops of a program, from the stream of what it executed.
//!
//! [`ExactReader`] finds the natural loops of each function and counts executions, iterations and instructions exactly.
//!
//! Duties of the caller: one reader per process (exit numbers and code are those of one catalog), and at the end the
//! catalog of the same stream. Non-goals: names of functions and lines, files.
//!
//! ```
//! use sonde_event::{Catalog, Detail};
//! use sonde_loops::{ExactConfig, ExactReader};
//!
//! let reader = ExactReader::new(ExactConfig::default())?;
//! // ... feed it: `decoder.log(tid, words, &mut reader)`, or `sonde_event::trace::replay` ...
//! let profile = reader.finish(&Catalog::new(Detail::Blocks));
//! for hot in profile.hottest() {
//!     println!("{:#x}: {} x {:.1}", hot.header, hot.whole.executions, hot.whole.mean());
//! }
//! # Ok::<(), sonde_loops::LoopsError>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod exact;
mod graph;
mod natural;

pub use error::LoopsError;
pub use exact::{
    BUCKETS, Cut, Doubts, ExactConfig, ExactReader, LoopStats, LoopsProfile, Rounds, Spread, Weight,
};
