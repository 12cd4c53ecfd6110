//! Where bursts began, by place: what is kept of code where bursts have weights.

use sonde_place::{Place, Places};
use std::collections::BTreeMap;

/// Samples of the time: an instruction, and the time that the bursts which began there stand for.
#[derive(Default)]
pub(crate) struct Samples {
    by_place: BTreeMap<u64, Sample>,
    /// Those in memory that nobody has told of yet, which wait for the next look at the mappings.
    waiting: Vec<(u64, u64)>,
    /// At instructions beyond the most that are kept apart.
    rest: BTreeMap<u64, Sample>,
}

/// How many, and what they stand for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub count: u64,
    pub weight: u64,
}

/// Most instructions that are kept apart; those beyond are kept by page.
const MOST: usize = 1 << 16;
/// Most samples that wait.
const MOST_WAITING: usize = 1 << 12;
const PAGE: u64 = 1 << 12;

impl Samples {
    /// A burst began at `pc` that stands for so much.
    pub fn add(&mut self, pc: u64, weight: u64, places: &mut Places) {
        match places.find(pc) {
            Some(place) => self.add_at(place.0, weight),
            None if self.waiting.len() < MOST_WAITING => self.waiting.push((pc, weight)),
            None => self.add_at(Place::unknown(pc).0, weight),
        }
    }

    fn add_at(&mut self, place: u64, weight: u64) {
        let is_full = self.by_place.len() >= MOST && !self.by_place.contains_key(&place);
        let sample = match is_full {
            true => self.rest.entry(place & !(PAGE - 1)).or_default(),
            false => self.by_place.entry(place).or_default(),
        };
        sample.count += 1;
        sample.weight = sample.weight.saturating_add(weight);
    }

    /// Whether a look at the mappings would help.
    pub fn are_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Something was mapped.
    pub fn retry(&mut self, places: &mut Places) {
        for (pc, weight) in std::mem::take(&mut self.waiting) {
            self.add(pc, weight, places);
        }
    }

    /// All of them by place. Nothing more will be told: what still waits is unknown.
    pub fn finish(&mut self) -> Vec<(u64, Sample)> {
        for (pc, weight) in std::mem::take(&mut self.waiting) {
            self.add_at(Place::unknown(pc).0, weight);
        }
        for (place, more) in std::mem::take(&mut self.rest) {
            let sample = self.by_place.entry(place).or_default();
            sample.count += more.count;
            sample.weight = sample.weight.saturating_add(more.weight);
        }
        self.by_place.iter().map(|(place, sample)| (*place, *sample)).collect()
    }

    /// Bytes used, roughly.
    pub fn memory_bytes(&self) -> usize {
        (self.by_place.len() + self.rest.len()) * 2 * size_of::<(u64, Sample)>()
            + self.waiting.capacity() * 16
    }
}
