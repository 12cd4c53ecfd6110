//! Hot data streams.

use super::{Style, and_more, fit_code, grouped, heading, percent, some, wrap};
use crate::figures::count;
use crate::view::Report;
use std::io::{self, Write};

/// Most places told of a stream on its line.
const PLACES: usize = 4;

/// Hot data streams, three lines each.
pub fn streams(out: &mut impl Write, report: &Report, style: Style) -> io::Result<()> {
    let Some(view) = report.streams.as_ref().filter(|view| view.references > 0) else { return Ok(()) };
    let note = format!(
        "{} {} of {} references",
        count(view.found as u64, "stream covers", "streams cover"),
        percent(view.coverage).trim(),
        grouped(view.references)
    );
    heading(out, style, "hot data streams", &note)?;
    let (shown, _) = some(&view.streams, style);
    for s in shown {
        let (length, times) = (grouped(s.length), grouped(s.frequency));
        writeln!(out, "  {}  {length} references, {times} times; {}", percent(s.share), s.shape)?;
        for (what, places) in [("code", &s.code), ("data", &s.data)] {
            writeln!(out, "           {what} {}", told(places, style.width.saturating_sub(16)))?;
        }
        for line in wrap(&s.advice, style.width.saturating_sub(11).max(40)) {
            writeln!(out, "           {line}")?;
        }
    }
    and_more(out, view.found - shown.len())
}

/// The different places in the order in which they come up, as many as there is room for.
fn told(places: &[String], columns: usize) -> String {
    let each = if places.len() == 1 { columns } else { (columns / 2).saturating_sub(8) };
    let mut different: Vec<String> = Vec::new();
    for place in places.iter().map(|place| fit_code(place, each)) {
        if !different.contains(&place) {
            different.push(place);
        }
    }
    let mut list = String::new();
    for (told, place) in different.iter().enumerate() {
        let rest = different.len() - told;
        let taken = list.chars().count() + place.chars().count() + if rest > 1 { 16 } else { 3 };
        if told == PLACES || told > 0 && taken > columns {
            return format!("{list} and {rest} more");
        }
        list = if told == 0 { place.clone() } else { format!("{list} > {place}") };
    }
    list
}
