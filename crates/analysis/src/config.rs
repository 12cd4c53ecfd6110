//! Parameters of all analyses, and how one memory limit is divided among them.

use crate::wanted::Wanted;
use sonde_calls::Limits;
use sonde_streams::{StreamsConfig, StreamsError};
use sonde_summary::{Kind, SummaryError};
use thiserror::Error;

/// Why analyses cannot be made as asked.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// A name that no analysis has.
    #[error("{0:?} names no analysis; there are default, all, {names}", names = names())]
    Unknown(String),
    /// The trees.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// The streams.
    #[error(transparent)]
    Streams(#[from] StreamsError),
}

fn names() -> String {
    let kinds = Kind::ALL.into_iter().map(Kind::name);
    kinds.chain(Wanted::NAMES).collect::<Vec<_>>().join(", ")
}

/// Parameters.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Which analyses.
    pub wanted: Wanted,
    /// Parameters of the trees; `what` is taken from `wanted`, and `max_memory` is the limit for everything.
    pub summary: sonde_summary::Config,
    /// Parameters of the streams; the limits on memory are worked out.
    pub streams: StreamsConfig,
}

/// Bytes of a context with its way in the table.
const CONTEXT_BYTES: usize = 128;
/// Bytes of a call pair or function in its table.
const PAIR_BYTES: usize = 64;
/// Bytes of a pass that waits for the weight of its burst.
const PASS_BYTES: usize = 16;
/// Bytes of a symbol of the grammar, and of a reference in its table.
const SYMBOL_BYTES: usize = 40;
const REFERENCE_BYTES: usize = 80;

/// The limit divided: an eighth for calls, a quarter for streams, the rest for trees.
pub(crate) struct Shares {
    pub summary: sonde_summary::Config,
    pub calls: Limits,
    pub streams: StreamsConfig,
}

impl Config {
    pub(crate) fn shares(&self) -> Shares {
        let all = self.summary.max_memory;
        let calls = if self.wanted.calls { all / 8 } else { 0 };
        let streams = if self.wanted.streams { all / 4 } else { 0 };
        let most = |bytes: usize, each: usize, least: usize, most: usize| (bytes / each).clamp(least, most);
        Shares {
            summary: sonde_summary::Config {
                what: self.wanted.kinds.clone(),
                max_memory: all - calls - streams,
                ..self.summary.clone()
            },
            calls: Limits {
                contexts: most(calls / 2, CONTEXT_BYTES, 1 << 8, 1 << 18),
                pairs: most(calls / 4, PAIR_BYTES, 1 << 8, 1 << 18),
                passes: most(calls / 8, PASS_BYTES, 1 << 10, 1 << 20),
            },
            streams: StreamsConfig {
                max_grammar: most(streams / 3, SYMBOL_BYTES, 1 << 12, 1 << 22),
                max_references: most(streams / 3, REFERENCE_BYTES, 1 << 12, 1 << 22),
                ..self.streams
            },
        }
    }
}
