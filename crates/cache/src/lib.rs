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
//! **Bursts.** What the program touched between bursts is not known, so the caller lets the model [forget](Cache::forget) where
//! one begins. What then is known follows from the burst alone: a line that was used in it and has not been pushed out since
//! is there; once lines of the burst fill a set, any other line is not. The rest is unknown, and counted as that: [`Bounds`] says
//! where a reference can have been found, and the true answer is always among it. (Keeping contents between bursts, as was done
//! before, called a list of 31 KiB a miss of a 1 MiB cache in one load of eight.)
//!
//! Duties of the caller: references in the order in which they were made. Non-goals: timing, prefetching, write-backs
//! (they would only change the order of replacement in the second level), coherence, pages.
//!
//! ```
//! use sonde_cache::{Bounds, Cache, Config, Found};
//!
//! let mut cache = Cache::new(&Config::parse("32K:8:64,1M:16:64")?);
//! assert_eq!(cache.load(0x1000, 8), Bounds::known(Found::Memory));
//! assert_eq!(cache.load(0x1038, 8), Bounds::known(Found::First));
//! assert_eq!(cache.load(0x103c, 8), Bounds::known(Found::Memory)); // crosses into the next line
//! assert_eq!(cache.statistics().first_touches, 2);
//! cache.forget();
//! assert_eq!(cache.load(0x1000, 8), Bounds { nearest: Found::First, farthest: Found::Memory });
//! assert_eq!(cache.load(0x1000, 8), Bounds::known(Found::First));
//! # Ok::<(), sonde_cache::ConfigError>(())
//! ```
#![forbid(unsafe_code)]

mod cache;
mod config;
mod recent;
mod second;
mod seen;

pub use cache::{Bounds, Cache, Found, Reference, Statistics};
pub use config::{Config, ConfigError, Geometry};
