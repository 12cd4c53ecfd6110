//! What the exact profile is asked for, and its limits.

use crate::error::LoopsError;

/// What a share is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Instructions recorded: right where everything is recorded.
    #[default]
    Instructions,
    /// Time: each burst weighs 1, however many instructions it has, since it stands for the same CPU time, which belongs to
    /// where it began.
    Bursts,
}

/// Limits and choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactConfig {
    /// What a share is a share of.
    pub weight: Weight,
    /// Most blocks of code kept (each about 200 bytes).
    pub max_blocks: usize,
    /// Most activations and blocks on one thread's way.
    pub max_depth: usize,
    /// Most threads followed at once.
    pub max_threads: usize,
    /// Most executions of different kinds, in activations that bursts begin or end in, that are kept until all code is
    /// known (each about 80 bytes).
    pub max_claims: usize,
}

impl Default for ExactConfig {
    fn default() -> ExactConfig {
        ExactConfig {
            weight: Weight::Instructions,
            max_blocks: 1 << 21,
            max_depth: 1 << 20,
            max_threads: 4096,
            max_claims: 1 << 18,
        }
    }
}

impl ExactConfig {
    pub(super) fn check(&self) -> Result<(), LoopsError> {
        let least = |what, value: usize, least: usize| {
            if value < least { Err(LoopsError::TooSmall { what, value, least }) } else { Ok(()) }
        };
        least("max_blocks", self.max_blocks, 64)?;
        least("max_depth", self.max_depth, 64)?;
        least("max_threads", self.max_threads, 1)?;
        least("max_claims", self.max_claims, 64)
    }
}
