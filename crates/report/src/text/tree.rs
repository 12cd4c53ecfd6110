//! Trees of ranges as the paper draws them, the coverage by width (figure 11), the memory map (figure 12).

use super::{Style, and_more, fit, fit_code, grouped, heading, percent, plus_minus, some, wrap};
use crate::figures::size;
use crate::view::{HotView, RangesView, Report, SideView};
use sonde_summary::Kind;
use std::io::{self, Write};

fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Code => "hot code",
        Kind::LoadAddresses => "hot data, loads",
        Kind::StoreAddresses => "hot data, stores",
        Kind::LoadValues => "hot values loaded",
        Kind::Dl1MissValues => "hot values of loads that miss the first cache level",
        Kind::Dl2MissValues => "hot values of loads that miss the second cache level",
        Kind::NarrowPcs => "code with narrow operands",
        Kind::ZeroLoads => "where zeros are loaded from",
        Kind::Edges => "hot branches",
        Kind::CodeData => "hot code by data",
    }
}

/// What shares of a tree are shares of.
fn whole(kind: Kind, by_time: bool) -> String {
    let counted = match kind {
        Kind::Code if by_time => return "share of the CPU time in user code".into(),
        Kind::Code => "instructions",
        Kind::LoadAddresses | Kind::LoadValues => "loads",
        Kind::StoreAddresses => "stores",
        Kind::Dl1MissValues | Kind::Dl2MissValues => "these loads",
        Kind::NarrowPcs => "narrow operands",
        Kind::ZeroLoads => "zeros loaded",
        Kind::Edges => "branches taken",
        Kind::CodeData => "loads and stores",
    };
    format!("share of all {counted}{}", if by_time { ", by time" } else { "" })
}

/// A tree: own weight, inclusive weight, the range.
pub fn ranges(
    out: &mut impl Write,
    report: &Report,
    view: &RangesView,
    kind: Kind,
    style: Style,
) -> io::Result<()> {
    let by_time = report.unit != "events";
    let note = format!(
        "{}; {} events, {} ranges; at most {} too low{}",
        whole(kind, by_time),
        grouped(view.events),
        grouped(view.nodes as u64),
        percent(view.eps).trim(),
        if by_time { "; ± is sampling, 95 %" } else { "" }
    );
    write_hot(out, title(kind), &note, &view.hot, view.hot_from, style)?;
    let counted = match kind {
        Kind::LoadAddresses => report.totals.loads,
        Kind::StoreAddresses => report.totals.stores,
        _ => view.events,
    };
    // Counted by repetition, one copy of a page would outweigh a whole burst (docs/design/weights.md).
    if counted > view.events && report.totals.repetitions > 0 {
        let what = format!(
            "{} were recorded: a repeated string instruction (rep movs, rep stos) counts here once for each line of 64 bytes",
            grouped(counted)
        );
        for line in wrap(&what, style.width.saturating_sub(2).max(40)) {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

/// Hot ranges below a heading of their own.
pub fn write_hot(
    out: &mut impl Write,
    title: &str,
    note: &str,
    hot: &[HotView],
    hot_from: f64,
    style: Style,
) -> io::Result<()> {
    heading(out, style, title, note)?;
    if hot.is_empty() {
        return writeln!(out, "  no range has {} or more", percent(hot_from).trim());
    }
    writeln!(out, "      own     all")?;
    let (shown, left_out) = some(hot, style);
    for hot in shown {
        writeln!(out, "{}", line(hot, style))?;
    }
    and_more(out, left_out)
}

fn line(hot: &HotView, style: Style) -> String {
    let numbers =
        format!("  {} {}{}", percent(hot.own_share), percent(hot.share), plus_minus(hot.plus_minus));
    let indent = "  ".repeat(hot.depth.min(8));
    let names: Vec<&str> = hot.sides.iter().map(|side| side.name.as_str()).collect();
    let place = match hot.sides.as_slice() {
        // The name of a stack says how far from its top.
        [side] if side.kind == Some("stack") => None,
        [side] => side.place.clone().filter(|place| !side.name.contains(place.as_str())),
        _ => None,
    };
    let mut place = place.map_or_else(String::new, |place| format!("  {place}"));
    let all = style.width.saturating_sub(numbers.chars().count() + indent.len() + 2);
    // A line of the source tells more than an offset, and so do the functions of a stretch of many.
    let tells = |side: &SideView| side.file.is_some() || side.domain == "code" && side.function.is_none();
    let crowded = |side: &SideView| tells(side) && side.name.chars().count() + place.len() > all;
    if hot.sides.iter().any(crowded) {
        place.clear();
    }
    let room = all.saturating_sub(place.chars().count()).max(24);
    let name = match names.as_slice() {
        [one] => fit_code(one, room),
        several => {
            let each = (room.saturating_sub(4 * (several.len() - 1)) / several.len()).max(12);
            let parts: Vec<String> = several.iter().map(|name| fit_code(name, each)).collect();
            parts.join(" -> ")
        }
    };
    format!("{numbers}  {indent}{name}{place}")
}

/// Figure 11: the share of events in hot ranges no wider than so many bits.
pub fn widths(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let kinds = [Kind::LoadValues, Kind::Dl1MissValues, Kind::Dl2MissValues].map(Kind::name);
    let views: Vec<&RangesView> =
        report.ranges.iter().filter(|v| kinds.contains(&v.kind) && v.weight > 0).collect();
    if views.is_empty() {
        return Ok(());
    }
    let note = format!(
        "share of events in hot ranges ({} and more) of at most 2^n values",
        percent(views[0].hot_from).trim()
    );
    heading(out, style, "value locality by width", &note)?;
    let steps: Vec<u32> = (0..=64).step_by(8).collect();
    let header: String = steps.iter().map(|n| format!("{n:>6}")).collect();
    writeln!(out, "  {:<16}n ={header}", "")?;
    for view in views {
        let share = |n: &u32| view.widths.iter().rfind(|p| p.log2_width <= *n).map_or(0.0, |p| p.share);
        let row: String = steps.iter().map(|n| format!("{:>6.1}", share(n) * 100.0)).collect();
        writeln!(out, "  {:<16}% ={row}", view.kind)?;
    }
    Ok(())
}

/// Shades from nothing to much.
const SHADES: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];

/// Figure 12: regions of memory, darker where more zeros are loaded.
pub fn map(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(map) = report.map.as_ref().filter(|map| !map.rows.is_empty()) else { return Ok(()) };
    heading(
        out,
        style,
        "memory map of zero loads",
        "darker: more; all zeros and all loads there, chance of a zero",
    )?;
    let most = map.rows.iter().flat_map(|row| &row.columns).fold(0.0f64, |a, b| a.max(*b));
    let (shown, left_out) = some(&map.rows, style);
    for row in shown {
        let shade = |share: &f64| {
            let level = if *share == 0.0 { 0.0 } else { 1.0 + (share / most).sqrt() * 7.0 };
            SHADES[(level as usize).min(SHADES.len() - 1)]
        };
        let columns: String = row.columns.iter().map(shade).collect();
        let (least, most) = row.zero_chance;
        writeln!(
            out,
            "  {:<18} |{columns}| {} {}  {}-{}",
            fit(&row.name, 18),
            percent(row.zero_loads),
            percent(row.loads),
            percent(least).trim().trim_end_matches(" %"),
            percent(most).trim()
        )?;
        writeln!(out, "  {:<18}  +{:#x}, {} wide", "", row.from, size(row.to - row.from))?;
    }
    and_more(out, left_out)
}
