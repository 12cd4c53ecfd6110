//! How far a profiler's loops are from the exact ones: the measures of paper 5 section 4.2 and 4.3.

use crate::daprof::DaprofProfile;
use crate::exact::{LoopStats, LoopsProfile};
use crate::frequent::FrequentProfile;

/// What the exact iterations are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Actual {
    /// Times that a loop went back, in executions that went back at all: what a perfect observer of backward branches
    /// would report. A loop that is tested where it goes round goes back one time less than it iterates.
    #[default]
    BackEdges,
    /// Iterations and executions of the program.
    Iterations,
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompareConfig {
    /// Loops compared: the profiler's hottest.
    pub top: usize,
    /// The truth to compare with.
    pub actual: Actual,
    /// Actual averages above this count as this: 1023 takes the 10 bits of DAProf for granted, as in the paper, whose
    /// programs had few longer loops. Without it, one loop of a million iterations is all that the error shows.
    pub most_iterations: Option<f64>,
    /// Bytes per instruction, to estimate instructions from distances; 4 on the paper's processor.
    pub bytes_per_instruction: f64,
}

impl Default for CompareConfig {
    fn default() -> CompareConfig {
        CompareConfig {
            top: 10,
            actual: Actual::BackEdges,
            most_iterations: None,
            bytes_per_instruction: 4.0,
        }
    }
}

/// A loop as some profiler reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reported {
    /// Pc of the backward branch.
    pub branch: u64,
    /// Its target.
    pub target: u64,
    /// Executions, if it tells them.
    pub executions: Option<f64>,
    /// Average iterations, if it tells them.
    pub average: Option<f64>,
    /// Estimated share of all instructions.
    pub share: f64,
}

/// One row: reported and actual.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// What the profiler says.
    pub reported: Reported,
    /// Header of the exact loop; none if the branch belongs to no natural loop.
    pub header: Option<u64>,
    /// Actual executions.
    pub executions: f64,
    /// Actual average iterations.
    pub average: f64,
    /// Actual share of instructions, without inner loops and calls.
    pub share: f64,
}

/// Errors over the top loops; 0 is perfect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The loops compared, hottest by the profiler's estimate first.
    pub rows: Vec<Row>,
    /// Sum of differences of average iterations over the sum of the actual ones; none if the profiler has none.
    pub average_error: Option<f64>,
    /// The same for executions, each as a share of those of all loops compared, since saturation makes them relative.
    pub executions_error: Option<f64>,
    /// Mean difference of shares of time (instructions).
    pub share_error: f64,
    /// Actual share of the loops compared together.
    pub captured: f64,
    /// Actual share of the exact top loops: the most that could be captured.
    pub possible: f64,
    /// Exact top loops that the profiler does not have among its own.
    pub missed: usize,
}

/// What DAProf reports, as rows to compare. Shares are iterations times instructions in the loop over all instructions; if
/// executions were halved they are scaled back, and what then exceeds everything is scaled to everything.
pub fn daprof_reports(profile: &DaprofProfile, config: &CompareConfig) -> Vec<Reported> {
    let scale = 2f64.powi(profile.halvings.min(1000) as i32);
    let rows = profile.loops.iter().map(|l| Reported {
        branch: l.branch,
        target: l.target(),
        executions: Some(l.executions as f64),
        average: Some(l.average),
        share: share(l.iterations() * scale, l.distance, profile.instructions, config),
    });
    limited(rows.collect())
}

/// What frequent loop detection reports, as rows to compare.
pub fn frequent_reports(profile: &FrequentProfile, config: &CompareConfig) -> Vec<Reported> {
    let scale = 2f64.powi(profile.shifts.min(1000) as i32);
    let rows = profile.loops.iter().map(|l| Reported {
        branch: l.branch,
        target: l.branch.wrapping_sub(l.distance.into()),
        executions: None,
        average: None,
        share: share(l.count as f64 * scale, l.distance, profile.instructions, config),
    });
    limited(rows.collect())
}

fn share(iterations: f64, distance: u32, instructions: u64, config: &CompareConfig) -> f64 {
    // The branch itself is one more.
    let body = f64::from(distance) / config.bytes_per_instruction + 1.0;
    iterations * body / (instructions as f64).max(1.0)
}

fn limited(mut rows: Vec<Reported>) -> Vec<Reported> {
    let sum: f64 = rows.iter().map(|r| r.share).sum();
    if sum > 1.0 {
        rows.iter_mut().for_each(|r| r.share /= sum);
    }
    rows
}

/// The exact loop that a backward branch belongs to: one that goes round there, else the smallest that holds both ends
/// (a loop that is entered at its test, behind its body, goes round elsewhere).
fn loop_of<'a>(exact: &'a LoopsProfile, reported: &Reported) -> Option<&'a LoopStats> {
    let latch = exact.loops.iter().filter(|l| l.latches.contains(&reported.branch));
    let ends = reported.target..=reported.branch;
    let holds = |l: &&LoopStats| {
        let body = l.low..l.low.saturating_add(l.extent);
        body.contains(ends.start()) && body.contains(ends.end())
    };
    latch.min_by_key(|l| l.extent).or_else(|| exact.loops.iter().filter(holds).min_by_key(|l| l.extent))
}

fn actual(l: &LoopStats, config: &CompareConfig) -> (f64, f64) {
    let (executions, iterations) = match config.actual {
        Actual::Iterations => (l.whole.executions, l.whole.iterations),
        Actual::BackEdges => (l.whole.executions - l.single, l.passes - l.whole.executions),
    };
    let average = if executions == 0 { 0.0 } else { iterations as f64 / executions as f64 };
    (executions as f64, config.most_iterations.map_or(average, |most| average.min(most)))
}

/// Compares what a profiler reports with the truth. Where several branches belong to one loop, the hottest counts.
pub fn compare(reports: &[Reported], exact: &LoopsProfile, config: &CompareConfig) -> Comparison {
    let mut reports = reports.to_vec();
    reports.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.branch.cmp(&b.branch)));
    let mut rows: Vec<Row> = Vec::new();
    for reported in reports {
        let found = loop_of(exact, &reported);
        let header = found.map(|l| l.header);
        if rows.len() == config.top || (header.is_some() && rows.iter().any(|r| r.header == header)) {
            continue;
        }
        let (executions, average) = found.map_or((0.0, 0.0), |l| actual(l, config));
        let share = found.map_or(0.0, |l| exact.share(l.own_weight));
        rows.push(Row { reported, header, executions, average, share });
    }
    let hottest = exact.hottest();
    let best = &hottest[..config.top.min(hottest.len())];
    Comparison {
        average_error: average_error(&rows),
        executions_error: executions_error(&rows),
        share_error: mean(rows.iter().map(|r| (r.reported.share - r.share).abs())),
        captured: rows.iter().map(|r| r.share).sum(),
        possible: best.iter().map(|l| exact.share(l.own_weight)).sum(),
        missed: best.iter().filter(|l| !rows.iter().any(|r| r.header == Some(l.header))).count(),
        rows,
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len();
    if n == 0 { 0.0 } else { values.sum::<f64>() / n as f64 }
}

fn average_error(rows: &[Row]) -> Option<f64> {
    let reported: Option<Vec<f64>> = rows.iter().map(|r| r.reported.average).collect();
    let differences: f64 = reported?.iter().zip(rows).map(|(a, r)| (a - r.average).abs()).sum();
    let sum: f64 = rows.iter().map(|r| r.average).sum();
    (sum > 0.0).then(|| differences / sum)
}

fn executions_error(rows: &[Row]) -> Option<f64> {
    let reported: Option<Vec<f64>> = rows.iter().map(|r| r.reported.executions).collect();
    let reported = reported?;
    let (all, actual): (f64, f64) = (reported.iter().sum(), rows.iter().map(|r| r.executions).sum());
    if all == 0.0 || actual == 0.0 {
        return None;
    }
    Some(reported.iter().zip(rows).map(|(e, r)| (e / all - r.executions / actual).abs()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::Spread;

    fn exact() -> LoopsProfile {
        let l = |header: u64, executions: u64, passes: u64, own: u64| LoopStats {
            header,
            depth: 1,
            latches: vec![header + 20],
            low: header,
            extent: 22,
            whole: Spread { executions, iterations: passes, most: passes, ..Spread::default() },
            passes,
            own,
            own_weight: own as f64,
            inclusive: own,
            ..LoopStats::default()
        };
        LoopsProfile {
            loops: vec![l(0x100, 10, 110, 400), l(0x200, 30, 630, 200), l(0x300, 1, 2, 100)],
            instructions: 1000,
            weight: 1000.0,
            ..LoopsProfile::default()
        }
    }

    fn reported(header: u64, executions: f64, average: f64, share: f64) -> Reported {
        let (branch, target) = (header + 20, header);
        Reported { branch, target, executions: Some(executions), average: Some(average), share }
    }

    #[test]
    fn the_papers_formulas_on_made_up_numbers() {
        // Actual back-edges: 10 x 10, 30 x 20.
        let reports = [reported(0x100, 20.0, 8.0, 0.5), reported(0x200, 20.0, 23.0, 0.1)];
        let got = compare(&reports, &exact(), &CompareConfig { top: 2, ..CompareConfig::default() });
        assert_eq!(got.average_error, Some((2.0 + 3.0) / 30.0));
        // Half and half instead of a quarter and three quarters.
        assert_eq!(got.executions_error, Some(0.5));
        assert!((got.share_error - 0.1).abs() < 1e-12);
        assert!((got.captured - 0.6).abs() < 1e-12);
        assert_eq!((got.possible, got.missed), (got.captured, 0));
    }

    #[test]
    fn what_ten_bits_cannot_hold_can_be_left_out() {
        let reports = [reported(0x200, 30.0, 15.0, 0.1)];
        let error = |most| {
            let config = CompareConfig { most_iterations: most, ..CompareConfig::default() };
            compare(&reports, &exact(), &config).average_error
        };
        assert_eq!((error(None), error(Some(15.0))), (Some(0.25), Some(0.0)));
    }

    #[test]
    fn a_branch_without_a_loop_counts_as_nothing_and_a_second_one_of_a_loop_not_at_all() {
        let second = Reported { branch: 0x110, target: 0x104, ..reported(0x100, 5.0, 5.0, 0.05) };
        let reports = [reported(0x900, 1.0, 1.0, 0.3), reported(0x100, 10.0, 10.0, 0.4), second];
        let got = compare(&reports, &exact(), &CompareConfig::default());
        assert_eq!(got.rows.len(), 2);
        assert_eq!((got.rows[1].header, got.missed), (None, 2));
        assert_eq!(got.average_error, Some(0.1));
    }
}
