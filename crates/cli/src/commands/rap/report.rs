//! The report that a person reads at a glance: a few lines of facts, then the hot ranges as a tree with bars.

use std::io::{self, Write};

use super::summary::{Coverage, Hot, Summary};
use crate::quantity::{grouped, percent, size};

/// Characters of a full bar.
const BAR: usize = 20;

/// Writes the report.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if summary.events == 0 {
        write_nothing(out, summary)?;
        return write_skipped(out, summary);
    }
    write_facts(out, summary)?;
    write_skipped(out, summary)?;
    writeln!(out)?;
    write_tree(out, summary)
}

fn write_nothing(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    match summary.numbers {
        0 => writeln!(out, "no events: the input holds no numbers ({} read)", size(summary.bytes)),
        lines => writeln!(out, "no events: all {} lines weigh 0", grouped(lines)),
    }
}

fn write_facts(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let kind = match summary.dimensions {
        1 => summary.key_type.clone(),
        many => format!("{many} x {}", summary.key_type),
    };
    writeln!(out, "events    {} of {kind}, {} read", grouped(summary.events), size(summary.bytes))?;
    write_error(out, summary)?;
    writeln!(
        out,
        "memory    {} for {} ranges (at most {} on the way)",
        size(summary.memory_bytes as u64),
        grouped(summary.nodes as u64),
        grouped(summary.nodes_max as u64)
    )?;
    let covered: Vec<String> = summary.coverage.iter().map(coverage).collect();
    writeln!(out, "coverage  {}", covered.join("; "))
}

fn coverage(covered: &Coverage) -> String {
    let plural = if covered.ranges == 1 { "" } else { "s" };
    let width = match covered.log2_width {
        0 => "single value".to_string() + plural,
        bits => format!("range{plural} up to 2^{bits} wide"),
    };
    format!("{} in {} {width}", percent(covered.share), grouped(covered.ranges as u64))
}

fn write_error(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let missed = (summary.eps_effective * summary.events as f64) as u64;
    writeln!(
        out,
        "error     eps {}: counts are never too high, and too low by at most {} events",
        percent(summary.eps_effective),
        grouped(missed)
    )?;
    if summary.eps_effective > summary.eps {
        writeln!(
            out,
            "          (eps {} was asked for, the memory limit does not allow it)",
            percent(summary.eps)
        )?;
    }
    Ok(())
}

fn write_skipped(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if summary.empty_lines > 0 {
        writeln!(out, "empty     {} lines", grouped(summary.empty_lines))?;
    }
    if let Some(first) = &summary.first_skipped {
        writeln!(out, "skipped   {} that could not be read, the first:", grouped(summary.skipped))?;
        writeln!(out, "          {first}")?;
    }
    Ok(())
}

fn write_tree(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    if summary.hot.is_empty() {
        return writeln!(out, "no range holds {} of the events or more", percent(summary.hot_threshold));
    }
    let exact = summary.hot.iter().any(|hot| hot.truth.is_some());
    let truth = if exact { "     true     error" } else { "" };
    let heading = format!("ranges with {} or more of their own", percent(summary.hot_threshold));
    writeln!(out, "    total      own{truth}  {:BAR$}  {heading}", "")?;
    for (hot, branch) in summary.hot.iter().zip(branches(&summary.hot)) {
        write!(out, "{}{}", column(hot.total_share), column(hot.own_share))?;
        if let Some(truth) = &hot.truth {
            let true_share = truth.exact_total as f64 / summary.events as f64;
            write!(out, "{}{}", column(true_share), fine(truth.error_share))?;
        }
        writeln!(out, "  {}  {branch}{}", bar(hot.own_share, hot.total_share), hot.range)?;
    }
    Ok(())
}

fn column(share: f64) -> String {
    format!("{:7.1} %", share * 100.0)
}

fn fine(share: f64) -> String {
    format!("{:8.3} %", share * 100.0)
}

/// Full blocks for the range's own share, light ones for what is in its hot sub-ranges.
fn bar(own: f64, total: f64) -> String {
    let own = blocks(own);
    let total = blocks(total).max(own);
    let bar = "█".repeat(own) + &"░".repeat(total - own);
    format!("{bar}{}", " ".repeat(BAR - total))
}

fn blocks(share: f64) -> usize {
    ((share * BAR as f64).round() as usize).min(BAR)
}

/// The lines that join each range to the one around it, from depths in preorder.
fn branches(hot: &[Hot]) -> Vec<String> {
    let depths: Vec<usize> = hot.iter().map(|range| range.depth).collect();
    (0..depths.len()).map(|at| branch(&depths, at)).collect()
}

fn branch(depths: &[usize], at: usize) -> String {
    // Whether another range of this depth follows before the tree goes back above it.
    let goes_on = |depth: usize| {
        depths[at + 1..].iter().find(|&&later| later <= depth).is_some_and(|&later| later == depth)
    };
    let depth = depths[at];
    let mut line: String = (1..depth).map(|outer| if goes_on(outer) { "│  " } else { "   " }).collect();
    if depth > 0 {
        line.push_str(if goes_on(depth) { "├─ " } else { "└─ " });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_own_and_inherited_shares() {
        assert_eq!(bar(0.25, 0.5), format!("{}{}{}", "█".repeat(5), "░".repeat(5), " ".repeat(10)));
        assert_eq!(bar(1.0, 1.0), "█".repeat(20));
        assert_eq!(bar(0.0, 0.0), " ".repeat(20));
        assert_eq!(bar(1.0, 0.5).chars().count(), 20);
    }

    #[test]
    fn branches_join_siblings_and_end_with_the_last() {
        let depths = [0, 1, 2, 2, 1, 2, 0];
        let drawn: Vec<String> = (0..depths.len()).map(|at| branch(&depths, at)).collect();
        assert_eq!(drawn, ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ ", ""]);
    }
}
