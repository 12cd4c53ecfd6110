//! Load values by the method that was asked for.

use crate::config::{AnalysisError, ValueMethod};
use sonde_event::{Catalog, Reader, Run, Unwatched};
use sonde_values::slots::{SlotConfig, SlotReader};
use sonde_values::{ExactConfig, ExactReader, Lfsr, ValueProfile};

/// Seed of the slots: a stream gives the same profile each time.
const SEED: u32 = 1;

/// The reader of the method.
pub(crate) enum Values {
    Exact(Box<ExactReader>),
    Slots(Box<SlotReader>),
}

impl Values {
    /// With room for so many loads.
    pub fn new(method: ValueMethod, exact: ExactConfig) -> Result<Values, AnalysisError> {
        Ok(match method {
            ValueMethod::Exact => Values::Exact(Box::new(ExactReader::new(exact)?)),
            ValueMethod::Slots(config) => {
                let config = SlotConfig { loads: config.loads.min(exact.table.loads), ..config };
                Values::Slots(Box::new(SlotReader::new(config, Lfsr::new(SEED))?))
            }
        })
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Values::Exact(reader) => reader.memory_bytes(),
            Values::Slots(reader) => reader.memory_bytes(),
        }
    }

    pub fn finish(self, catalog: &Catalog) -> ValueProfile {
        match self {
            Values::Exact(reader) => reader.finish(catalog),
            Values::Slots(reader) => reader.finish(catalog),
        }
    }
}

impl Reader for Values {
    fn run(&mut self, run: &Run<'_>) {
        match self {
            Values::Exact(reader) => reader.run(run),
            Values::Slots(reader) => reader.run(run),
        }
    }

    fn unwatched(&mut self) -> Option<Unwatched<'_>> {
        match self {
            Values::Exact(_) => None,
            Values::Slots(reader) => reader.unwatched(),
        }
    }

    fn gap(&mut self) {
        match self {
            Values::Exact(reader) => reader.gap(),
            Values::Slots(reader) => reader.gap(),
        }
    }
}
