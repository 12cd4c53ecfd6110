//! The profile: everything that Sonde knows of one run, or of many runs together, as one file (`.sonde`).
//!
//! A [`Profile`] holds what was kept of the stream (`sonde-summary`), each summary with its error, and how it was taken:
//! command, policy, trigger, losses, machine, time line ([`Run`]). [`Profile::write_to`] and [`Profile::read`] store it
//! in a documented format (docs/profile-format.md) that other languages can read; [`Profile::check`] knows what a true
//! profile can contain, and every profile that is read or written has passed it. Sizes are bounded whatever the program
//! did: runs by [`Profile::MOST_RUNS`], time lines by [`Timeline::MOST`], trees by [`Profile::MOST_NODES`].
//! [`Profile::merge`] adds runs up, [`diff`] tells what changed from one profile to another, beyond what both can be wrong by.
//!
//! Duties of the caller: addresses in summaries are places (`sonde-place`), since run-time addresses mean nothing in
//! another run. Non-goals: names for places (`sonde-symbol`), and how profiles are shown.
//!
//! ```
//! use sonde_profile::{Profile, Run};
//! # use sonde_summary::{Summary, Unit};
//! # fn summary() -> Summary {
//! #     Summary {
//! #         unit: Unit::Events, counts: Default::default(), bursts: Default::default(), ranges: Vec::new(),
//! #         blocks: Vec::new(), regions: Default::default(), cache: None, missing: Default::default(),
//! #         memory: Default::default(),
//! #     }
//! # }
//! let mut run = Run { policy: "always".into(), ..Run::default() };
//! run.set_command(["gzip", "-9", "file"]);
//! let profile = Profile::of_run(run, summary());
//! let path = std::env::temp_dir().join(format!("example-{}.sonde", std::process::id()));
//! profile.write_to(&path)?;
//! assert_eq!(Profile::read(&path)?, profile);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), sonde_profile::ProfileError>(())
//! ```
#![forbid(unsafe_code)]

mod analyses;
mod atomic;
mod check;
mod decode;
pub mod diff;
mod encode;
mod error;
mod file;
mod merge;
mod profile;
mod prune;
mod relocate;
mod run;
mod timeline;
mod trees;
mod wire;

pub use atomic::try_to_write;
pub use check::Invalid;
pub use error::ProfileError;
pub use file::{Limits, VERSION, begins_as_profile};
pub use merge::MergeOptions;
pub use profile::{Profile, Totals};
pub use run::{Ending, Named, Run};
pub use timeline::{Interval, Timeline};
