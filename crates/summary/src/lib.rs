//! What is kept of a stream: summaries in bounded memory, several at once, each with its error.
//!
//! Non-goals: the file they are stored in (`sonde-profile`) and how they are shown.
#![forbid(unsafe_code)]

mod bursts;
mod kind;
mod ranges;
mod summary;
mod unit;

pub use bursts::Bursts;
pub use kind::{Domain, Kind};
pub use ranges::{Ranges, Trees};
pub use summary::{BlockWeight, CacheCounts, Chance, Memory, Missing, Summary};
pub use unit::Unit;
