//! What bursts stand for, and how their time is divided.

/// What is known of the bursts of a run.
///
/// With a weight per burst, `time` is what all trees share out: an event of a burst weighs the burst's time divided by
/// the burst's instructions. What does not divide goes to the next burst, so that at the end `time` = weight of the code
/// tree + `undivided` + `empty_time`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bursts begun, whatever came of them.
    pub count: u64,
    /// Those of them that recorded no instruction.
    pub empty: u64,
    /// Those of them with more passes than are kept at once: the references of a random part of them were taken, each
    /// weighing accordingly more. Code and edges are counted in full.
    pub thinned: u64,
    /// Picoseconds of CPU time that the bursts stand for; 0 if events count as they are.
    pub time: u64,
    /// Picoseconds among them that stand for bursts without an instruction, which no tree has.
    pub empty_time: u64,
    /// Picoseconds that did not divide at the end.
    pub undivided: u64,
    /// Squares of the microseconds that each burst with an instruction stands for, added up; 0 where that is not known. The
    /// more they differ, the less they tell together.
    pub squares: u64,
}

impl Bursts {
    /// Adds the bursts of another run.
    pub fn add(&mut self, other: &Bursts) {
        sonde_event::add_counts!(Bursts {
            count, empty, thinned, time, empty_time, undivided, squares
        }: self, other);
    }

    /// Of how many bursts of equal weight a share would be as sure as of these (Kish's effective sample size).
    pub fn effective(&self) -> f64 {
        let all = self.count.saturating_sub(self.empty) as f64;
        let time = self.time.saturating_sub(self.empty_time) as f64 / 1e6;
        if self.squares == 0 { all } else { (time * time / self.squares as f64).min(all) }
    }

    /// A burst ends that stands for `time` and recorded `instructions`: what each of them weighs.
    pub fn weigh(&mut self, time: u64, instructions: u64) -> u64 {
        self.time = self.time.saturating_add(time);
        if instructions == 0 {
            self.empty += 1;
            self.empty_time = self.empty_time.saturating_add(time);
            return 0;
        }
        let microseconds = time / 1_000_000;
        self.squares = self.squares.saturating_add(microseconds.saturating_mul(microseconds));
        let all = time.saturating_add(self.undivided);
        self.undivided = all % instructions;
        all / instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_lost() {
        let mut bursts = Bursts::default();
        let mut shared_out = 0;
        for (time, instructions) in [(1000, 7), (1000, 999), (1000, 3000), (1000, 0), (5, 2), (0, 3)] {
            shared_out += bursts.weigh(time, instructions) * instructions;
        }
        assert_eq!(bursts.time, 4005);
        assert_eq!(bursts.time, shared_out + bursts.undivided + bursts.empty_time);
        assert_eq!(bursts.empty, 1);
    }
}
