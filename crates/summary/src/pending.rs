//! References to memory that nobody has told of yet: they wait for the next look at the mappings.

use crate::batch::{Batch, Event};
use crate::summary::Missing;
use sonde_place::{Place, Places};

/// What waits.
pub(crate) struct Pending {
    /// With their weights, in the order of the stream.
    waiting: Vec<(Event, u64)>,
    most: usize,
    /// Whether something was mapped since the last try.
    is_news: bool,
}

impl Pending {
    /// At most so many wait; more are taken as unknown.
    pub fn new(most: usize) -> Pending {
        Pending { waiting: Vec::new(), most, is_news: false }
    }

    /// Something was mapped.
    pub fn news(&mut self) {
        self.is_news = true;
    }

    /// Whether a look at the mappings would help.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(Event, u64)>()
    }

    /// Turns the addresses of a batch into places, and takes out those that have none yet.
    pub fn place(&mut self, batch: &mut Batch, places: &mut Places, missing: &mut Missing) {
        let mut lost = 0;
        for event in &mut batch.events {
            match places.find(event.data) {
                Some(place) => event.data = place.0,
                None => lost += usize::from(set_aside(event)),
            }
        }
        if lost > 0 {
            self.take_out(batch, missing);
        }
    }

    fn take_out(&mut self, batch: &mut Batch, missing: &mut Missing) {
        let weight = batch.weight;
        batch.events.retain_mut(|event| {
            if !event.is(ASIDE) {
                return true;
            }
            event.flags &= !ASIDE;
            if self.waiting.len() < self.most {
                self.waiting.push((*event, weight));
                return false;
            }
            unknown(event, missing);
            true
        });
    }

    /// Tries again, if something was mapped: batches of equal weight that are placed now.
    pub fn retry(&mut self, places: &mut Places) -> Vec<Batch> {
        if !std::mem::take(&mut self.is_news) || self.waiting.is_empty() {
            return Vec::new();
        }
        let mut batches = Vec::new();
        self.waiting.retain(|&(mut event, weight)| {
            let Some(place) = places.find(event.data) else { return true };
            event.data = place.0;
            put(&mut batches, event, weight);
            false
        });
        batches
    }

    /// Nothing more will be told.
    pub fn give_up(&mut self, places: &mut Places, missing: &mut Missing) -> Vec<Batch> {
        self.is_news = true;
        let mut batches = self.retry(places);
        for (mut event, weight) in std::mem::take(&mut self.waiting) {
            unknown(&mut event, missing);
            put(&mut batches, event, weight);
        }
        batches
    }
}

/// A reference that is on its way out of its batch.
const ASIDE: u16 = 1 << 15;

#[cold]
fn set_aside(event: &mut Event) -> bool {
    let has_address = event.is(Event::ADDRESS);
    event.flags |= if has_address { ASIDE } else { 0 };
    has_address
}

fn unknown(event: &mut Event, missing: &mut Missing) {
    event.data = Place::unknown(event.data).0;
    missing.unplaced_data += u64::from(event.times);
}

fn put(batches: &mut Vec<Batch>, event: Event, weight: u64) {
    match batches.last_mut().filter(|batch| batch.weight == weight && !batch.is_full()) {
        Some(batch) => batch.events.push(event),
        None => batches.push(Batch { weight, events: vec![event], ..Batch::default() }),
    }
}
