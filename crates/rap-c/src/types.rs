//! What crosses the boundary: plain structs of fixed layout, and the key types by number.
//!
//! Key types travel as `uint32_t`, not as an enum: a C program can put any number there, and a Rust enum with a value
//! that it does not have would be undefined behaviour instead of an error code.

use crate::status::{Failure, Status};
use sonde_rap::{Branching, Buffer, Config};

/// A tree, by number; 0 is never one. Numbers are not given out twice.
pub type RapHandle = u64;

/// Keys of 32 bits.
pub const SONDE_RAP_KEY_U32: u32 = 0;
/// Keys of 64 bits.
pub const SONDE_RAP_KEY_U64: u32 = 1;
/// Keys of 128 bits: `part[0]` holds the low, `part[1]` the high half.
pub const SONDE_RAP_KEY_U128: u32 = 2;
/// Pairs of 32-bit numbers, one in each part.
pub const SONDE_RAP_KEY_U32X2: u32 = 3;
/// Pairs of 64-bit numbers.
pub const SONDE_RAP_KEY_U64X2: u32 = 4;
/// Triples of 32-bit numbers.
pub const SONDE_RAP_KEY_U32X3: u32 = 5;
/// Triples of 64-bit numbers.
pub const SONDE_RAP_KEY_U64X3: u32 = 6;

/// `buffer` of a configuration: let the library choose.
pub const SONDE_RAP_BUFFER_AUTO: u64 = u64::MAX;
/// `buffer` of a configuration: no merging-event buffer.
pub const SONDE_RAP_BUFFER_NONE: u64 = 0;
/// `buffer` of a configuration: combine equal events without limit until a query.
pub const SONDE_RAP_BUFFER_UNLIMITED: u64 = u64::MAX - 1;

/// How to build a tree; fill it with `sonde_rap_config_default` first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RapConfig {
    /// One of `SONDE_RAP_KEY_*`.
    pub key_type: u32,
    /// Ranges that a range is split into: 2, 4, 8 or 16.
    pub branching: u32,
    /// Largest error of a range's estimate, as a share of all events: above 0, below 1.
    pub eps: f64,
    /// Growth of the interval between two batches of merges, above 1.
    pub merge_ratio: f64,
    /// Events before the first batch of merges.
    pub first_merge: u64,
    /// Hard limit of memory in bytes; 0 for none. The error that results is `eps_effective` of `sonde_rap_get_info`.
    pub max_memory: u64,
    /// Bytes of the merging-event buffer, or one of `SONDE_RAP_BUFFER_*`.
    pub buffer: u64,
}

/// A key: only as many parts as the key type has are read; of a 32-bit part the upper half must be 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RapKey {
    /// The number, its halves, or its dimensions.
    pub part: [u64; 3],
}

/// A hot range: its own weight with that of its sub-ranges that are not hot reaches the threshold.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RapHotRange {
    /// Smallest key of the range, in each dimension.
    pub lo: RapKey,
    /// Largest key of the range, in each dimension, inclusive.
    pub hi: RapKey,
    /// Weight of the range without its hot sub-ranges.
    pub own: u64,
    /// Weight of the range with its hot sub-ranges.
    pub total: u64,
    /// The true weight of the range is at least this,
    pub lower: u64,
    /// and at most this.
    pub upper: u64,
    /// Number of hot ranges around this one.
    pub depth: u32,
    /// Index of the closest of them in the same array, -1 if there is none.
    pub parent: i64,
}

/// Where a tree stands.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RapInfo {
    /// Weight of all events added.
    pub events: u64,
    /// Nodes now.
    pub nodes: u64,
    /// Most nodes at any time.
    pub nodes_max: u64,
    /// Memory held now, in bytes.
    pub memory_bytes: u64,
    /// The error bound that holds now, as a share of `events`; above `eps` only when `max_memory` forced it.
    pub eps_effective: f64,
}

impl From<&Config> for RapConfig {
    fn from(config: &Config) -> Self {
        RapConfig {
            key_type: SONDE_RAP_KEY_U64,
            branching: config.branching.factor(),
            eps: config.eps,
            merge_ratio: config.merge_ratio,
            first_merge: config.first_merge,
            max_memory: config.max_memory.map_or(0, |bytes| bytes as u64),
            buffer: match config.buffer {
                Buffer::Auto => SONDE_RAP_BUFFER_AUTO,
                Buffer::None => SONDE_RAP_BUFFER_NONE,
                Buffer::Unlimited => SONDE_RAP_BUFFER_UNLIMITED,
                Buffer::Bytes(bytes) => bytes as u64,
            },
        }
    }
}

impl RapConfig {
    /// The same configuration for the Rust crate, which checks the ranges of the numbers.
    pub fn to_config(self) -> Result<Config, Failure> {
        let bad = |error: &dyn std::fmt::Display| Failure::new(Status::BadConfig, error);
        let size = |bytes: u64| usize::try_from(bytes).map_err(|error| bad(&error));
        let branching = Branching::try_from(self.branching).map_err(|error| bad(&error))?;
        let max_memory = if self.max_memory == 0 { None } else { Some(size(self.max_memory)?) };
        let buffer = match self.buffer {
            SONDE_RAP_BUFFER_AUTO => Buffer::Auto,
            SONDE_RAP_BUFFER_NONE => Buffer::None,
            SONDE_RAP_BUFFER_UNLIMITED => Buffer::Unlimited,
            bytes => Buffer::Bytes(size(bytes)?),
        };
        let config = Config {
            branching,
            eps: self.eps,
            merge_ratio: self.merge_ratio,
            first_merge: self.first_merge,
            max_memory,
            buffer,
        };
        config.validate().map_err(|error| bad(&error))?;
        Ok(config)
    }
}
