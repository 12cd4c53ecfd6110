//! Hot data streams: the sequences of loads and stores that a program repeats, after Hirzel & Chilimbi 2001 (bursty
//! tracing, section 5.2) and the one-pass analysis of Chilimbi & Hirzel 2002.
//!
//! [`StreamsReader`] takes the event stream, turns every reference (pc and address) into a number, builds a grammar of
//! them with [`sequitur`], and gives a [`StreamsProfile`]: the streams that together account for 90 % of the references,
//! with heat, shape, bounds, and what was lost. [`signature`] compares profiles; [`bursts`] measures what sampling costs
//! in quality.
//!
//! Duties of the caller: feed one process per reader, all of its threads. Memory is bounded by [`StreamsConfig`].
//! Non-goals: names for addresses, shares of time (heat is a share of references), and finding every hot subsequence:
//! [`hot`] says what is promised.
//!
//! ```
//! use sonde_event::{Access, Ref};
//! use sonde_streams::{Shape, StreamsConfig, StreamsReader};
//!
//! let mut reader = StreamsReader::new(StreamsConfig::default())?;
//! for _ in 0..100 {
//!     for i in 0..20 {
//!         let load = Ref {
//!             pc: 0x401000,
//!             access: Access::Load,
//!             size: 8,
//!             recorded: true,
//!             address: Some(0x10_0000 + 64 * i),
//!             value: None,
//!             count: 1,
//!             atomic: false,
//!             conditional: false,
//!         };
//!         reader.reference(1, &load);
//!     }
//! }
//! let profile = reader.finish();
//! assert_eq!(profile.references, 2000);
//! assert!(profile.coverage() > 0.9);
//! assert_eq!(profile.streams[0].shape, Shape::Strided { stride: 64 });
//! # Ok::<(), sonde_streams::StreamsError>(())
//! ```
#![forbid(unsafe_code)]

pub mod bursts;
mod config;
mod found;
pub mod grammar;
pub mod hot;
mod profile;
mod reader;
pub mod sequitur;
pub mod shape;
pub mod signature;
mod symbols;

pub use config::{StreamsConfig, StreamsError};
pub use profile::{Lost, Stream, StreamsProfile};
pub use reader::StreamsReader;
pub use shape::Shape;
pub use symbols::Reference;
