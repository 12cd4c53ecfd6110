//! The overhead table as a page of text.

use std::fmt::Write;

use crate::statistics::{self, Spread};

/// Ratios of one workload, one per column; `None` where nothing was measured.
#[derive(Clone, Debug)]
pub struct Row {
    /// The workload.
    pub name: String,
    /// CPU seconds of a native run on the long input.
    pub native: Option<f64>,
    /// What each column costs.
    pub costs: Vec<Cost>,
}

/// CPU time over native of the same round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    program: Option<Spread>,
    all: Option<Spread>,
}

impl Cost {
    /// From the ratios of several rounds.
    pub fn of(program: &[f64], all: &[f64]) -> Cost {
        Cost { program: statistics::spread(program), all: statistics::spread(all) }
    }

    /// Of the program itself.
    pub fn program(&self) -> Option<Spread> {
        self.program
    }

    /// Of all processes.
    pub fn all(&self) -> Option<Spread> {
        self.all
    }
}

/// A Markdown table: the median of each cell with its smallest and largest, then mean and worst of the medians.
pub fn markdown(titles: &[&str], rows: &[Row], part: impl Fn(&Cost) -> Option<Spread>) -> String {
    let mut text =
        format!("| | native, s | {} |\n|---|---|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for row in rows {
        let native = row.native.map_or("-".into(), |s| format!("{s:.1}"));
        let cells: Vec<String> = row.costs.iter().map(|c| part(c).map_or("-".into(), cell)).collect();
        writeln!(text, "| {} | {native} | {} |", row.name, cells.join(" | "))
            .expect("writing to a string cannot fail");
    }
    let medians = |column: usize| {
        rows.iter().filter_map(|r| part(&r.costs[column]).map(|s| s.median)).collect::<Vec<f64>>()
    };
    let line = |what: &dyn Fn(&[f64]) -> Option<f64>| {
        let cells =
            (0..titles.len()).map(|c| what(&medians(c)).map_or("-".into(), |v| format!("**{}**", number(v))));
        cells.collect::<Vec<_>>().join(" | ")
    };
    let worst = |values: &[f64]| values.iter().copied().reduce(f64::max);
    text + &format!(
        "| geometric mean | | {} |\n| worst | | {} |\n",
        line(&statistics::geometric_mean),
        line(&worst)
    )
}

fn cell(s: Spread) -> String {
    format!("{} ({}-{})", number(s.median), number(s.low), number(s.high))
}

/// Three digits behind the point near 1, where they matter; none for thousands.
fn number(value: f64) -> String {
    let digits = if value < 2.0 {
        3
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_with_means_and_gaps() {
        let spread = |m| Cost { program: None, all: Some(Spread { low: m / 2.0, median: m, high: m * 2.0 }) };
        let rows = [
            Row { name: "a".into(), native: Some(5.04), costs: vec![spread(1.0), Cost::default()] },
            Row { name: "b".into(), native: None, costs: vec![spread(4.0), spread(2500.0)] },
        ];
        let expected = "| | native, s | x | y |\n|---|---|---|---|\n| a | 5.0 | 1.000 (0.500-2.0) | - |\n\
                        | b | - | 4.0 (2.0-8.0) | 2500 (1250-5000) |\n\
                        | geometric mean | | **2.0** | **2500** |\n| worst | | **4.0** | **2500** |\n";
        assert_eq!(markdown(&["x", "y"], &rows, Cost::all), expected);
    }
}
