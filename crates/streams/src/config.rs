//! Settings, with the paper's as defaults, and what can be wrong with them.

use sonde_event::Access;
use thiserror::Error;

/// What to look for, and the limits of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamsConfig {
    /// Shortest stream; 10 (paper 4 section 5.2).
    pub min_length: u32,
    /// Longest stream; 40.
    pub max_length: u32,
    /// The share of references that hot streams should cover; 0.9.
    pub coverage: f64,
    /// Only loads or only stores; none: both, as in the paper.
    pub only: Option<Access>,
    /// Low bits of addresses that are ignored: 0 takes addresses as they are, 6 takes lines of 64 bytes.
    pub address_bits: u32,
    /// Largest grammar, in symbols; at about 30 bytes each.
    pub max_grammar: usize,
    /// Most different references at a time; at about 64 bytes each.
    pub max_references: usize,
    /// Most streams kept.
    pub max_streams: u32,
}

impl Default for StreamsConfig {
    fn default() -> StreamsConfig {
        StreamsConfig {
            min_length: 10,
            max_length: 40,
            coverage: 0.9,
            only: None,
            address_bits: 0,
            max_grammar: 1 << 19,
            max_references: 1 << 19,
            max_streams: 1 << 14,
        }
    }
}

/// Settings that make no sense.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StreamsError {
    /// Lengths.
    #[error(
        "streams of length {min} to {max}: give a shortest of at least 2 and a longest between that and 256"
    )]
    Lengths {
        /// The shortest.
        min: u32,
        /// The longest.
        max: u32,
    },
    /// Coverage.
    #[error("a coverage of {0}: give a share above 0 and at most 1")]
    Coverage(f64),
    /// A limit that is too small or too large.
    #[error("{what} of {value}: give {least} to {most}")]
    Limit {
        /// Which.
        what: &'static str,
        /// What was given.
        value: u64,
        /// The least possible.
        least: u64,
        /// The most possible.
        most: u64,
    },
}

impl StreamsConfig {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// Says what does not and what would.
    pub fn check(&self) -> Result<(), StreamsError> {
        let (min, max) = (self.min_length, self.max_length);
        if min < 2 || max < min || max > 256 {
            return Err(StreamsError::Lengths { min, max });
        }
        if !(self.coverage > 0.0 && self.coverage <= 1.0) {
            return Err(StreamsError::Coverage(self.coverage));
        }
        let limit = |what, value: u64, least, most| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(StreamsError::Limit { what, value, least, most })
            }
        };
        limit("ignored bits of addresses", u64::from(self.address_bits), 0, 32)?;
        limit("a largest grammar", self.max_grammar as u64, 1 << 10, 1 << 29)?;
        limit("most references", self.max_references as u64, 1 << 8, 1 << 29)?;
        limit("most streams", u64::from(self.max_streams), 1, 1 << 24)
    }
}
