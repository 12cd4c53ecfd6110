//! What the end-to-end tests and the benchmarks share: the hostile programs (manifest, compiler, generator), running a
//! program with a time limit, the modes of `sonde run` with random settings, and the comparison of two runs.
//!
//! The caller chooses the folder for executables, the seed and the limits; nothing here reads a clock except to enforce a
//! limit. Not here: measuring (that is `sonde-bench`).
//!
//! ```
//! let programs = sonde_harness::manifest::programs().unwrap();
//! assert!(programs.iter().any(|p| p.name == "fault_pc"));
//! ```
#![deny(unsafe_code)]

pub mod compile;
pub mod early_end;
pub mod huge;
pub mod leftovers;
pub mod manifest;
pub mod process;
pub mod random;
pub mod sessions;
pub mod settings;
#[allow(unsafe_code, reason = "a child's signals are set between fork and exec")]
pub mod start;
pub mod support;
pub mod trial;
pub mod verdict;
