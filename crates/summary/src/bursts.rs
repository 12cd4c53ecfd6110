//! What bursts stand for, and how their time is divided.

/// What is known of the bursts of a run.
///
/// With a weight per burst, `time` is what all trees share out: the instruction that a burst began at has it in the tree
/// over code, so that at the end `time` = weight of that tree + `kernel_time`.
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
    /// Picoseconds among them that no code has: the thread was in the kernel when its time was up.
    pub kernel_time: u64,
    /// Squares of the microseconds that each burst in code stands for, added up; 0 where that is not known. The more they
    /// differ, the less they tell together.
    pub squares: u64,
    /// Microseconds that the references of each burst weigh together, added up, and the squares of these; 0 where that is
    /// not known. Bursts without references tell nothing of data.
    pub reference_time: u64,
    /// The squares.
    pub reference_squares: u64,
}

/// Kish's effective sample size: of how many of equal weight a share would be as sure.
fn effective(time: f64, squares: u64) -> f64 {
    time * time / squares as f64
}

impl Bursts {
    /// Adds the bursts of another run.
    pub fn add(&mut self, other: &Bursts) {
        sonde_event::add_counts!(Bursts {
            count, empty, thinned, time, kernel_time, squares, reference_time, reference_squares
        }: self, other);
    }

    /// Of how many bursts of equal weight a share of code would be as sure as of these.
    pub fn effective(&self) -> f64 {
        let time = self.time.saturating_sub(self.kernel_time) as f64 / 1e6;
        if self.squares == 0 {
            self.count as f64
        } else {
            effective(time, self.squares).min(self.count as f64)
        }
    }

    /// The same for a share of references.
    pub fn effective_of_references(&self) -> f64 {
        let all = self.effective();
        match self.reference_squares {
            0 => all,
            squares => effective(self.reference_time as f64, squares).min(all),
        }
    }

    /// A burst ends that stands for `time` of code.
    pub fn weigh(&mut self, time: u64) {
        self.time = self.time.saturating_add(time);
        let microseconds = time / 1_000_000;
        self.squares = self.squares.saturating_add(microseconds.saturating_mul(microseconds));
    }

    /// A burst ends that stands for `time` of the kernel.
    pub fn weigh_kernel(&mut self, time: u64) {
        self.time = self.time.saturating_add(time);
        self.kernel_time = self.kernel_time.saturating_add(time);
    }

    /// So many references of a burst weigh this much each.
    pub fn weigh_references(&mut self, references: u64, each: u64) {
        let microseconds = references.saturating_mul(each) / 1_000_000;
        self.reference_time = self.reference_time.saturating_add(microseconds);
        let square = microseconds.saturating_mul(microseconds);
        self.reference_squares = self.reference_squares.saturating_add(square);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_time_is_in_all_and_in_no_code() {
        let mut bursts = Bursts { count: 3, ..Bursts::default() };
        bursts.weigh(5_000_000);
        bursts.weigh(5_000_000);
        bursts.weigh_kernel(90_000_000);
        assert_eq!((bursts.time, bursts.kernel_time), (100_000_000, 90_000_000));
        assert!((bursts.effective() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn bursts_without_references_tell_nothing_of_data() {
        let mut bursts = Bursts { count: 100, ..Bursts::default() };
        for burst in 0..100 {
            bursts.weigh(20_000_000_000);
            bursts.weigh_references(if burst % 10 == 0 { 50 } else { 0 }, 100_000_000);
        }
        assert!((bursts.effective() - 100.0).abs() < 1e-9);
        assert!((bursts.effective_of_references() - 10.0).abs() < 1e-9);
    }
}
