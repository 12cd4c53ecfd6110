//! Hot data streams.

use super::{Style, and_more, fit, grouped, heading, percent, some, wrap};
use crate::view::Report;
use std::io::{self, Write};

/// Most places told of a stream on its line.
const PLACES: usize = 4;

/// Hot data streams, three lines each.
pub fn streams(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(view) = report.streams.as_ref().filter(|view| view.references > 0) else { return Ok(()) };
    let note = format!(
        "{} streams cover {} of {} references",
        grouped(view.found as u64),
        percent(view.coverage).trim(),
        grouped(view.references)
    );
    heading(out, style, "hot data streams", &note)?;
    let (shown, _) = some(&view.streams, style);
    for s in shown {
        let (length, times) = (grouped(s.length), grouped(s.frequency));
        writeln!(out, "  {}  {length} references, {times} times; {}", percent(s.share), s.shape)?;
        for (what, places) in [("code", &s.code), ("data", &s.data)] {
            let more =
                if places.len() > PLACES { format!(" ... {} in all", places.len()) } else { String::new() };
            let list = places.iter().take(PLACES).cloned().collect::<Vec<_>>().join(" > ");
            writeln!(
                out,
                "           {what} {}",
                fit(&format!("{list}{more}"), style.width.saturating_sub(16))
            )?;
        }
        for line in wrap(&s.advice, style.width.saturating_sub(11).max(40)) {
            writeln!(out, "           {line}")?;
        }
    }
    and_more(out, view.found - shown.len())
}
