//! Passes as they are found in a log, and how often each exit was taken: finding them waits for one record after the other,
//! so that counting beside it costs next to nothing.

use crate::passes::{PassAt, Taken};

/// Passes that follow each other; memory is kept.
#[derive(Default)]
pub(crate) struct Found {
    pub list: Vec<PassAt>,
    pub taken: Vec<Taken>,
    /// By exit: one more than where it is in `taken`; 0 if it is not.
    places: Vec<u32>,
}

impl Found {
    /// None yet.
    pub fn clear(&mut self) {
        self.list.clear();
        self.taken.drain(..).for_each(|taken| self.places[taken.exit as usize] = 0);
    }

    /// The next pass.
    #[inline(always)]
    pub fn push(&mut self, exit: u32, at: u32) {
        let place = self.places.get(exit as usize).copied().unwrap_or(0);
        match self.taken.get_mut((place as usize).wrapping_sub(1)) {
            Some(taken) => taken.times += 1,
            None => self.push_new(exit),
        }
        self.list.push(PassAt { exit, at });
    }

    #[cold]
    #[inline(never)]
    fn push_new(&mut self, exit: u32) {
        if exit as usize >= self.places.len() {
            self.places.resize((exit as usize + 1).next_power_of_two(), 0);
        }
        self.taken.push(Taken { exit, times: 1, first: self.list.len() as u32 });
        self.places[exit as usize] = self.taken.len() as u32;
    }
}
