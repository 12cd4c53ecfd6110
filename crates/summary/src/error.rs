//! Why summaries cannot be made as asked.

use crate::kind::Kind;
use thiserror::Error;

/// Why not.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// A name that no kind has.
    #[error("{0:?} names no summary; there are default, all, {names}", names = names())]
    UnknownKind(String),
    /// The limit leaves no room.
    #[error(
        "of the memory allowed {limit} bytes are left for these summaries, which need at least {least}: raise --max-memory, or ask for less"
    )]
    TooLittleMemory {
        /// The limit.
        limit: usize,
        /// What is needed.
        least: usize,
    },
    /// A tree cannot be made with these parameters.
    #[error("cannot make a tree: {0}")]
    Tree(sonde_rap::ConfigError),
    /// The system gives no thread.
    #[error("cannot start a consumer thread: {0}")]
    Thread(String),
}

// The message holds the cause, so it is not given as a source again.
impl From<sonde_rap::ConfigError> for SummaryError {
    fn from(cause: sonde_rap::ConfigError) -> SummaryError {
        SummaryError::Tree(cause)
    }
}

fn names() -> String {
    Kind::ALL.map(Kind::name).join(", ")
}
