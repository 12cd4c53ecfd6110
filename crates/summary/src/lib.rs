//! What is kept of a stream: summaries in bounded memory, several at once, each with its error.
//!
//! [`Summaries`] is a reader. It gives every event a stable place (`sonde-place`) and a weight, and grows a range-adaptive
//! tree of each chosen [`Kind`] from it (Mysore et al. 2008, sections 5.1 to 5.5), under one limit on memory.
//! [`Summaries::finish`] leaves a [`Summary`]: plain data, to be stored, merged and shown by others.
//!
//! **Weights.** Bursts are taken after equal CPU time. With [`Config::burst_time`] the instruction at which a burst begins
//! has that time, as with the samples of an ordinary profiler; the references and branches of the code that it began in
//! share it out evenly among the instructions of that code (`window.rs`). So weights are picoseconds and shares are shares
//! of time; see [`Unit`] and [`Bursts`]. Without, every event counts one. What a burst recorded waits for its end; of the
//! references of a very long one a random part is kept, which weighs accordingly more and is counted
//! ([`Bursts::thinned`]).
//!
//! **Threads.** With [`Config::consumers`] above one, trees grow in other threads than the one that reads. The result is
//! the same.
//!
//! Duties of the caller: tell the mappings as they appear ([`sonde_event::Reader::mapping`]) and look for more when
//! [`sonde_event::Reader::wants_mappings`] says so; call `finish` with the catalog of the same stream. Non-goals: the file
//! that summaries are stored in (`sonde-profile`) and how they are shown.
//!
//! ```
//! use sonde_event::{Catalog, Detail};
//! use sonde_summary::{Config, Kind, Summaries, What};
//!
//! let config = Config { what: What::parse("code,loads")?, ..Config::default() };
//! let summaries = Summaries::new(config)?;
//! // ... feed it as a reader of a stream ...
//! let summary = summaries.finish(&Catalog::new(Detail::Values));
//! assert_eq!(summary.of(Kind::Code).unwrap().events, 0);
//! # Ok::<(), sonde_summary::SummaryError>(())
//! ```
#![forbid(unsafe_code)]

mod accesses;
mod bank;
mod batch;
mod blocks;
mod bursts;
mod code;
mod columns;
mod config;
mod crew;
mod error;
mod finish;
mod keys;
mod kind;
mod logged;
mod one_by_one;
mod open;
mod passes;
mod pending;
mod ranges;
mod reference;
mod rows;
mod samples;
mod small;
mod sorted;
mod summaries;
mod summary;
mod unit;
mod ways;
mod what;
mod window;

pub use blocks::add_up_light;
pub use bursts::Bursts;
pub use config::{BurstTime, Config};
pub use error::SummaryError;
pub use kind::{Domain, Kind};
pub use ranges::{Ranges, Trees};
pub use summaries::Summaries;
pub use summary::{BlockWeight, CacheCounts, Chance, Memory, Missing, Summary};
pub use unit::Unit;
pub use what::What;
