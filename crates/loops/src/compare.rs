//! How far a profiler's loops are from the exact ones: the measures of paper 5 section 4.2 and 4.3.

use crate::daprof::{DaprofProfile, MAX_CURRENT, MAX_EXECUTIONS};
use crate::exact::{LoopStats, LoopsProfile};
use crate::frequent::FrequentProfile;
use crate::observer::ObserverProfile;

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
    /// Averages above this count as this, reported and actual ones: 1023 takes the 10 bits of DAProf for granted, as in the paper, whose
    /// programs had few longer loops. Without it, one loop of a million iterations is all that the error shows.
    pub most_iterations: Option<f64>,
    /// Leave branches out that go round no natural loop. Optimizing compilers put unlikely code behind a function and jump
    /// back from there, once each time; who has the program's file can tell such jumps from loops.
    pub only_loops: bool,
    /// Bytes per instruction, to estimate instructions from distances; 4 on the paper's processor.
    pub bytes_per_instruction: f64,
}

impl Default for CompareConfig {
    fn default() -> CompareConfig {
        CompareConfig {
            top: 10,
            actual: Actual::BackEdges,
            most_iterations: None,
            only_loops: false,
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

/// By how much counts have to be multiplied that were halved together, each time that one was full. The largest lost half
/// of a full count each time; others are taken to have kept step with it. (Doubling for each time would be right only
/// for counts that stood still since.)
fn scale(largest: f64, full: f64, halvings: u32) -> f64 {
    if largest > 0.0 { 1.0 + f64::from(halvings) * full / 2.0 / largest } else { 1.0 }
}

/// What DAProf reports, as rows to compare. Shares are iterations times instructions in the loop over all instructions; if
/// executions were halved they are scaled back, and what then exceeds everything is scaled to everything.
pub fn daprof_reports(profile: &DaprofProfile, config: &CompareConfig) -> Vec<Reported> {
    let largest = profile.loops.iter().map(|l| l.executions).max().unwrap_or(0) as f64;
    let scale = scale(largest, MAX_EXECUTIONS.into(), profile.halvings);
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
    let largest = profile.loops.iter().map(|l| l.count).max().unwrap_or(0) as f64;
    let scale = scale(largest, profile.full as f64, profile.shifts);
    let rows = profile.loops.iter().map(|l| Reported {
        branch: l.branch,
        target: l.branch.wrapping_sub(l.distance.into()),
        executions: None,
        average: None,
        share: share(l.count as f64 * scale, l.distance, profile.instructions, config),
    });
    limited(rows.collect())
}

/// What an observer without limits would report, as rows to compare.
pub fn observer_reports(profile: &ObserverProfile, config: &CompareConfig) -> Vec<Reported> {
    let rows = profile.loops.iter().map(|l| Reported {
        branch: l.branch,
        target: l.branch.wrapping_sub(l.distance.into()),
        executions: Some(l.executions as f64),
        average: Some(l.average()),
        share: share(l.iterations as f64, l.distance, profile.instructions, config),
    });
    limited(rows.collect())
}

/// Errors of average iterations and executions of compared loops, not to natural loops but to what an observer of the same
/// branches without limits of hardware reports: what the hardware itself costs. Iterations beyond 10 bits are left out.
pub fn errors_to_observer(rows: &[Row], observer: &ObserverProfile) -> (Option<f64>, Option<f64>) {
    let actual = |row: &Row| {
        let seen = observer.get(row.reported.branch).copied().unwrap_or_default();
        let average = row.reported.average.map(|average| average.min(MAX_CURRENT.into()));
        let reported = Reported { average, ..row.reported };
        Row { reported, executions: seen.executions as f64, average: seen.average_in_ten_bits(), ..*row }
    };
    let rows: Vec<Row> = rows.iter().map(actual).collect();
    (average_error(&rows), executions_error(&rows))
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

/// The exact loop that a backward branch belongs to: one that goes round there, else the smallest that holds both ends with
/// its header between them (a loop that is entered at its test, behind its body, goes round elsewhere). A jump back
/// within a body that does not pass the header is no round.
fn loop_of<'a>(exact: &'a LoopsProfile, reported: &Reported) -> Option<&'a LoopStats> {
    let latch = exact.loops.iter().filter(|l| l.latches.contains(&reported.branch));
    let ends = reported.target..=reported.branch;
    let holds = |l: &&LoopStats| {
        let body = l.low..l.low.saturating_add(l.extent);
        body.contains(ends.start()) && body.contains(ends.end()) && ends.contains(&l.header)
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
    for mut reported in reports {
        if let Some(most) = config.most_iterations {
            reported.average = reported.average.map(|average| average.min(most));
        }
        let found = loop_of(exact, &reported);
        let header = found.map(|l| l.header);
        if rows.len() == config.top || (header.is_none() && config.only_loops) {
            continue;
        }
        if header.is_some() && rows.iter().any(|r| r.header == header) {
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
    fn halved_counts_are_scaled_by_what_the_largest_lost() {
        // Just halved: half is lost. Full again, just before a second time: twice that.
        assert!((scale(32767.5, 65535.0, 1) - 2.0).abs() < 1e-12);
        assert!((scale(65535.0, 65535.0, 2) - 2.0).abs() < 1e-12);
        assert_eq!((scale(100.0, 65535.0, 0), scale(0.0, 65535.0, 3)), (1.0, 1.0));
        let l = |branch, executions| crate::DaprofLoop {
            branch,
            distance: 16,
            offset: 4,
            executions,
            average: 2.0,
        };
        let profile = DaprofProfile {
            loops: vec![l(0x100, 40000), l(0x200, 10000)],
            halvings: 2,
            instructions: 4_000_000,
            ..DaprofProfile::default()
        };
        let shares: Vec<f64> =
            daprof_reports(&profile, &CompareConfig::default()).iter().map(|r| r.share).collect();
        // 105535 executions of 2 x 5 instructions, and a quarter of that.
        assert!((shares[0] - 1_055_350.0 / 4e6).abs() < 1e-9, "{shares:?}");
        assert!((shares[0] - 4.0 * shares[1]).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn the_observer_is_a_truth_of_its_own() {
        let seen = crate::ObservedLoop {
            branch: 0x114,
            distance: 20,
            executions: 10,
            iterations: 20_000,
            in_ten_bits: 10_230,
        };
        let observer =
            ObserverProfile { loops: vec![seen], instructions: 1000, ..ObserverProfile::default() };
        let reports = [reported(0x100, 5.0, 1023.0, 0.4)];
        let rows = compare(&reports, &exact(), &CompareConfig::default()).rows;
        assert_eq!(errors_to_observer(&rows, &observer), (Some(0.0), Some(0.0)));
        assert_eq!(observer_reports(&observer, &CompareConfig::default())[0].average, Some(2000.0));
    }

    #[test]
    fn a_branch_without_a_loop_counts_as_nothing_and_a_second_one_of_a_loop_not_at_all() {
        let second = Reported { branch: 0x110, target: 0x100, ..reported(0x100, 5.0, 5.0, 0.05) };
        let reports = [reported(0x900, 1.0, 1.0, 0.3), reported(0x100, 10.0, 10.0, 0.4), second];
        let got = compare(&reports, &exact(), &CompareConfig::default());
        assert_eq!(got.rows.len(), 2);
        assert_eq!((got.rows[1].header, got.missed), (None, 2));
        assert_eq!(got.average_error, Some(0.1));
        let only =
            compare(&reports, &exact(), &CompareConfig { only_loops: true, ..CompareConfig::default() });
        assert_eq!((only.rows.len(), only.average_error), (1, Some(0.0)));
        // Within the body, but not round the header.
        let inside = Reported { branch: 0x110, target: 0x104, ..second };
        assert_eq!(compare(&[inside], &exact(), &CompareConfig::default()).rows[0].header, None);
    }
}
