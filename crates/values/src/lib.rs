//! Load-value profiling: which values the loads of a program give, and how often each load gives the same one.
//!
//! Three ways over the same event stream, all giving a [`ValueProfile`]:
//! - [`ExactReader`] looks at every load, in bounded memory with a stated error;
//! - [`SlotReader`](slots::SlotReader) is the algorithm of Zilles and Sohi 2001 (section 5, appendix A), which learns
//!   about the most frequent loads first and stops asking for what it knows ([`filter`]);
//! - [`SamplingReader`] looks at one load in N.
//!
//! [`compare`] and [`race`] tell how good an estimate is and what it costs.
//!
//! Duties of the caller: a reader gets the stream of one process, recorded with values, and at the end the catalog of
//! the decoder that fed it. Weights ([`LoadValues::executions`]) are counts in the recorded stream; shares of time are
//! the report's business. Slots tell a live source what need not be recorded any more
//! ([`Reader::unwatched`](sonde_event::Reader::unwatched)). Non-goals: names, the profile file.
//!
//! ```
//! use sonde_values::{ExactConfig, ExactReader};
//! use sonde_event::{Decoder, Detail};
//!
//! let mut decoder = Decoder::new(Detail::Values);
//! let mut reader = ExactReader::new(ExactConfig::default())?;
//! // Descriptions and log come from a program or a trace file.
//! decoder.log(1, &[], &mut reader).unwrap();
//! let profile = reader.finish(decoder.catalog());
//! for load in &profile.loads {
//!     println!("{:#x} {:.0} %", load.pc, 100.0 * load.invariance(profile.method).estimate);
//! }
//! # Ok::<(), sonde_values::ValuesError>(())
//! ```
#![forbid(unsafe_code)]

pub mod compare;
mod error;
mod exact;
mod exact_table;
mod executions;
pub mod filter;
mod hash;
mod lfsr;
mod loads;
mod merge;
pub mod overhead;
mod profile;
pub mod race;
mod results;
mod sampling;
pub mod slots;

pub use error::ValuesError;
pub use exact::{ExactConfig, ExactReader};
pub use exact_table::{ExactTable, TableConfig};
pub use hash::{FUNCTIONS, hash};
pub use lfsr::Lfsr;
pub use loads::{Kinds, fingerprint};
pub use profile::{LoadValues, MAX_LOADS, MAX_VALUES, Method, Share, Totals, ValueCount, ValueProfile};
pub use sampling::{SamplingConfig, SamplingReader};
