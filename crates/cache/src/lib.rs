//! A model of two levels of data cache: which level a reference would be found in (Mysore et al. 2008, section 5.4,
//! profiles the values of loads that miss each of two levels).
//!
//! Both levels are set-associative, replace the least recently used line, and allocate on writes as on reads. The second
//! level sees what misses the first. A reference that crosses a line is as slow as its slowest line. [`Cache`] takes
//! about a nanosecond for a reference that hits.
//!
//! **One cache for all threads.** Streams of threads come in buffers, not in the order of their references, so a private
//! cache per thread would be as much of a guess as a shared one, and would need memory for every thread of the program.
//! The model is a machine with one core that runs the threads in turn.
//!
//! **Bursts.** Contents are kept between bursts. What the program touched in between is not known: a line may be
//! missing from the model that a real cache would hold, or the other way round. So misses of lines that the model has
//! never seen are counted apart ([`Statistics::first_touches`]): in a recording of everything they are the compulsory
//! misses, in bursts they are what cannot be judged.
//!
//! Duties of the caller: references in the order in which they were made. Non-goals: timing, prefetching, write-backs
//! (they would only change the order of replacement in the second level), coherence, pages.
//!
//! ```
//! use sonde_cache::{Cache, Config, Found};
//!
//! let mut cache = Cache::new(&Config::parse("32K:8:64,1M:16:64")?);
//! assert_eq!(cache.load(0x1000, 8), Found::Memory);
//! assert_eq!(cache.load(0x1038, 8), Found::First);
//! assert_eq!(cache.load(0x103c, 8), Found::Memory); // crosses into the next line
//! assert_eq!(cache.statistics().first_touches, 2);
//! # Ok::<(), sonde_cache::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod cache;
mod config;
mod recent;
mod seen;

pub use cache::{Cache, Found, Reference, Statistics};
pub use config::{Config, ConfigError, Geometry};
