//! Passes put in the order of their exits, so that those that went the same way lie side by side.

use crate::passes::{Made, Pass};

/// Passes that took the same exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub exit: u32,
    /// Where they begin and end among all that are sorted.
    pub from: u32,
    pub to: u32,
}

/// Passes by exit; what was done last stays.
#[derive(Default)]
pub(crate) struct Sorted {
    /// By exit: how often it was taken; then where its next pass goes.
    places: Vec<u32>,
    pub groups: Vec<Group>,
    /// Of each pass, by exit: the first word of its record, where it went next, and its first reference's number.
    pub starts: Vec<u32>,
    pub next: Vec<u64>,
    pub numbers: Vec<u32>,
}

impl Sorted {
    /// Sorts the logged ones of some passes by counting. `references` tells how many references an exit has.
    pub fn sort(&mut self, passes: &[Pass], references: impl Fn(u32) -> u16) {
        self.groups.clear();
        for pass in passes {
            if let Made::Logged { exit, .. } = pass.made() {
                self.count(exit);
            }
        }
        self.groups.sort_unstable_by_key(|group| group.exit);
        let mut all = 0;
        for group in &mut self.groups {
            let count = std::mem::replace(&mut self.places[group.exit as usize], all);
            (group.from, group.to) = (all, all + count);
            all += count;
        }
        self.starts.resize(all as usize, 0);
        self.next.resize(all as usize, 0);
        self.numbers.resize(all as usize, 0);
        let mut number = 0;
        for pass in passes {
            match pass.made() {
                Made::Logged { exit, at, next_pc } => {
                    let place = &mut self.places[exit as usize];
                    self.starts[*place as usize] = at;
                    self.next[*place as usize] = next_pc;
                    self.numbers[*place as usize] = number;
                    *place += 1;
                    number += u32::from(references(exit));
                }
                Made::Events { count, .. } => number += count as u32,
            }
        }
        self.groups.iter().for_each(|group| self.places[group.exit as usize] = 0);
    }

    #[inline]
    fn count(&mut self, exit: u32) {
        if exit as usize >= self.places.len() {
            self.places.resize((exit as usize + 1).next_power_of_two(), 0);
        }
        let count = &mut self.places[exit as usize];
        if *count == 0 {
            self.groups.push(Group { exit, from: 0, to: 0 });
        }
        *count += 1;
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        (self.places.capacity() + self.starts.capacity() + self.numbers.capacity()) * 4
            + self.next.capacity() * 8
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
            sorted.sort(&passes.list, |_| 2);
            let group = |exit, from, to| Group { exit, from, to };
            assert_eq!(sorted.groups, [group(0, 0, 1), group(1, 1, 4), group(3, 4, 7)]);
            assert_eq!(sorted.next, [0, 10, 11, 12, 30, 31, 32]);
            assert_eq!(sorted.starts, [6, 2, 8, 12, 0, 4, 10]);
            assert_eq!(sorted.numbers, [6, 2, 8, 16, 0, 4, 10]);
        }
    }
}
