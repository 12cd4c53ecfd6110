//! The guarantees, checked on many streams for both trees: the fast one and the textbook one.
//!
//! Everything is compared with exact counts of the same stream. Cases come from fixed seeds or from proptest, which
//! prints the seed of a failing case.

mod accuracy;
mod bounds;
mod buffer;
mod codec;
mod findings;
mod hot;
mod memory;
mod merging;
mod streams;
mod subject;
