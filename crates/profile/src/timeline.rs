//! How a run went over time, in a bounded number of intervals: a run of a week takes no more room than one of a second.

/// What happened in each of a number of equal intervals of wall time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
    /// The intervals, from the start of the run.
    pub intervals: Vec<Interval>,
}

/// One interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// CPU time of the program in nanoseconds.
    pub cpu_ns: u64,
    /// Bursts.
    pub bursts: u64,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline { interval_ns: Timeline::FIRST_INTERVAL_NS, intervals: Vec::new() }
    }
}

impl Timeline {
    /// Most intervals. When there would be more, neighbours are put together and intervals become twice as long.
    pub const MOST: usize = 512;
    /// Length of intervals to begin with: short programs have a time line too.
    pub const FIRST_INTERVAL_NS: u64 = 10_000_000;

    /// Adds what happened at a time since the start of the run.
    pub fn add(&mut self, at_ns: u64, cpu_ns: u64, bursts: u64) {
        while at_ns / self.interval_ns.max(1) >= Timeline::MOST as u64 {
            self.coarsen();
        }
        let index = (at_ns / self.interval_ns.max(1)) as usize;
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Interval::default());
        }
        let interval = &mut self.intervals[index];
        interval.cpu_ns = interval.cpu_ns.saturating_add(cpu_ns);
        interval.bursts = interval.bursts.saturating_add(bursts);
    }

    /// All bursts on it.
    pub fn bursts(&self) -> u64 {
        self.intervals.iter().fold(0, |sum, interval| sum.saturating_add(interval.bursts))
    }

    fn coarsen(&mut self) {
        self.interval_ns = self.interval_ns.max(1).saturating_mul(2);
        let joined = self.intervals.chunks(2).map(|pair| Interval {
            cpu_ns: pair.iter().fold(0, |sum, i| sum.saturating_add(i.cpu_ns)),
            bursts: pair.iter().fold(0, |sum, i| sum.saturating_add(i.bursts)),
        });
        self.intervals = joined.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_takes_no_more_room_and_loses_nothing() {
        let mut line = Timeline::default();
        let steps = 100_000u64;
        for i in 0..steps {
            line.add(i * 7_000_000, 3, 1);
        }
        assert!(line.intervals.len() <= Timeline::MOST && line.intervals.len() > Timeline::MOST / 4);
        assert_eq!(line.bursts(), steps);
        assert_eq!(line.intervals.iter().map(|i| i.cpu_ns).sum::<u64>(), 3 * steps);
        line.add(u64::MAX, 1, 1);
        assert!(line.intervals.len() <= Timeline::MOST);
        assert_eq!(line.bursts(), steps + 1);
    }
}
