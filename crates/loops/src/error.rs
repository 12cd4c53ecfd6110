//! What can be wrong with the options.

use thiserror::Error;

/// An option that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoopsError {
    /// A limit below what is useful.
    #[error("{what} is {value}, but at least {least} is needed")]
    TooSmall {
        /// Which option.
        what: &'static str,
        /// What was given.
        value: usize,
        /// What is needed.
        least: usize,
    },
    /// A value outside its range.
    #[error("{what} is {value}: {rule}")]
    OutOfRange {
        /// Which option.
        what: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        rule: &'static str,
    },
}
