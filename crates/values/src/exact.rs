//! The reference: every load of the stream is looked at.

use crate::error::ValuesError;
use crate::exact_table::{ExactTable, TableConfig};
use crate::executions::{Executions, PathCounts};
use crate::loads::{Kinds, Known, Sites};
use crate::profile::{LoadValues, Method, ValueProfile};
use crate::results;
use sonde_event::{Catalog, Reader, Run};

/// Settings of the exact method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactConfig {
    /// Bounds of memory.
    pub table: TableConfig,
    /// Which loads.
    pub kinds: Kinds,
}

/// Reads the stream of one process.
pub struct ExactReader {
    kinds: Kinds,
    sites: Sites,
    paths: PathCounts,
    table: ExactTable,
    samples: u64,
    gaps: u64,
}

impl ExactReader {
    /// Nothing read yet.
    pub fn new(config: ExactConfig) -> Result<ExactReader, ValuesError> {
        Ok(ExactReader {
            kinds: config.kinds,
            sites: Sites::new(config.kinds),
            paths: PathCounts::default(),
            table: ExactTable::new(config.table)?,
            samples: 0,
            gaps: 0,
        })
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        self.sites.memory_bytes() + self.paths.memory_bytes() + self.table.memory_bytes()
    }

    /// The profile; `catalog` is that of the decoder which fed the stream.
    pub fn finish(self, catalog: &Catalog) -> ValueProfile {
        let evicted = self.table.evicted();
        let executions = self.paths.executions(catalog, self.kinds);
        let mut loads = self.table.into_loads();
        loads.iter_mut().for_each(|load| allow_for_masked(load, &executions));
        let mut profile = results::profile(Method::Exact, loads, &executions);
        profile.totals.samples = self.samples;
        (profile.totals.evicted_loads, profile.totals.evicted_samples) = evicted;
        profile.totals.gaps = self.gaps;
        profile
    }
}

/// What was masked at the source may have had any value.
fn allow_for_masked(load: &mut LoadValues, executions: &Executions) {
    let masked = executions.by_pc.get(&load.pc).map_or(0, |e| e.masked);
    load.missed += masked;
    load.unlisted += masked;
    load.values.iter_mut().for_each(|v| v.upper += masked);
}

/// Looks up the entries of all loads of a superblock.
#[cold]
fn find_entries(known: &mut Known, table: &mut ExactTable) {
    table.reserve(known.sites.iter().map(|s| s.pc));
    known.notes = known.sites.iter().map(|s| table.entry(s.pc)).collect();
    known.version = table.version();
}

impl Reader for ExactReader {
    fn run(&mut self, run: &Run<'_>) {
        self.paths.add(run);
        let known = self.sites.of(run);
        if known.version != self.table.version() {
            find_entries(known, &mut self.table);
        }
        for (site, entry) in known.sites.iter().zip(&known.notes) {
            if site.reference >= run.path.refs {
                break;
            }
            if let Some(value) = site.value(run) {
                self.table.add(*entry, value);
                self.samples += 1;
            }
        }
    }

    fn gap(&mut self) {
        self.gaps += 1;
    }
}
