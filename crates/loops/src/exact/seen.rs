//! Iterations of each execution, estimated from bursts (docs/design/loops.md).
//!
//! Executions that a burst saw from begin to end are mostly short ones: their average is that of survivors. What does not
//! depend on how long executions are is how often bursts saw the header passed, a loop begun, a loop ended: the ratio of these
//! counts tends to the true average. Bursts are independent, so their scatter is its error.

/// What bursts saw of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Bursts that saw any of it.
    pub bursts: u64,
    /// Passes through its header.
    pub passes: u64,
    /// Times that it was seen to begin, and to end, together.
    pub ends: u64,
    /// Sum over bursts of the square of the passes.
    pub passes_squared: f64,
    /// Sum over bursts of passes by ends.
    pub products: f64,
    /// Sum over bursts of the square of the ends.
    pub ends_squared: f64,
}

/// An estimate of passes per execution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Likely.
    pub mean: f64,
    /// With 95 % probability at least.
    pub at_least: f64,
    /// And at most; none if no execution was seen to begin or to end.
    pub at_most: Option<f64>,
}

/// Beginnings of bursts are drawn by time, and bursts compared by instructions: an end is seen too often by as much as the code
/// around it takes longer than the loop, instruction by instruction.
const SPEED: f64 = 0.25;

/// Bursts whose scatter says little.
const FEW: u64 = 6;

/// With nothing seen, 95 % of the time less than this was to be expected (Poisson).
const UNSEEN: f64 = 3.0;

impl Seen {
    /// Adds a burst.
    pub(super) fn add(&mut self, passes: u64, ends: u64) {
        let (n, e) = (passes as f64, ends as f64);
        self.bursts += 1;
        self.passes = self.passes.saturating_add(passes);
        self.ends = self.ends.saturating_add(ends);
        self.passes_squared += n * n;
        self.products += n * e;
        self.ends_squared += e * e;
    }

    /// Adds what other bursts saw.
    pub fn merge(&mut self, other: &Seen) {
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.passes = self.passes.saturating_add(other.passes);
        self.ends = self.ends.saturating_add(other.ends);
        self.passes_squared += other.passes_squared;
        self.products += other.products;
        self.ends_squared += other.ends_squared;
    }

    /// Passes per execution; none if nothing was seen.
    pub fn passes_each(&self) -> Option<Estimate> {
        if self.passes == 0 {
            return None;
        }
        let passes = self.passes as f64;
        if self.ends == 0 {
            let at_least = (passes / UNSEEN).max(1.0);
            return Some(Estimate { mean: at_least, at_least, at_most: None });
        }
        // Each execution has two ends.
        let each = passes / self.ends as f64;
        let scatter = self.passes_squared - 2.0 * each * self.products + each * each * self.ends_squared;
        let parts = self.bursts.min(self.ends);
        let freedom = parts.saturating_sub(1).max(1) as f64;
        let mut relative = (scatter.max(0.0) * (freedom + 1.0) / freedom).sqrt() / passes;
        if parts < FEW {
            // Too few to tell how much executions differ: as much as waiting times do, as long as nothing else is known.
            relative = relative.max((2.0 / self.ends as f64).sqrt());
        }
        // A ratio is skewed: its logarithm much less.
        let factor = (quantile(parts) * relative + SPEED).exp();
        let mean = (2.0 * each).max(1.0);
        Some(Estimate { mean, at_least: (mean / factor).max(1.0), at_most: Some(mean * factor) })
    }
}

/// Half the width of an interval of 95 %, in standard errors that were estimated from so many independent parts (Student).
fn quantile(parts: u64) -> f64 {
    // One part has no scatter, and the error is not estimated from it. Two would give 12.71, which is as good as nothing.
    const SMALL: [f64; 10] = [1.96, 4.30, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    let freedom = parts.saturating_sub(1) as f64;
    // Cornish and Fisher's expansion: 0.1 % off from 9 degrees of freedom on.
    let large = 1.96 + 2.3723 / freedom.max(1.0) + 2.8225 / (freedom * freedom).max(1.0);
    SMALL.get(parts.saturating_sub(1) as usize).copied().unwrap_or(large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_that_are_all_alike_have_no_error_once_there_are_some() {
        let mut seen = Seen::default();
        (0..3).for_each(|_| seen.add(300, 2));
        let each = seen.passes_each().unwrap();
        assert!(each.mean == 300.0 && each.at_least < 150.0 && each.at_most > Some(600.0));
        (0..20).for_each(|_| seen.add(300, 2));
        let each = seen.passes_each().unwrap();
        assert!(each.mean == 300.0 && each.at_least > 230.0 && each.at_most < Some(390.0));
        assert_eq!(Seen::default().passes_each(), None);
    }

    #[test]
    fn without_an_end_there_is_only_a_lower_bound() {
        let mut seen = Seen::default();
        (0..3).for_each(|_| seen.add(2000, 0));
        let each = seen.passes_each().unwrap();
        assert_eq!((each.at_least, each.at_most), (2000.0, None));
    }

    #[test]
    fn few_parts_make_a_wide_interval() {
        assert!(quantile(3) > quantile(4) && quantile(10) > quantile(11));
        assert!((quantile(11) - 2.228).abs() < 0.01 && (quantile(1000) - 1.96).abs() < 0.01);
    }
}
