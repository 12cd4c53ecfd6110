//! All analyses of a stream behind one reader: range-adaptive trees, calls, loops, load values and hot data streams,
//! chosen by name, within one memory limit; what they find is told in places, so that it can be merged with other runs.
//!
//! Duties of the caller: the whole stream of one process, and its mappings. Non-goals: storing (`sonde-profile`) and
//! showing (`sonde-report`).
//!
//! ```
//! use sonde_analysis::{Analyses, Config, Wanted};
//!
//! let wanted = Wanted::parse("default,streams")?;
//! assert!(wanted.calls && wanted.streams);
//! let config = Config { wanted, ..Config::default() };
//! let analyses = Analyses::new(&config)?;
//! # Ok::<(), sonde_analysis::AnalysisError>(())
//! ```
#![forbid(unsafe_code)]

mod analyses;
mod config;
mod findings;
mod values;
mod wanted;

pub use analyses::Analyses;
pub use config::{AnalysisError, Config, ValueMethod};
pub use findings::Findings;
pub use wanted::Wanted;
