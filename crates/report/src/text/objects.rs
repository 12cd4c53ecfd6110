//! Totals per data object.

use super::{Style, and_more, fit, grouped, heading, percent, plus_minus, some, wrap};
use crate::figures::size;
use crate::view::{ObjectShare, ObjectView, Report};
use std::io::{self, Write};

/// Objects: loads and stores, together and apart.
pub fn objects(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(view) = report.data.as_ref().filter(|view| !view.objects.is_empty()) else { return Ok(()) };
    let sampled = report.unit != "events";
    let (shown, left_out) = some(&view.objects, style);
    let note = format!(
        "share of all loads and stores{}, and of either{}",
        if sampled { ", by time" } else { "" },
        if sampled { "; ± is sampling, 95 %" } else { "" }
    );
    heading(out, style, "data objects", &note)?;
    let gap = if sampled { 6 } else { 0 };
    writeln!(out, "     both{:gap$}   loads  stores{}", "", if sampled { "" } else { "  loads and stores" })?;
    for row in shown {
        let numbers = format!(
            "  {}{}{}{}",
            percent(row.both.share),
            plus_minus(row.both.plus_minus),
            either(row.loads.as_ref()),
            either(row.stores.as_ref())
        );
        // Without bursts these are counts, and not only shares.
        let counted = if sampled { String::new() } else { format!("  {:>16}", grouped(row.both.weight)) };
        let bytes = row.bytes.map_or_else(String::new, |bytes| format!(", {}", size(bytes)));
        let taken = numbers.chars().count() + counted.chars().count() + bytes.chars().count() + 2;
        let name = fit(&row.name, style.width.saturating_sub(taken).max(24));
        writeln!(out, "{numbers}{counted}  {name}{bytes}")?;
    }
    and_more(out, left_out)?;
    if view.in_several > 0.0 {
        let too_low = |row: &ObjectView| row.both.share_at_most - row.both.share;
        let what = format!(
            "{} lie in ranges that hold several objects and are in none of these shares; what of that can be of one of these objects makes its share too low by at most {}",
            or_less(view.in_several),
            at_most(view.objects.iter().map(too_low).fold(0.0, f64::max))
        );
        for line in wrap(&what, style.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// A bound: never less than what is shown.
fn at_most(share: f64) -> String {
    percent(share.max(0.001)).trim().to_owned()
}

/// A share that is not nothing, even where it is too little to be shown.
fn or_less(share: f64) -> String {
    if share < 0.0005 { "less than 0.1 %".into() } else { percent(share).trim().to_owned() }
}

fn either(share: Option<&ObjectShare>) -> String {
    share.map_or_else(|| format!(" {:>7}", "-"), |share| format!(" {}", percent(share.share)))
}
