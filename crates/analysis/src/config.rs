//! Parameters of all analyses, and how one memory limit is divided among them.

use crate::wanted::Wanted;
use sonde_calls::Limits;
use sonde_loops::LoopsError;
use sonde_streams::{StreamsConfig, StreamsError};
use sonde_summary::{Kind, SummaryError};
use sonde_values::slots::SlotConfig;
use sonde_values::{TableConfig, ValuesError};
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
    /// The loops.
    #[error(transparent)]
    Loops(#[from] LoopsError),
    /// The values.
    #[error(transparent)]
    Values(#[from] ValuesError),
    /// The streams.
    #[error(transparent)]
    Streams(#[from] StreamsError),
}

fn names() -> String {
    let kinds = Kind::ALL.into_iter().map(Kind::name);
    kinds.chain(Wanted::NAMES).collect::<Vec<_>>().join(", ")
}

/// How values of loads are found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ValueMethod {
    /// Every load is looked at.
    #[default]
    Exact,
    /// Slots, which stop looking at what they know.
    Slots(SlotConfig),
}

/// Parameters.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Which analyses.
    pub wanted: Wanted,
    /// Parameters of the trees; `what` is taken from `wanted`, and `max_memory` is the limit for everything.
    pub summary: sonde_summary::Config,
    /// How values of loads are found.
    pub values: ValueMethod,
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

/// Bytes of a block with its edges and counts.
const BLOCK_BYTES: usize = 320;
const CLAIM_BYTES: usize = 80;
/// Bytes of a load with its counters.
const LOAD_BYTES: usize = 512;

/// The limit divided: an eighth each for calls, loops and values, a quarter for streams, the rest for trees.
pub(crate) struct Shares {
    pub summary: sonde_summary::Config,
    pub calls: Limits,
    pub loops: sonde_loops::ExactConfig,
    pub values: sonde_values::ExactConfig,
    pub streams: StreamsConfig,
}

impl Config {
    pub(crate) fn shares(&self) -> Shares {
        let all = self.summary.max_memory;
        let part = |wanted: bool, share: usize| if wanted { all / share } else { 0 };
        let (calls, loops) = (part(self.wanted.calls, 8), part(self.wanted.loops, 8));
        let (values, streams) = (part(self.wanted.values, 8), part(self.wanted.streams, 4));
        let weight = match self.summary.burst_time {
            Some(_) => sonde_loops::Weight::Bursts,
            None => sonde_loops::Weight::Instructions,
        };
        let most = |bytes: usize, each: usize, least: usize, most: usize| (bytes / each).clamp(least, most);
        Shares {
            summary: sonde_summary::Config {
                what: self.wanted.kinds.clone(),
                max_memory: all - calls - loops - values - streams,
                ..self.summary.clone()
            },
            calls: Limits {
                contexts: most(calls / 2, CONTEXT_BYTES, 1 << 8, 1 << 18),
                pairs: most(calls / 4, PAIR_BYTES, 1 << 8, 1 << 18),
                passes: most(calls / 8, PASS_BYTES, 1 << 10, 1 << 20),
            },
            loops: sonde_loops::ExactConfig {
                weight,
                max_blocks: most(loops / 4 * 3, BLOCK_BYTES, 1 << 10, 1 << 22),
                max_claims: most(loops / 4, CLAIM_BYTES, 1 << 10, 1 << 20),
                ..sonde_loops::ExactConfig::default()
            },
            values: sonde_values::ExactConfig {
                table: TableConfig {
                    loads: most(values, LOAD_BYTES, 1 << 10, 1 << 20),
                    ..TableConfig::default()
                },
                ..sonde_values::ExactConfig::default()
            },
            streams: StreamsConfig {
                max_grammar: most(streams / 3, SYMBOL_BYTES, 1 << 12, 1 << 22),
                max_references: most(streams / 3, REFERENCE_BYTES, 1 << 12, 1 << 22),
                ..self.streams
            },
        }
    }
}
