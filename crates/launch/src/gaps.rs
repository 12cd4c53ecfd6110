//! The CPU time from one burst to the next, varied at random so that bursts do not keep step with the program.

use sonde_wire::Config;

/// A source of gaps.
pub struct Gaps {
    period_ns: u64,
    jitter: u32,
    random: u64,
}

impl Gaps {
    /// As configured.
    pub fn new(config: &Config) -> Gaps {
        Gaps { period_ns: config.period_ns.max(1000), jitter: config.jitter, random: config.seed | 1 }
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// The next gap.
    pub fn next(&mut self) -> u64 {
        let random = self.draw();
        let span = self.period_ns / 1000 * u64::from(self.jitter);
        if span == 0 { self.period_ns } else { self.period_ns - span + random % (2 * span) }
    }

    /// The first gap of a process or thread that is one of many: anything up to a period, so that bursts fall on short ones
    /// in proportion to their CPU time, too. Such a burst stands for a period.
    pub fn first(&mut self) -> u64 {
        self.draw() % self.period_ns
    }

    /// The mean.
    pub fn period(&self) -> u64 {
        self.period_ns
    }

    /// Changes the mean.
    pub fn set_period(&mut self, period_ns: u64) {
        self.period_ns = period_ns.max(1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_vary_around_the_period() {
        let config = Config { period_ns: 1_000_000, jitter: 500, seed: 7, ..Config::default() };
        let mut gaps = Gaps::new(&config);
        let all: Vec<u64> = (0..10_000).map(|_| gaps.next()).collect();
        assert!(all.iter().all(|g| (500_000..1_500_000).contains(g)));
        let mean = all.iter().sum::<u64>() / 10_000;
        assert!((980_000..1_020_000).contains(&mean), "{mean}");
    }

    /// Many processes of a tenth of a period each get as many bursts as one process of their length.
    #[test]
    fn short_processes_get_their_share() {
        let config = Config { period_ns: 1_000_000, jitter: 500, seed: 7, ..Config::default() };
        let mut gaps = Gaps::new(&config);
        let bursts = (0..10_000).filter(|_| gaps.first() < 100_000).count();
        assert!((900..1100).contains(&bursts), "{bursts}");
    }
}
