//! References to memory that nobody has told of yet: they wait for the next look at the mappings.

use crate::batch::Event;
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

    /// The event with its place instead of its address; none if it has to wait.
    pub fn place(
        &mut self,
        mut event: Event,
        weight: u64,
        places: &mut Places,
        missing: &mut Missing,
    ) -> Option<Event> {
        if !event.is(Event::ADDRESS) {
            return Some(event);
        }
        match places.find(event.data) {
            Some(place) => event.data = place.0,
            None if self.waiting.len() < self.most => {
                self.waiting.push((event, weight));
                return None;
            }
            None => unknown(&mut event, missing),
        }
        Some(event)
    }

    /// Tries again, if something was mapped: events that are placed now, with their weights.
    pub fn retry(&mut self, places: &mut Places) -> Vec<(Event, u64)> {
        if !std::mem::take(&mut self.is_news) || self.waiting.is_empty() {
            return Vec::new();
        }
        let mut placed = Vec::new();
        self.waiting.retain(|&(mut event, weight)| {
            let Some(place) = places.find(event.data) else { return true };
            event.data = place.0;
            placed.push((event, weight));
            false
        });
        placed
    }

    /// Nothing more will be told.
    pub fn give_up(&mut self, places: &mut Places, missing: &mut Missing) -> Vec<(Event, u64)> {
        self.is_news = true;
        let mut placed = self.retry(places);
        for (mut event, weight) in std::mem::take(&mut self.waiting) {
            unknown(&mut event, missing);
            placed.push((event, weight));
        }
        placed
    }
}

fn unknown(event: &mut Event, missing: &mut Missing) {
    event.data = Place::unknown(event.data).0;
    missing.unplaced_data += u64::from(event.times);
}
