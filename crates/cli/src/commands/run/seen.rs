//! What is made of the stream: as little as the report needs.

use anyhow::{Context, Result};
use sonde_event::maps::Mappings;
use sonde_event::{Catalog, Count, Counts, Reader};

use super::args::Args;
use super::hot::{Hot, Namer};
use super::ranges::Ranges;

/// The reader of a run.
pub enum Seen {
    /// Nobody will look: nothing is decoded.
    Nothing,
    /// Counts only.
    Counts(Count),
    /// Counts and hot ranges.
    Ranges(Box<Ranges>),
}

impl Seen {
    /// As much as these arguments need.
    pub fn new(args: &Args) -> Result<Seen> {
        if args.quiet && args.json.is_none() {
            return Ok(Seen::Nothing);
        }
        if args.no_ranges {
            return Ok(Seen::Counts(Count::default()));
        }
        Ok(Seen::Ranges(Box::new(Ranges::new().context("cannot make a tree")?)))
    }

    /// Whether there will be a report.
    pub fn is_wanted(&self) -> bool {
        !matches!(self, Seen::Nothing)
    }

    /// As a reader of the stream.
    pub fn reader(&mut self) -> Option<&mut dyn Reader> {
        match self {
            Seen::Nothing => None,
            Seen::Counts(count) => Some(count),
            Seen::Ranges(ranges) => Some(&mut **ranges),
        }
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        match self {
            Seen::Nothing => Counts::default(),
            Seen::Counts(count) => count.counts,
            Seen::Ranges(ranges) => ranges.counts(),
        }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Seen::Ranges(ranges) => ranges.memory_bytes(),
            _ => 0,
        }
    }

    /// Hot code and hot data, the hottest first.
    pub fn hot(
        &mut self,
        catalog: &Catalog,
        threshold: f64,
        mappings: &Mappings,
    ) -> Result<(Vec<Hot>, Vec<Hot>)> {
        let Seen::Ranges(ranges) = self else { return Ok((Vec::new(), Vec::new())) };
        let mut namer = Namer::new(mappings);
        let mut tree = ranges.code(catalog).context("cannot make a tree")?;
        let mut blocks: Vec<(u64, u64)> = ranges.blocks(catalog).collect();
        blocks.sort_unstable();
        // A block can be part of several superblocks.
        blocks.dedup_by(|b, first| {
            let same = b.0 == first.0;
            first.1 += if same { b.1 } else { 0 };
            same
        });
        Ok((namer.code(&mut tree, threshold, &blocks), namer.data(ranges.data(), threshold)))
    }
}
