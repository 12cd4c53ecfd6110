//! Passes put in the order of their exits, so that those that went the same way lie side by side.

use crate::passes::{Made, Pass};
use crate::ways::{Look, Way};

/// Passes that took the same exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub exit: u32,
    /// Where they begin and end among all that are sorted.
    pub from: u32,
    pub to: u32,
}

/// What is known of an exit while passes are sorted.
#[derive(Clone, Copy, Default)]
struct Place {
    /// How often it was taken; then where its next pass goes.
    next: u32,
    /// References that a pass makes.
    references: u16,
    /// Whether where a pass leads belongs to it.
    with_next: bool,
}

/// Passes by exit; what was done last stays.
#[derive(Default)]
pub(crate) struct Sorted {
    /// By exit.
    places: Vec<Place>,
    pub groups: Vec<Group>,
    /// Of each pass, by exit: the first word of its record, its first reference's number, and where it went next, if that
    /// belongs to it.
    pub starts: Vec<u32>,
    pub numbers: Vec<u32>,
    pub next: Vec<u64>,
    /// Passes whose references are events already: the number of the first reference, the first event, and how many.
    pub events: Vec<(u32, u32, u32)>,
    /// References so far.
    number: u32,
}

impl Sorted {
    /// Sorts the logged ones of some passes by counting. `way` tells what is known of an exit.
    pub fn sort(&mut self, passes: &[Pass], way: impl Fn(u32) -> Way) {
        self.groups.clear();
        for pass in passes {
            if let Made::Logged { exit, .. } = pass.made() {
                self.count(exit, 1);
            }
        }
        self.begin(way);
        for pass in passes {
            match pass.made() {
                Made::Logged { exit, at, next_pc } => self.put(exit, at, || next_pc),
                Made::Events { first, count } => {
                    self.events.push((self.number, first as u32, count as u32));
                    self.number += count as u32;
                }
            }
        }
        self.end();
    }

    /// The same of passes in the log; `next_pc` tells where one of them led, for those to which that belongs.
    pub fn sort_log(
        &mut self,
        passes: &sonde_event::Passes<'_>,
        way: impl Fn(u32) -> Way,
        mut next_pc: impl FnMut(usize) -> u64,
    ) {
        self.groups.clear();
        passes.taken().iter().for_each(|taken| self.count(taken.exit, taken.times));
        self.begin(way);
        for (index, pass) in passes.list().iter().enumerate() {
            self.put(pass.exit, pass.at, || next_pc(index));
        }
        self.end();
    }

    /// References of all passes.
    pub fn references(&self) -> usize {
        self.number as usize
    }

    #[inline]
    fn count(&mut self, exit: u32, times: u32) {
        if exit as usize >= self.places.len() {
            self.places.resize((exit as usize + 1).next_power_of_two(), Place::default());
        }
        let place = &mut self.places[exit as usize];
        if place.next == 0 {
            self.groups.push(Group { exit, from: 0, to: 0 });
        }
        place.next += times;
    }

    /// All are counted: makes room for them.
    fn begin(&mut self, way: impl Fn(u32) -> Way) {
        self.groups.sort_unstable_by_key(|group| group.exit);
        let mut all = 0;
        for group in &mut self.groups {
            let (place, way) = (&mut self.places[group.exit as usize], way(group.exit));
            (group.from, group.to) = (all, all + place.next);
            all = group.to;
            *place =
                Place { next: group.from, references: way.references, with_next: way.look != Look::Together };
        }
        self.starts.resize(all as usize, 0);
        self.numbers.resize(all as usize, 0);
        self.next.resize(all as usize, 0);
        self.events.clear();
        self.number = 0;
    }

    #[inline(always)]
    fn put(&mut self, exit: u32, at: u32, next_pc: impl FnOnce() -> u64) {
        let place = &mut self.places[exit as usize];
        let to = place.next as usize;
        place.next += 1;
        self.starts[to] = at;
        self.numbers[to] = self.number;
        self.number += u32::from(place.references);
        if place.with_next {
            self.next[to] = next_pc();
        }
    }

    fn end(&mut self) {
        self.groups.iter().for_each(|group| self.places[group.exit as usize].next = 0);
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
            + (self.starts.capacity() + self.numbers.capacity()) * 4
            + self.next.capacity() * 8
            + self.events.capacity() * size_of::<(u32, u32, u32)>()
            + self.groups.capacity() * size_of::<Group>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::Passes;

    #[test]
    fn passes_of_an_exit_lie_side_by_side_in_their_order() {
        let mut passes = Passes::default();
        for (exit, next) in [(3, 30), (1, 10), (3, 31), (0, 0), (1, 11), (3, 32)] {
            let at = passes.copy(&[u64::from(exit); 2]);
            passes.push(exit, at, 2, next);
        }
        passes.events.resize(4, Default::default());
        passes.push_events(4);
        passes.push(1, 12, 2, 12);
        let mut sorted = Sorted::default();
        for _ in 0..2 {
            sorted.sort(&passes.list, |_| Way { references: 2, ..Way::default() });
            let group = |exit, from, to| Group { exit, from, to };
            assert_eq!(sorted.groups, [group(0, 0, 1), group(1, 1, 4), group(3, 4, 7)]);
            assert_eq!(sorted.next, [0, 10, 11, 12, 30, 31, 32]);
            assert_eq!(sorted.starts, [6, 2, 8, 12, 0, 4, 10]);
            assert_eq!(sorted.numbers, [6, 2, 8, 16, 0, 4, 10]);
            assert_eq!((&sorted.events[..], sorted.references()), (&[(12, 0, 4)][..], 18));
        }
    }
}
