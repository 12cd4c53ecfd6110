//! A burst that is not over: what it weighs is known at its end only, so what it recorded has to wait.

use crate::batch::{Batch, Event};

/// Passes that are logged before equal ones are put together.
const PASSES: usize = 1 << 14;

/// What a thread recorded since its burst began.
#[derive(Default)]
pub(crate) struct Open {
    pub instructions: u64,
    /// What the burst stands for, if it is not what all do.
    pub picoseconds: Option<u64>,
    pub batch: Batch,
    /// Exits and how often they were taken, in the order of the log or put together.
    passes: Vec<(u32, u32)>,
    /// When to put them together next.
    passes_limit: usize,
    /// Of this many references one is kept.
    keep_one_in: u64,
    /// References until the next one is kept, and until its group is over.
    skip: u64,
    rest: u64,
}

impl Open {
    /// A burst begins; memory of an older one is used again.
    pub fn restart(&mut self) {
        self.instructions = 0;
        self.picoseconds = None;
        self.batch.clear();
        self.passes.clear();
        self.passes_limit = PASSES;
        self.keep_one_in = 1;
        (self.skip, self.rest) = (0, 0);
    }

    /// Notes a pass.
    #[inline]
    pub fn pass(&mut self, exit: u32) {
        self.passes.push((exit, 1));
        if self.passes.len() >= self.passes_limit {
            self.put_together();
        }
    }

    fn put_together(&mut self) {
        self.passes.sort_unstable();
        self.passes.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 = first.1.saturating_add(if same { next.1 } else { 0 });
            same
        });
        // Bounded by the exits that there are.
        self.passes_limit = PASSES.max(2 * self.passes.len());
    }

    /// The passes noted.
    pub fn passes(&self) -> &[(u32, u32)] {
        &self.passes
    }

    /// Keeps a reference, or one of several if there are more than `cap`.
    #[inline]
    pub fn push(&mut self, event: Event, cap: usize, random: &mut Random) {
        if self.keep_one_in > 1 && !self.is_its_turn(random) {
            return;
        }
        self.batch.events.push(event);
        if self.batch.events.len() >= cap {
            self.thin_out(random);
        }
    }

    /// Keeps several.
    #[inline]
    pub fn extend(&mut self, events: impl ExactSizeIterator<Item = Event>, cap: usize, random: &mut Random) {
        if self.keep_one_in == 1 && self.batch.events.len() + events.len() < cap {
            self.batch.events.extend(events);
        } else {
            events.for_each(|event| self.push(event, cap, random));
        }
    }

    /// Of each group of `keep_one_in` references a random one is kept: which part of a loop is seen must not depend on
    /// how many references a round has.
    fn is_its_turn(&mut self, random: &mut Random) -> bool {
        if self.rest == 0 {
            self.rest = self.keep_one_in;
            self.skip = random.below(self.keep_one_in);
        }
        self.rest -= 1;
        let turn = self.skip == 0;
        self.skip = self.skip.wrapping_sub(1);
        turn
    }

    /// Keeps a random one of each two.
    fn thin_out(&mut self, random: &mut Random) {
        let events = &mut self.batch.events;
        let pairs = events.len() / 2;
        for pair in 0..pairs {
            events[pair] = events[2 * pair + random.below(2) as usize];
        }
        events.truncate(pairs.max(1));
        self.keep_one_in *= 2;
        (self.skip, self.rest) = (0, 0);
    }

    /// How much more a kept reference weighs.
    pub fn stands_for(&self) -> u64 {
        self.keep_one_in
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.batch.memory_bytes() + self.passes.capacity() * 8
    }
}

/// A small generator (xorshift*), seeded with a constant: the same stream gives the same summary.
pub(crate) struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x2545_f491_4f6c_dd1d)
    }
}

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_burst_is_thinned_without_a_bias() {
        let (mut open, mut random) = (Open::default(), Random::default());
        open.restart();
        // Rounds of four references, which a fixed choice of every second one would halve.
        let all = 1 << 18;
        for i in 0..all {
            open.push(Event { data: i % 4, times: 1, ..Event::default() }, 1 << 12, &mut random);
        }
        let kept = open.batch.events.len() as u64;
        assert!(kept < 1 << 12 && open.stands_for() > 1);
        let total = kept * open.stands_for();
        assert!((all * 9 / 10..=all * 11 / 10).contains(&total), "{total} for {all}");
        for part in 0..4 {
            let share = open.batch.events.iter().filter(|e| e.data == part).count() as f64 / kept as f64;
            assert!((share - 0.25).abs() < 0.05, "{share} of part {part}");
        }
    }

    #[test]
    fn passes_are_put_together() {
        let mut open = Open::default();
        open.restart();
        for i in 0..100_000u32 {
            open.pass(i % 10);
        }
        assert!(open.passes().len() <= PASSES);
        let mut sums = [0; 10];
        open.passes().iter().for_each(|(exit, times)| sums[*exit as usize] += times);
        assert_eq!(sums, [10_000; 10]);
    }
}
