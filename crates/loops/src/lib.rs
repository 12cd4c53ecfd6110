//! Loops of a program, from the stream of what it executed.
//!
//! - [`ExactReader`] finds the natural loops of each function and counts executions, iterations and instructions;
//! - [`DaprofReader`] is DAProf (Nair and Lysecky 2008), a profiler in hardware that sees short backward branches only, to
//!   the bit; [`FrequentReader`] is the frequent loop detection that it was compared with; [`ObserverReader`] sees the same
//!   branches without the limits of hardware;
//! - [`compare`](fn@compare) tells how far a profiler's loops are from the exact ones, [`partition`](fn@partition) what moving
//!   loops into hardware would bring.
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

mod branch;
mod calls;
mod compare;
mod daprof;
mod error;
mod exact;
mod frequent;
mod graph;
mod natural;
mod observer;
mod paper_terms;
mod partition;

pub use compare::{
    Actual, CompareConfig, Comparison, Reported, Row, compare, daprof_reports, errors_to_observer,
    frequent_reports, observer_reports,
};
pub use daprof::{
    Average, Calls, DaprofConfig, DaprofLoop, DaprofProfile, DaprofReader, Entry, Fifo, Granularity,
    ProfileCache, Rounding,
};
pub use error::LoopsError;
pub use exact::{
    BUCKETS, Cut, Doubts, Estimate, ExactConfig, ExactReader, LoopStats, LoopsProfile, Rounds, Seen, Spread,
    Weight,
};
pub use frequent::{FrequentConfig, FrequentLoop, FrequentProfile, FrequentReader};
pub use observer::{ObservedLoop, ObserverProfile, ObserverReader};
pub use paper_terms::{PaperTerms, in_the_papers_terms};
pub use partition::{Candidate, Partition, PartitionConfig, partition};
