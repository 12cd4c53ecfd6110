//! The paper's parameters, and the choices that it leaves open.

use crate::error::LoopsError;

/// Bits of the tag.
pub(crate) const TAG_BITS: u32 = 30;
/// Largest offset in its 8 bits.
pub(crate) const MAX_OFFSET: u8 = u8::MAX;
/// Executions at which all are halved (16 bits).
pub(crate) const MAX_EXECUTIONS: u16 = u16::MAX;
/// Most current iterations (10 bits).
pub(crate) const MAX_CURRENT: u16 = (1 << 10) - 1;
/// Most average iterations (13 bits, 3 of them behind the point).
pub(crate) const MAX_AVERAGE: u16 = (1 << 13) - 1;
/// Largest freshness (3 bits).
pub(crate) const MAX_FRESHNESS: u8 = (1 << 3) - 1;

/// What the weighted average keeps of the old value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Average {
    /// 7/8, the paper's choice.
    #[default]
    SevenEighths,
    /// 15/16.
    FifteenSixteenths,
    /// 31/32.
    ThirtyOneThirtySeconds,
}

impl Average {
    /// The new average, both with 3 bits behind the point.
    pub(crate) fn next(self, rounding: Rounding, average: u16, current: u16) -> u16 {
        let shift = match self {
            Average::SevenEighths => 3,
            Average::FifteenSixteenths => 4,
            Average::ThirtyOneThirtySeconds => 5,
        };
        let old = u32::from(average) * ((1 << shift) - 1);
        let half = match rounding {
            Rounding::Down => 0,
            Rounding::Nearest => 1 << (shift - 1),
        };
        (((old + u32::from(current) * 8 + half) >> shift) as u16).min(MAX_AVERAGE)
    }
}

/// What becomes of the bits below the average's last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// Dropped, as figure 2 reads: averages come to rest up to 7/8 of an iteration below the truth.
    #[default]
    Down,
    /// Rounded, by one more carry in hardware.
    Nearest,
}

/// What a unit of the tag is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Granularity {
    /// A byte: x86 instructions begin anywhere. The tag is the low 30 bits of the branch's pc.
    #[default]
    Byte,
    /// Four bytes, as on the paper's ARM. The tag is bits 2 to 31; branches within one word become one loop.
    Word,
}

impl Granularity {
    pub(crate) fn shift(self) -> u32 {
        match self {
            Granularity::Byte => 0,
            Granularity::Word => 2,
        }
    }
}

/// Whether calls are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// No: a loop in a called function ends the loop that calls (the paper's "function call interference").
    #[default]
    Plain,
    /// Yes (the paper's extension, section 5, without details there): each entry remembers the depth of calls at which
    /// its loop runs. A branch ends only loops of its own depth that do not hold it, and all loops of deeper ones.
    Followed,
}

/// Parameters of DAProf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaprofConfig {
    /// Entries of the profile cache, a power of two up to 1024.
    pub entries: usize,
    /// Entries that compete for a place: `entries` for a fully associative cache, or a power of two below.
    pub ways: usize,
    /// Largest freshness; at most 7 and at most half of `ways`.
    pub max_freshness: u8,
    /// Branches with at least this distance in bytes are not short; at most 1024.
    pub distance: u32,
    /// Places in the FIFO before the profiler.
    pub fifo: usize,
    /// Clocks of the processor per branch that the profiler takes; 0 makes it infinitely fast. The processor is taken to
    /// execute one instruction per clock.
    pub clocks_per_branch: u32,
    /// The weighted average.
    pub average: Average,
    /// How it is rounded.
    pub rounding: Rounding,
    /// The unit of tags.
    pub granularity: Granularity,
    /// Whether calls are followed.
    pub calls: Calls,
    /// Whether each thread has a profiler of its own, so that context switches do not interfere.
    pub per_thread: bool,
    /// Most threads with a profiler of their own.
    pub max_threads: usize,
}

impl Default for DaprofConfig {
    /// The paper's fully associative design.
    fn default() -> DaprofConfig {
        DaprofConfig::with_ways(32)
    }
}

impl DaprofConfig {
    /// The paper's design with this associativity: 32 (full), 16 or 8.
    pub fn with_ways(ways: usize) -> DaprofConfig {
        DaprofConfig {
            entries: 32,
            ways,
            max_freshness: MAX_FRESHNESS.min((ways / 2) as u8),
            distance: 1024,
            fifo: 4,
            clocks_per_branch: 3,
            average: Average::SevenEighths,
            rounding: Rounding::Down,
            granularity: Granularity::Byte,
            calls: Calls::Plain,
            per_thread: true,
            max_threads: 4096,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), LoopsError> {
        let check = |good: bool, what, value: usize, rule| {
            if good { Ok(()) } else { Err(LoopsError::OutOfRange { what, value: value.to_string(), rule }) }
        };
        let entries = self.entries;
        check(
            entries.is_power_of_two() && entries <= 1024,
            "entries",
            entries,
            "a power of two up to 1024 is needed",
        )?;
        check(
            self.ways.is_power_of_two() && (2..=entries).contains(&self.ways),
            "ways",
            self.ways,
            "a power of two from 2 to the number of entries is needed",
        )?;
        check(
            self.max_freshness <= MAX_FRESHNESS && usize::from(self.max_freshness) <= self.ways / 2,
            "max_freshness",
            self.max_freshness.into(),
            "at most 7 and at most half of the ways, or all of a set could be fresh",
        )?;
        check(
            (4..=1024).contains(&self.distance),
            "distance",
            self.distance as usize,
            "4 to 1024 bytes are possible",
        )?;
        check(self.fifo > 0, "fifo", self.fifo, "at least one place is needed")?;
        check(self.max_threads > 0, "max_threads", 0, "at least one thread is needed")
    }
}
