//! C interface to range-adaptive profiles.
//!
//! Two layers over the same trees:
//!
//! * the three calls of the paper's section 3.2, `rap_init`, `rap_add_points` and `rap_finalize`, for a program that just
//!   wants to count ([`paper`]);
//! * `sonde_rap_*`, which hands out handles and gives every option and query of the Rust crate ([`handles`]).
//!
//! **What C callers may rely on.** Every call returns a [`Status`]; a failed call changes nothing, and
//! `sonde_rap_last_error` says in words what was wrong. A NULL pointer, a handle that was never given out or was already
//! freed, a key of the wrong type, a call before `rap_init`: all are status codes, none is a crash. A panic inside is
//! caught and becomes `SONDE_RAP_STATUS_INTERNAL`. All calls may be made from any thread; calls on the same handle wait
//! for each other.
//!
//! **What C callers owe.** A pointer that is not NULL points to as many elements as the call says, and nobody else writes
//! them meanwhile.
//!
//! The header `include/sonde_rap.h` is generated from this source and committed; a test fails when it is stale.
//! `examples/rap.c` is compiled against the static and the shared library and run by the tests.

pub mod any_tree;
pub mod handles;
pub mod paper;
mod pointers;
pub mod status;
pub mod table;
pub mod types;

pub use status::Status;
