//! Decides whether blocks go through the table or straight into the tree, by what each has cost on this stream.

use super::Way;

/// Costs in cycles, from measurements of the loops alone; only their proportions matter.
mod cost {
    /// Entering the tree with one event.
    pub const ENTER: f32 = 3.0;
    /// Each further slot visited.
    pub const VISIT: f32 = 4.5;
    /// A look into the table, and what an entry that was displaced costs before it descends.
    pub const LOOK: f32 = 4.0;
    pub const DISPLACE: f32 = 8.0;
    /// A look into the filter.
    pub const FILTER: f32 = 4.0;
    /// Interleaving the bits of one dimension.
    pub const INTERLEAVE: f32 = 8.0;
}

/// Blocks that are tried another way, and how many of them only warm its table up.
const TRIAL: u32 = 8;
const WARM_UP: u32 = 4;
/// Blocks between trials: few at first and after a change, more while nothing changes.
const SHORTEST: u32 = 32;
const LONGEST: u32 = 2048;

/// The choice and what it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    settled: Way,
    /// The way on trial, or the one that will be next.
    candidate: Way,
    /// Blocks of the running trial that are left.
    trial: u32,
    /// Blocks until the next trial.
    wait: u32,
    interval: u32,
    /// Mean cost per event: of the settled way lately, and of the trial.
    settled_cost: f32,
    trial_cost: f32,
    /// Cost of entering the tree.
    enter: f32,
}

impl Chooser {
    /// For keys of so many dimensions.
    pub fn new(dims: usize) -> Self {
        let interleave = if dims > 1 { cost::INTERLEAVE * dims as f32 } else { 0.0 };
        Chooser {
            settled: Way::Direct,
            candidate: Way::Combined,
            trial: 0,
            wait: SHORTEST,
            interval: SHORTEST,
            settled_cost: 0.0,
            trial_cost: 0.0,
            enter: cost::ENTER + interleave,
        }
    }

    /// Which way the next block goes.
    pub fn way(&self) -> Way {
        if self.trial > 0 { self.candidate } else { self.settled }
    }

    /// Takes note of a block that went the way just asked for: of `keys` events `descended` entries went into the tree
    /// and visited `visits` slots.
    pub fn learn(&mut self, keys: usize, descended: usize, visits: usize) {
        let cost = self.block_cost(keys, descended, visits) / keys as f32;
        if self.trial > 0 {
            self.learn_trial(cost);
            return;
        }
        self.settled_cost += (cost - self.settled_cost) / 4.0;
        self.wait -= 1;
        if self.wait == 0 {
            (self.trial, self.trial_cost) = (TRIAL, 0.0);
        }
    }

    fn learn_trial(&mut self, cost: f32) {
        if self.trial <= TRIAL - WARM_UP {
            self.trial_cost += cost / (TRIAL - WARM_UP) as f32;
        }
        self.trial -= 1;
        if self.trial > 0 {
            return;
        }
        if self.trial_cost < self.settled_cost {
            (self.settled, self.settled_cost) = (self.candidate, self.trial_cost);
            self.interval = SHORTEST;
        } else {
            self.interval = (self.interval * 2).min(LONGEST);
        }
        self.wait = self.interval;
        self.candidate = self.next_candidate();
    }

    fn next_candidate(&self) -> Way {
        let after = |way| match way {
            Way::Direct => Way::Combined,
            Way::Combined => Way::Filtered,
            Way::Filtered => Way::Direct,
        };
        let next = after(self.candidate);
        if next == self.settled { after(next) } else { next }
    }

    fn block_cost(&self, keys: usize, descended: usize, visits: usize) -> f32 {
        let (keys, descended, visits) = (keys as f32, descended as f32, visits as f32);
        let tree = self.enter * descended + cost::VISIT * (visits - descended);
        match self.way() {
            Way::Direct => tree,
            Way::Combined => cost::LOOK * keys + cost::DISPLACE * descended + tree,
            Way::Filtered => cost::FILTER * keys + tree,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `blocks` blocks of 100 events on a stream with these misses and this depth; the way most of them went.
    fn run(chooser: &mut Chooser, blocks: usize, misses: (usize, usize), depth: usize) -> Way {
        let mut counts = [0; 3];
        for _ in 0..blocks {
            counts[chooser.way() as usize] += 1;
            match chooser.way() {
                Way::Direct => chooser.learn(100, 100, 100 * depth),
                Way::Combined => chooser.learn(100, misses.0, misses.0 * depth),
                Way::Filtered => chooser.learn(100, misses.1, misses.1 * depth),
            }
        }
        [Way::Direct, Way::Combined, Way::Filtered]
            .into_iter()
            .find(|&way| counts[way as usize] * 2 > blocks)
            .expect("one way has the majority")
    }

    #[test]
    fn follows_the_stream() {
        let mut chooser = Chooser::new(1);
        assert_eq!(run(&mut chooser, 20_000, (100, 100), 1), Way::Direct, "uniform: tables only miss");
        assert_eq!(
            run(&mut chooser, 20_000, (1, 70), 5),
            Way::Combined,
            "loops: the table nearly always hits"
        );
        assert_eq!(
            run(&mut chooser, 20_000, (50, 40), 3),
            Way::Filtered,
            "skewed: hot values stay in the filter"
        );
        assert_eq!(run(&mut chooser, 20_000, (100, 100), 1), Way::Direct, "and back");
    }
}
