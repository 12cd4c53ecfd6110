//! What can be wrong with a stream.

use thiserror::Error;

/// The stream does not make sense at some point. What came before it stands.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum StreamError {
    /// A record names an exit that no description has.
    #[error("record at word {at} names exit {exit}, which is not described")]
    UnknownExit {
        /// Word offset in the buffer.
        at: usize,
        /// Exit number.
        exit: u32,
    },
    /// A record is longer than the rest of its buffer.
    #[error("record at word {at} is cut off: {need} words needed, {have} there")]
    CutOff {
        /// Word offset in the buffer.
        at: usize,
        /// Words needed.
        need: usize,
        /// Words there.
        have: usize,
    },
    /// A marker of a kind that this version does not know.
    #[error("record at word {at} has the unknown marker {header:#x}")]
    UnknownMarker {
        /// Word offset in the buffer.
        at: usize,
        /// Its header.
        header: u32,
    },
    /// A description that cannot be read.
    #[error("description {index} is malformed: {what}")]
    BadDescription {
        /// Which one.
        index: usize,
        /// What is wrong.
        what: &'static str,
    },
}
