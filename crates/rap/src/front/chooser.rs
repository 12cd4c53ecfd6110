//! Decides whether blocks go through the table or straight into the tree, by what each has cost on this stream.

use super::Way;

/// Costs in cycles, from measurements of the loops alone; only their proportions matter.
mod cost {
    /// Entering the tree with one event.
    pub const ENTER: f32 = 2.0;
    /// Each further slot visited.
    pub const VISIT: f32 = 4.0;
    /// A look into the table.
    pub const LOOK: f32 = 4.5;
    /// A displaced entry, before it descends.
    pub const DISPLACE: f32 = 6.0;
}

/// Blocks that are tried the other way, and how many of them only warm the table up.
const TRIAL: u32 = 6;
const WARM_UP: u32 = 3;
/// Blocks between trials: few at first and after a change, more while nothing changes.
const SHORTEST: u32 = 32;
const LONGEST: u32 = 1024;

/// The choice and what it rests on.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    settled: Way,
    /// Blocks of the running trial that are left.
    trial: u32,
    /// Blocks until the next trial.
    wait: u32,
    interval: u32,
    /// Mean cost per event: of the settled way lately, and of the trial.
    settled_cost: f32,
    trial_cost: f32,
}

impl Default for Chooser {
    fn default() -> Self {
        let (settled_cost, trial_cost) = (0.0, 0.0);
        Chooser {
            settled: Way::Direct,
            trial: 0,
            wait: SHORTEST,
            interval: SHORTEST,
            settled_cost,
            trial_cost,
        }
    }
}

impl Chooser {
    /// Which way the next block goes.
    pub fn way(&self) -> Way {
        match (self.settled, self.trial > 0) {
            (Way::Direct, false) | (Way::Combined, true) => Way::Direct,
            (Way::Direct, true) | (Way::Combined, false) => Way::Combined,
        }
    }

    /// Takes note of a block that went the way just asked for: of `keys` events `descended` entries went into the tree
    /// and visited `visits` slots.
    pub fn learn(&mut self, keys: usize, descended: usize, visits: usize) {
        let cost = block_cost(self.way(), keys, descended, visits) / keys as f32;
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
        let trial_way = self.way();
        self.trial -= 1;
        if self.trial > 0 {
            return;
        }
        if self.trial_cost < self.settled_cost {
            (self.settled, self.settled_cost, self.interval) = (trial_way, self.trial_cost, SHORTEST);
        } else {
            self.interval = (self.interval * 2).min(LONGEST);
        }
        self.wait = self.interval;
    }
}

fn block_cost(way: Way, keys: usize, descended: usize, visits: usize) -> f32 {
    let tree = cost::ENTER * descended as f32 + cost::VISIT * (visits - descended) as f32;
    match way {
        Way::Direct => tree,
        Way::Combined => cost::LOOK * keys as f32 + cost::DISPLACE * descended as f32 + tree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `blocks` blocks of 100 events on a stream with this miss rate and depth; the way most of them went.
    fn run(chooser: &mut Chooser, blocks: usize, misses: usize, depth: usize) -> Way {
        let mut direct = 0;
        for _ in 0..blocks {
            match chooser.way() {
                Way::Direct => {
                    direct += 1;
                    chooser.learn(100, 100, 100 * depth);
                }
                Way::Combined => chooser.learn(100, misses, misses * depth),
            }
        }
        if direct * 2 > blocks { Way::Direct } else { Way::Combined }
    }

    #[test]
    fn follows_the_stream() {
        let mut chooser = Chooser::default();
        assert_eq!(run(&mut chooser, 10_000, 100, 1), Way::Direct, "uniform: the table only misses");
        assert_eq!(run(&mut chooser, 10_000, 1, 5), Way::Combined, "loops: the table nearly always hits");
        assert_eq!(run(&mut chooser, 10_000, 100, 1), Way::Direct, "and back");
    }
}
