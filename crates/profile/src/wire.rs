//! The schema as Rust types: `wire/sonde.rs` is generated from `proto/sonde.proto` and committed, so that building
//! Sonde takes no code generator; `tests/schema.rs` regenerates and compares it.
#![allow(missing_docs, reason = "generated; messages and fields carry the schema's comments")]
#![allow(clippy::all, reason = "generated")]

include!("wire/sonde.rs");
