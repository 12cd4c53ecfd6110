//! What can be wrong with the settings of an analysis.

use thiserror::Error;

/// A setting that cannot be used.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum ValuesError {
    /// A number is outside of what is possible.
    #[error("{name} is {given}, but has to be from {low} to {high}")]
    Range {
        /// Which setting.
        name: &'static str,
        /// What was given.
        given: f64,
        /// Least possible.
        low: f64,
        /// Most possible.
        high: f64,
    },
    /// The low threshold of masking is not below the high one.
    #[error("loads are masked below an invariance of {low} and above {high}: the first has to be smaller")]
    Thresholds {
        /// Low threshold.
        low: f64,
        /// High threshold.
        high: f64,
    },
}

/// Refuses what is not from `low` to `high`.
pub(crate) fn within(name: &'static str, given: f64, low: f64, high: f64) -> Result<(), ValuesError> {
    if (low..=high).contains(&given) { Ok(()) } else { Err(ValuesError::Range { name, given, low, high }) }
}
