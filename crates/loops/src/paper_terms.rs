//! The comparison as paper 5 seems to have made it: loops are short backward branches on both sides.
//!
//! Section 4.2 compares with "an accurate simulation based profiling method" that follows nested loops, calls and recursion.
//! It does not say what a loop is there; a simulator of ARM code sees branches, as DAProf does. [`crate::compare`] asks
//! more: loops of the control flow, wherever the compiler put their pieces. Here the reference is the observer, which sees
//! the same branches without limits.
//!
//! The formula for executions is a figure that the text lost. Its neighbour for time is a mean over ten loops, "simply the
//! average absolute difference", so here it is a mean, too; [`crate::compare`] has the sum.

use crate::compare::{CompareConfig, Reported, observer_reports};
use crate::daprof::MAX_CURRENT;
use crate::observer::ObserverProfile;

/// Errors over a profiler's hottest loops; 0 is perfect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PaperTerms {
    /// Sum of differences of average iterations over the sum of the actual ones, as far as 10 bits hold them; none if the
    /// profiler has none.
    pub iterations_error: Option<f64>,
    /// Mean difference of executions, each as a share of those of all loops compared.
    pub executions_error: Option<f64>,
    /// Mean difference of shares of time, estimated by iterations and distance on both sides.
    pub time_error: f64,
}

/// One loop: what is reported, and what the observer has.
struct Pair {
    reported: Reported,
    executions: f64,
    average: f64,
    share: f64,
}

/// Compares what a profiler reports with what an observer of the same branches without limits does.
pub fn in_the_papers_terms(
    reports: &[Reported],
    observer: &ObserverProfile,
    config: &CompareConfig,
) -> PaperTerms {
    let mut reports = reports.to_vec();
    reports.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.branch.cmp(&b.branch)));
    reports.truncate(config.top);
    let actual = observer_reports(observer, config);
    let pair = |reported: Reported| {
        let seen = observer.get(reported.branch).copied().unwrap_or_default();
        let share = actual.iter().find(|a| a.branch == reported.branch).map_or(0.0, |a| a.share);
        let reported =
            Reported { average: reported.average.map(|a| a.min(f64::from(MAX_CURRENT))), ..reported };
        Pair { reported, executions: seen.executions as f64, average: seen.average_in_ten_bits(), share }
    };
    let pairs: Vec<Pair> = reports.into_iter().map(pair).collect();
    let n = pairs.len().max(1) as f64;
    PaperTerms {
        iterations_error: iterations_error(&pairs),
        executions_error: executions_error(&pairs).map(|sum| sum / n),
        time_error: pairs.iter().map(|p| (p.reported.share - p.share).abs()).sum::<f64>() / n,
    }
}

fn iterations_error(pairs: &[Pair]) -> Option<f64> {
    let reported: Option<Vec<f64>> = pairs.iter().map(|p| p.reported.average).collect();
    let differences: f64 = reported?.iter().zip(pairs).map(|(a, p)| (a - p.average).abs()).sum();
    let sum: f64 = pairs.iter().map(|p| p.average).sum();
    (sum > 0.0).then(|| differences / sum)
}

fn executions_error(pairs: &[Pair]) -> Option<f64> {
    let reported: Option<Vec<f64>> = pairs.iter().map(|p| p.reported.executions).collect();
    let reported = reported?;
    let (all, actual): (f64, f64) = (reported.iter().sum(), pairs.iter().map(|p| p.executions).sum());
    let difference = |(e, p): (&f64, &Pair)| (e / all - p.executions / actual).abs();
    (all > 0.0 && actual > 0.0).then(|| reported.iter().zip(pairs).map(difference).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObservedLoop;

    fn seen(branch: u64, executions: u64, average: u64) -> ObservedLoop {
        let iterations = executions * average;
        ObservedLoop {
            branch,
            distance: 36,
            executions,
            iterations,
            in_ten_bits: executions * average.min(1023),
        }
    }

    fn reported(branch: u64, executions: f64, average: f64, share: f64) -> Reported {
        Reported { branch, target: branch - 36, executions: Some(executions), average: Some(average), share }
    }

    fn observer() -> ObserverProfile {
        // Ten instructions a round: 1,000, 6,000 and 20,000 of 40,000.
        let loops = vec![seen(0x100, 10, 10), seen(0x200, 30, 20), seen(0x300, 1, 2000)];
        ObserverProfile { loops, instructions: 40_000, ..ObserverProfile::default() }
    }

    #[test]
    fn the_formulas_on_made_up_numbers() {
        let reports = [reported(0x100, 20.0, 8.0, 0.225), reported(0x200, 20.0, 23.0, 0.15)];
        let got = in_the_papers_terms(&reports, &observer(), &CompareConfig::default());
        assert_eq!(got.iterations_error, Some(5.0 / 30.0));
        // Half and half instead of a quarter and three quarters: a quarter each.
        assert_eq!(got.executions_error, Some(0.25));
        assert!((got.time_error - 0.1).abs() < 1e-12, "{got:?}");
    }

    #[test]
    fn ten_bits_are_taken_for_granted_and_the_hottest_are_compared() {
        let reports = [reported(0x300, 1.0, 1023.0, 0.5), reported(0x100, 10.0, 99.0, 0.025)];
        let config = CompareConfig { top: 1, ..CompareConfig::default() };
        let got = in_the_papers_terms(&reports, &observer(), &config);
        assert_eq!((got.iterations_error, got.executions_error), (Some(0.0), Some(0.0)));
        assert!(got.time_error < 1e-12);
        let more = [reported(0x300, 1.0, 2000.0, 0.5)];
        assert_eq!(in_the_papers_terms(&more, &observer(), &config).iterations_error, Some(0.0));
    }

    #[test]
    fn a_branch_that_was_never_seen_and_a_profiler_without_averages() {
        let unknown = [reported(0x900, 1.0, 5.0, 0.1)];
        let got = in_the_papers_terms(&unknown, &observer(), &CompareConfig::default());
        assert_eq!((got.iterations_error, got.executions_error), (None, None));
        assert!((got.time_error - 0.1).abs() < 1e-12);
        let counts = [Reported { executions: None, average: None, ..reported(0x100, 0.0, 0.0, 0.025) }];
        let got = in_the_papers_terms(&counts, &observer(), &CompareConfig::default());
        assert_eq!((got.iterations_error, got.executions_error), (None, None));
        assert_eq!(in_the_papers_terms(&[], &observer(), &CompareConfig::default()), PaperTerms::default());
    }
}
