//! What waits to be counted: for the weight of its burst, which is known at the end only, or for enough of it to be
//! counted together.

use crate::batch::BATCH;
use crate::passes::Passes;
use crate::ways::Ways;
use crate::window::Window;

/// Passes that are logged before equal ones are put together.
const PASSES: usize = 1 << 14;

/// Where a burst began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Began {
    /// That was not seen: it stands for no time.
    #[default]
    Unseen,
    /// At this instruction.
    At(u64),
    /// In the kernel.
    Kernel,
}

/// What a thread recorded since its burst began.
#[derive(Default)]
pub(crate) struct Open {
    /// The code that has a part in the burst's time.
    pub window: Window,
    /// Instructions and references of that code.
    pub instructions: u64,
    pub references: u64,
    /// Whose time it stands for.
    pub began: Began,
    /// Whether it recorded anything.
    pub recorded: bool,
    /// What the burst stands for, if it is not what all do.
    pub picoseconds: Option<u64>,
    pub passes: Passes,
    /// Branches whose target is known only when they are taken: places from and to.
    pub edges: Vec<[u64; 2]>,
    /// Blocks that are not counted by path, where events count as they are: place and instructions executed.
    pub blocks: Vec<(u64, u64)>,
    /// Exits that are not counted with `passes`, and how often they were taken, in the order of the log or put together.
    exits: Vec<(u32, u32)>,
    /// When to put them together next.
    exits_limit: usize,
    /// Of this many passes one is kept.
    keep_one_in: u64,
    /// Passes until the next one is kept, and until its group is over.
    skip: u64,
    rest: u64,
}

impl Open {
    /// A burst begins; memory of an older one is used again.
    pub fn restart(&mut self, began: Began) {
        self.window.restart(if let Began::At(pc) = began { Some(pc) } else { None });
        (self.began, self.recorded) = (began, false);
        (self.instructions, self.references) = (0, 0);
        self.picoseconds = None;
        self.passes.clear();
        self.edges.clear();
        self.blocks.clear();
        self.exits.clear();
        self.exits_limit = PASSES;
        self.keep_one_in = 1;
        (self.skip, self.rest) = (0, 0);
    }

    /// Whether there is enough to be counted.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.passes.is_full() || self.edges.len() >= BATCH || self.blocks.len() >= BATCH
    }

    /// Notes that an exit was taken by a pass that is not kept.
    #[inline]
    pub fn took(&mut self, exit: u32) {
        self.exits.push((exit, 1));
        if self.exits.len() >= self.exits_limit {
            self.put_together();
        }
    }

    fn put_together(&mut self) {
        self.exits.sort_unstable();
        self.exits.dedup_by(|next, first| {
            let same = next.0 == first.0;
            first.1 = first.1.saturating_add(if same { next.1 } else { 0 });
            same
        });
        // Bounded by the exits that there are.
        self.exits_limit = PASSES.max(2 * self.exits.len());
    }

    /// The exits noted.
    pub fn exits(&self) -> &[(u32, u32)] {
        &self.exits
    }

    /// Whether not all passes are kept.
    #[inline]
    pub fn is_thinned(&self) -> bool {
        self.keep_one_in > 1
    }

    /// Whether the next pass is to be kept. Of each group of `keep_one_in` passes a random one is: which part of a loop is
    /// seen must not depend on how many passes a round has.
    #[inline]
    pub fn keeps(&mut self, random: &mut Random) -> bool {
        !self.is_thinned() || self.is_its_turn(random)
    }

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

    /// Keeps a random one of each two passes, if they take more than `most` bytes. Exits are counted in full.
    #[inline]
    pub fn thin_out(&mut self, most: usize, ways: &Ways, random: &mut Random) {
        if self.passes.bytes() > most && self.passes.list.len() > 1 {
            self.thin_out_now(ways, random);
        }
    }

    #[cold]
    fn thin_out_now(&mut self, ways: &Ways, random: &mut Random) {
        if !self.is_thinned() {
            for index in 0..self.passes.list.len() {
                let exit = self.passes.list[index].exit();
                if let Some(exit) = exit.filter(|exit| self.window.has(ways.of(*exit).superblock)) {
                    self.took(exit);
                }
            }
        }
        self.passes.thin_out(random, |exit| (ways.of(exit).references, ways.of(exit).words));
        self.keep_one_in *= 2;
        (self.skip, self.rest) = (0, 0);
    }

    /// How much more a kept reference weighs.
    pub fn stands_for(&self) -> u64 {
        self.keep_one_in
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.passes.memory_bytes()
            + (self.edges.capacity() + self.blocks.capacity()) * 16
            + self.exits.capacity() * 8
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
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Event;

    #[test]
    fn a_long_burst_is_thinned_without_a_bias() {
        let (mut open, mut random, ways) = (Open::default(), Random::default(), Ways::new(0));
        open.restart(Began::At(0));
        // Rounds of four passes, which a fixed choice of every second one would halve.
        let (all, most) = (1 << 18, 1 << 17);
        for i in 0..all {
            if open.keeps(&mut random) {
                open.passes.events.push(Event { data: i % 4, times: 1, ..Event::default() });
                open.passes.push_events(1);
                open.thin_out(most, &ways, &mut random);
            }
        }
        assert!(open.passes.bytes() <= most && open.is_thinned());
        let kept = open.passes.list.len() as u64;
        assert_eq!(kept, open.passes.events.len() as u64);
        let total = kept * open.stands_for();
        assert!((all * 9 / 10..=all * 11 / 10).contains(&total), "{total} for {all}");
        for part in 0..4 {
            let share = open.passes.events.iter().filter(|e| e.data == part).count() as f64 / kept as f64;
            assert!((share - 0.25).abs() < 0.05, "{share} of part {part}");
        }
    }

    #[test]
    fn exits_are_counted_in_full() {
        let (mut open, mut random) = (Open::default(), Random::default());
        open.restart(Began::At(0));
        open.window = Window::of(&[0]);
        for i in 0..100_000u32 {
            if open.is_thinned() {
                open.took(i % 10);
            }
            if open.keeps(&mut random) {
                open.passes.push(i % 10, 0, 0, 0);
                open.thin_out(1 << 16, &Ways::new(0), &mut random);
            }
        }
        assert!(open.is_thinned() && open.exits().len() <= PASSES);
        let mut sums = [0; 10];
        open.exits().iter().for_each(|(exit, times)| sums[*exit as usize] += times);
        assert_eq!(sums, [10_000; 10]);
    }
}
