//! The parameters of a profile and their limits, so that a tree never starts with a setting that breaks its guarantee.

use std::fmt;
use std::str::FromStr;

/// How many sub-ranges a range splits into (the paper's `b`, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Branching {
    /// Halves: fewest nodes, deepest tree.
    Two,
    /// The paper's choice.
    #[default]
    Four,
    /// Eighths.
    Eight,
    /// Sixteenths: shallowest tree, most nodes.
    Sixteen,
}

impl Branching {
    /// All branching factors, ascending.
    pub const ALL: [Branching; 4] = [Branching::Two, Branching::Four, Branching::Eight, Branching::Sixteen];

    /// Bits of the key that one level consumes: log2 of the factor.
    pub const fn bits(self) -> u32 {
        match self {
            Branching::Two => 1,
            Branching::Four => 2,
            Branching::Eight => 3,
            Branching::Sixteen => 4,
        }
    }

    /// The factor itself.
    pub const fn factor(self) -> u32 {
        1 << self.bits()
    }

    /// Levels of a tree over `key_bits` bits: the paper's `log_b(R)`, rounded up.
    ///
    /// Levels are counted from single values upwards, so where the bits do not divide it is the root that has fewer than
    /// `b` sub-ranges: every range but the root has a power of `b` values.
    pub const fn levels(self, key_bits: u32) -> u32 {
        key_bits.div_ceil(self.bits())
    }
}

impl TryFrom<u32> for Branching {
    type Error = ConfigError;
    fn try_from(factor: u32) -> Result<Self, ConfigError> {
        Self::ALL.into_iter().find(|b| b.factor() == factor).ok_or(ConfigError::Branching(factor.to_string()))
    }
}

impl FromStr for Branching {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let factor: u32 = text.trim().parse().map_err(|_| ConfigError::Branching(text.to_owned()))?;
        Branching::try_from(factor)
    }
}

impl fmt::Display for Branching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.factor())
    }
}

/// The merging-event buffer in front of the tree (section 3.2): equal events are combined before they descend.
///
/// A buffer only changes the order in which events reach the tree, never what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// A small table that is used or passed by, block by block, whichever costs less on this stream.
    #[default]
    Auto,
    /// No buffer: every event descends at once.
    None,
    /// A hash table of about this many bytes, always used; an older entry is evicted into the tree on a conflict.
    Bytes(usize),
    /// A table that grows without limit and is flushed at the end: an exact count. Its memory is *not* bounded.
    Unlimited,
}

/// Smallest accepted `max_memory`: room for a root and a few dozen ranges.
pub const MIN_MEMORY: usize = 4 << 10;
/// Smallest accepted buffer of [`Buffer::Bytes`].
pub const MIN_BUFFER: usize = 64;
/// Largest accepted buffer of [`Buffer::Bytes`]; ask for [`Buffer::Unlimited`] beyond it.
pub const MAX_BUFFER: usize = 1 << 32;

/// Parameters of a range-adaptive tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Sub-ranges per split, `b`. Default 4.
    pub branching: Branching,
    /// Largest error of any range's count as a share of all events, `0 < eps < 1`. Default 0.01.
    pub eps: f64,
    /// Ratio `q > 1` between the event counts of successive merge batches. Default 2.
    pub merge_ratio: f64,
    /// Events before the first merge batch. Default 1024.
    pub first_merge: u64,
    /// Hard limit in bytes on tree and buffer together; when it binds, precision is given up and reported as
    /// `eps_effective`. Default none (the tree is bounded by `eps` alone).
    pub max_memory: Option<usize>,
    /// The merging-event buffer. Default [`Buffer::Auto`].
    pub buffer: Buffer,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            branching: Branching::Four,
            eps: 0.01,
            merge_ratio: 2.0,
            first_merge: 1 << 10,
            max_memory: None,
            buffer: Buffer::Auto,
        }
    }
}

impl Config {
    /// The default parameters: `b = 4`, `eps = 1 %`, `q = 2`, first merge after 1024 events, no memory limit.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets the branching factor.
    #[must_use]
    pub fn branching(mut self, branching: Branching) -> Self {
        self.branching = branching;
        self
    }
    /// Sets the error bound, as a share of all events.
    #[must_use]
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }
    /// Sets the ratio between successive merge batches.
    #[must_use]
    pub fn merge_ratio(mut self, q: f64) -> Self {
        self.merge_ratio = q;
        self
    }
    /// Sets the number of events before the first merge batch.
    #[must_use]
    pub fn first_merge(mut self, events: u64) -> Self {
        self.first_merge = events;
        self
    }
    /// Sets the hard memory limit in bytes.
    #[must_use]
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = Some(bytes);
        self
    }
    /// Sets the merging-event buffer.
    #[must_use]
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.buffer = buffer;
        self
    }

    /// Checks every parameter; a tree is only made from a configuration that passes.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(self.eps > 0.0 && self.eps < 1.0) {
            return Err(ConfigError::Eps(self.eps));
        }
        if !(self.merge_ratio > 1.0 && self.merge_ratio <= 1024.0) {
            return Err(ConfigError::MergeRatio(self.merge_ratio));
        }
        if self.first_merge == 0 {
            return Err(ConfigError::FirstMerge);
        }
        if let Some(bytes) = self.max_memory.filter(|&bytes| bytes < MIN_MEMORY) {
            return Err(ConfigError::MaxMemory(bytes));
        }
        match self.buffer {
            Buffer::Bytes(bytes) if !(MIN_BUFFER..=MAX_BUFFER).contains(&bytes) => {
                Err(ConfigError::BufferBytes(bytes))
            }
            Buffer::Bytes(bytes) if self.max_memory.is_some_and(|max| bytes > max / 2) => {
                Err(ConfigError::BufferAboveLimit(bytes))
            }
            Buffer::Unlimited if self.max_memory.is_some() => Err(ConfigError::UnlimitedBuffer),
            _ => Ok(()),
        }
    }

    /// `SplitThreshold = eps * n / log_b(R)` (section 2.2), rounded down: the most that one range may hold for itself
    /// after `events` events without breaking the bound. It is 0 while `n < log_b(R) / eps`: then every event has to be
    /// counted at its very value.
    pub fn split_threshold(&self, events: u64, key_bits: u32) -> u64 {
        (self.eps * events as f64 / f64::from(self.branching.levels(key_bits))) as u64
    }
}

/// Why a configuration was refused.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The branching factor is not 2, 4, 8 or 16.
    Branching(String),
    /// `eps` is not strictly between 0 and 1.
    Eps(f64),
    /// The merge ratio is not above 1 (and at most 1024).
    MergeRatio(f64),
    /// The first merge would come after no event at all.
    FirstMerge,
    /// The memory limit is below [`MIN_MEMORY`].
    MaxMemory(usize),
    /// The buffer's size is outside [`MIN_BUFFER`]`..=`[`MAX_BUFFER`].
    BufferBytes(usize),
    /// The buffer would take more than half of the memory limit.
    BufferAboveLimit(usize),
    /// An unlimited buffer contradicts a memory limit.
    UnlimitedBuffer,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Branching(got) => write!(f, "branching factor must be 2, 4, 8 or 16, not {got}"),
            ConfigError::Eps(got) => write!(f, "eps must be above 0 and below 1 (0.01 is 1 %), not {got}"),
            ConfigError::MergeRatio(got) => {
                write!(f, "merge ratio must be above 1 and at most 1024, not {got}")
            }
            ConfigError::FirstMerge => write!(f, "the first merge must come after at least 1 event"),
            ConfigError::MaxMemory(got) => {
                write!(f, "memory limit must be at least {MIN_MEMORY} bytes, not {got}")
            }
            ConfigError::BufferBytes(got) => {
                write!(f, "buffer must have {MIN_BUFFER} to {MAX_BUFFER} bytes, not {got}")
            }
            ConfigError::BufferAboveLimit(got) => {
                write!(f, "a buffer of {got} bytes takes more than half of the memory limit: raise the limit")
            }
            ConfigError::UnlimitedBuffer => {
                write!(f, "an unlimited buffer cannot keep a memory limit: choose one of the two")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_the_papers() {
        let config = Config::new();
        assert_eq!(config.validate(), Ok(()));
        assert_eq!((config.branching.factor(), config.eps, config.merge_ratio), (4, 0.01, 2.0));
    }

    #[test]
    fn bad_parameters_are_refused() {
        for eps in [0.0, 1.0, -0.1, f64::NAN, f64::INFINITY] {
            assert!(Config::new().eps(eps).validate().is_err(), "{eps}");
        }
        for q in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(Config::new().merge_ratio(q).validate().is_err(), "{q}");
        }
        assert!(Config::new().first_merge(0).validate().is_err());
        assert!(Config::new().max_memory(100).validate().is_err());
        assert!(Config::new().buffer(Buffer::Bytes(1)).validate().is_err());
        assert!(Config::new().max_memory(8192).buffer(Buffer::Bytes(8000)).validate().is_err());
        assert!(Config::new().max_memory(1 << 20).buffer(Buffer::Unlimited).validate().is_err());
        assert!("5".parse::<Branching>().is_err() && "x".parse::<Branching>().is_err());
    }

    #[test]
    fn threshold_is_zero_at_small_n() {
        assert_eq!(Config::new().split_threshold(3199, 64), 0);
        assert_eq!(Config::new().split_threshold(3200, 64), 1);
        assert_eq!(Branching::Eight.levels(64), 22);
        assert_eq!(Branching::Four.levels(64), 32);
    }
}
