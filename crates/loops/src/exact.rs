//! The exact loop profile.
//!
//! Live, nothing is known of loops: each thread keeps, per activation of a function, the blocks on the way from the
//! function's entry to where it is, without the rounds made. A block that is met again is a new round, and the blocks
//! behind it are forgotten. Such a way holds all dominators of its last block, so in a reducible function the rounds
//! of a block are exactly the passes through its natural loop, and blocks that head none have one pass each. At the end
//! the natural-loop analysis says which blocks are headers.

mod burst;
mod claims;
mod config;
mod finish;
mod notes;
mod profile;
mod reader;
mod rounds;
mod seen;
mod thread;

pub use config::{ExactConfig, Weight};
pub use profile::{BUCKETS, Cut, Doubts, LoopStats, LoopsProfile, Rounds, Spread};
pub use reader::ExactReader;
pub use seen::{Estimate, Seen};
