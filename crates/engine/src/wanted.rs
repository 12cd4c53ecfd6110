//! Which loads Sonde wants recorded, as the engine last took it over: see [`sonde_wire::unwatched`].

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use sonde_wire::Control;
use sonde_wire::unwatched::is_unwatched;

/// What is wanted.
pub struct Wanted {
    /// A bit for each load that is not wanted, by the hash of its pc; Sonde writes here at any time.
    table: &'static [AtomicU64],
    function: u8,
    generation: u64,
}

impl Wanted {
    /// Everything is, until Sonde says otherwise in this table.
    pub fn new(table: &'static [AtomicU64]) -> Wanted {
        Wanted { table, function: 0, generation: 0 }
    }

    /// Whether Sonde changed it since the last [`update`](Self::update).
    pub fn is_outdated(&self, control: &Control) -> bool {
        control.unwatched_generation.load(Acquire) != self.generation
    }

    /// Takes over what Sonde wants now.
    pub fn update(&mut self, control: &Control) {
        self.generation = control.unwatched_generation.load(Acquire);
        self.function = control.unwatched_function.load(Relaxed) as u8;
    }

    /// Whether the load at a pc is to be recorded.
    pub fn wants(&self, pc: u64) -> bool {
        self.generation == 0 || !is_unwatched(self.table, self.function, pc)
    }
}
