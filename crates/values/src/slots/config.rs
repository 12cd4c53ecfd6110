//! Settings of the slots, and what is told of them afterwards.

use crate::error::{ValuesError, within};
use crate::loads::Kinds;

/// Settings of the slots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotConfig {
    /// Slots: 256 in the paper's baseline, also half and twice as many.
    pub slots: usize,
    /// Failed replacements, less successful ones, that mean it is time to copy out.
    pub failed_limit: u32,
    /// Loads with at least this invariance are masked,
    pub high: f64,
    /// and those with at most this. Not below 0.2: so much A.6 gives to the one value that a slot of a load with
    /// ever different values has left;
    pub low: f64,
    /// others after so many visits.
    pub visits: u32,
    /// Slots with fewer samples are not copied out: they say little and cost as much.
    pub least: u16,
    /// Loads executed before the next part of the program has its turn, or the profile is complete.
    pub patience: u64,
    /// Loads executed before everything is unmasked again; 0 for never.
    pub resample: u64,
    /// Whether that takes twice as long each time. For sources that mask, where each time costs new copies of all code,
    /// and descriptions of them: so that both grow with the logarithm of the run.
    pub ever_later: bool,
    /// Loads executed between two glances at what is masked, on average; 0 for never. Not with a source that masks.
    pub glance: u64,
    /// Loads recorded, at least, before a source that masks is told again what need not be recorded.
    pub publish_after: u64,
    /// Whether nothing more is wanted once the profile is complete, until it is time to look again. Otherwise loads that
    /// were never seen are still wanted, which costs nothing while there are none.
    pub stop: bool,
    /// Log2 of the bits of the second pc filter.
    pub mask_log2: u32,
    /// Whether values are cut to 32 bits, as in the paper.
    pub narrow: bool,
    /// Most loads in the table.
    pub loads: usize,
    /// Most values per load in the table.
    pub values: usize,
    /// Which loads.
    pub kinds: Kinds,
}

impl Default for SlotConfig {
    fn default() -> Self {
        SlotConfig {
            slots: 256,
            failed_limit: 256,
            high: 0.95,
            low: 0.25,
            visits: 4,
            least: 8,
            patience: 50_000,
            resample: 20_000_000,
            ever_later: false,
            glance: 1_000_000,
            publish_after: 1 << 18,
            stop: false,
            mask_log2: sonde_wire::unwatched::LOG2_BITS,
            narrow: false,
            loads: 1 << 18,
            values: 16,
            kinds: Kinds::default(),
        }
    }
}

impl SlotConfig {
    /// The paper's sizes with another number of slots; the threshold of failures goes with it.
    pub fn with_slots(slots: usize) -> SlotConfig {
        SlotConfig { slots, failed_limit: slots as u32, ..SlotConfig::default() }
    }

    pub(super) fn check(&self) -> Result<(), ValuesError> {
        within("low threshold of masking", self.low, 0.2, 1.0)?;
        within("high threshold of masking", self.high, 0.0, 1.0)?;
        if self.low >= self.high {
            return Err(ValuesError::Thresholds { low: self.low, high: self.high });
        }
        within("visits before masking", f64::from(self.visits), 1.0, 1e9)?;
        within("patience in loads", self.patience as f64, 1.0, 1e18)?;
        within("loads between glances", self.glance as f64, 0.0, f64::from(u32::MAX))?;
        within("loads in the table", self.loads as f64, 1.0, f64::from(1 << 24))?;
        within("values per load", self.values as f64, 1.0, crate::profile::MAX_VALUES as f64)
    }
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotStats {
    /// Samples that reached the slots.
    pub samples: u64,
    /// Interrupts of any kind.
    pub interrupts: u64,
    /// Of them, for thrashing.
    pub thrashes: u64,
    /// Slots copied out.
    pub copied: u64,
    /// Samples in slots that were thrown away: thrashing, or too few to be copied.
    pub discarded: u64,
    /// Instructions masked, each time it happened.
    pub masked: u64,
    /// Times that everything was unmasked again.
    pub resamples: u64,
    /// Glances at what is masked.
    pub glances: u64,
    /// Times that the profile was complete.
    pub completed: u64,
    /// Loads executed when it was complete first.
    pub first_complete: Option<u64>,
}
