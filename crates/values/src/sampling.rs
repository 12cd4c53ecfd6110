//! The baseline: one load in N is looked at, whichever it is (section 5: 1024 for fast collection).

use crate::error::{ValuesError, within};
use crate::exact_table::{ExactTable, TableConfig};
use crate::executions::PathCounts;
use crate::lfsr::Lfsr;
use crate::loads::{Kinds, Sites};
use crate::profile::{LoadValues, Method, ValueProfile};
use crate::results;
use sonde_event::{Catalog, Reader, Run};

/// Settings of simple sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingConfig {
    /// Loads per sample.
    pub every: u64,
    /// Bounds of memory.
    pub table: TableConfig,
    /// Which loads.
    pub kinds: Kinds,
}

impl Default for SamplingConfig {
    fn default() -> Self {
        SamplingConfig { every: 1024, table: TableConfig::default(), kinds: Kinds::default() }
    }
}

/// How far it is from one sample to the next.
#[derive(Clone, Debug)]
struct Gaps {
    every: u64,
    /// Varies gaps from half to one and a half of `every`, so that samples do not keep step with a loop.
    random: Option<Lfsr>,
}

impl Gaps {
    fn next(&mut self) -> u64 {
        match &mut self.random {
            Some(random) => {
                self.every.div_ceil(2) + u64::from(random.bits(32)) % (self.every + self.every % 2)
            }
            None => self.every,
        }
    }
}

/// Reads the stream of one process.
pub struct SamplingReader {
    config: SamplingConfig,
    distances: Gaps,
    sites: Sites,
    paths: PathCounts,
    table: ExactTable,
    /// Loads up to and including the next sample.
    left: u64,
    samples: u64,
    gaps: u64,
}

impl SamplingReader {
    /// Nothing read yet. With `random` gaps vary, otherwise they are all the same, as in the paper.
    pub fn new(config: SamplingConfig, random: Option<Lfsr>) -> Result<SamplingReader, ValuesError> {
        within("loads per sample", config.every as f64, 1.0, f64::from(1 << 30))?;
        let mut distances = Gaps { every: config.every, random };
        Ok(SamplingReader {
            config,
            sites: Sites::new(config.kinds),
            paths: PathCounts::default(),
            table: ExactTable::new(config.table)?,
            left: distances.next(),
            distances,
            samples: 0,
            gaps: 0,
        })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.sites.memory_bytes() + self.paths.memory_bytes() + self.table.memory_bytes()
    }

    /// Samples taken so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// What is known so far.
    pub fn table(&self) -> &ExactTable {
        &self.table
    }

    /// The profile; `catalog` is that of the decoder which fed the stream.
    pub fn finish(self, catalog: &Catalog) -> ValueProfile {
        let evicted = self.table.evicted();
        let executions = self.paths.executions(catalog, self.config.kinds);
        // Samples far apart cannot tell whether a value stayed in between.
        let forget = |l: LoadValues| LoadValues { glacial: None, ..l };
        let loads = self.table.into_loads().into_iter().map(forget).collect();
        let mut profile = results::profile(Method::Sampling { every: self.config.every }, loads, &executions);
        profile.totals.samples = self.samples;
        (profile.totals.evicted_loads, profile.totals.evicted_samples) = evicted;
        profile.totals.gaps = self.gaps;
        profile
    }
}

impl Reader for SamplingReader {
    fn run(&mut self, run: &Run<'_>) {
        self.paths.add(run);
        let known = self.sites.of(run);
        let executed = known.executed(run) as u64;
        if self.left > executed {
            self.left -= executed;
            return;
        }
        let mut done = 0;
        while self.left <= executed - done {
            done += self.left;
            self.left = self.distances.next();
            let site = &known.sites[done as usize - 1];
            if let Some(value) = site.value(run) {
                self.table.add_at(site.pc, value);
                self.samples += 1;
            }
        }
        self.left -= executed - done;
    }

    fn gap(&mut self) {
        self.gaps += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_constant_or_vary_around_the_same_mean() {
        let mut fixed = Gaps { every: 1024, random: None };
        assert_eq!([fixed.next(), fixed.next()], [1024, 1024]);
        for every in [1u64, 2, 5, 100] {
            let mut varied = Gaps { every, random: Some(Lfsr::new(3)) };
            let gaps: Vec<u64> = (0..100_000).map(|_| varied.next()).collect();
            let mean = gaps.iter().sum::<u64>() as f64 / 1e5;
            assert!(gaps.iter().all(|g| (every.div_ceil(2)..=2 * every).contains(g)));
            assert!((mean / every as f64 - 1.0).abs() < 0.51 / every as f64 + 0.01, "{every}: {mean}");
        }
    }

    #[test]
    fn sampling_never_is_refused() {
        let config = SamplingConfig { every: 0, ..SamplingConfig::default() };
        assert!(SamplingReader::new(config, None).is_err());
    }
}
