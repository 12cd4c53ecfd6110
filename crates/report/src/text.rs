//! The report for a terminal.

mod calls;
mod fit;
mod lists;
mod loops;
mod objects;
mod streams;
mod tree;

use crate::figures::grouped;
use crate::section::Section;
use crate::view::Report;
use std::io::{self, Write};

pub(crate) use fit::{fit, fit_code};
pub use tree::write_hot;

/// How to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Whether to colour.
    pub colour: bool,
    /// Most rows of a list; 0 for all.
    pub top: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { width: 100, colour: false, top: 12 }
    }
}

/// Writes the sections that were asked for; those that have nothing to say are left out.
pub fn write(out: &mut impl Write, report: &Report, sections: &[Section], style: Style) -> io::Result<()> {
    for section in sections {
        match section {
            Section::Runs => lists::runs(out, report, style)?,
            Section::Functions => lists::functions(out, report, style)?,
            Section::Data => objects::objects(out, report, style)?,
            Section::Ranges(kind) => {
                if let Some(view) = report.ranges.iter().find(|view| view.kind == kind.name()) {
                    tree::ranges(out, report, view, *kind, style)?;
                }
            }
            Section::Calls => calls::calls(out, report, style)?,
            Section::Contexts => calls::contexts(out, report, style)?,
            Section::Loops => loops::loops(out, report, style)?,
            Section::Values => loops::values(out, report, style)?,
            Section::Streams => streams::streams(out, report, style)?,
            Section::Widths => tree::widths(out, report, style)?,
            Section::Map => tree::map(out, report, style)?,
            Section::Cache => lists::cache(out, report, style)?,
            Section::Missing => lists::missing(out, report, style)?,
        }
    }
    Ok(())
}

/// A heading, with what its figures are.
pub(crate) fn heading(out: &mut impl Write, style: Style, title: &str, note: &str) -> io::Result<()> {
    let whole = if note.is_empty() { title.to_owned() } else { format!("{title} ({note})") };
    let mut lines = wrap(&whole, style.width.saturating_sub(2)).into_iter();
    let first = lines.next().unwrap_or_default();
    match first.strip_prefix(title).filter(|_| style.colour) {
        Some(rest) => writeln!(out, "\n\x1b[1m{title}\x1b[0m{rest}")?,
        None => writeln!(out, "\n{first}")?,
    }
    lines.try_for_each(|line| writeln!(out, "  {line}"))
}

/// A share as percent in 6 columns.
pub(crate) fn percent(share: f64) -> String {
    format!("{:5.1} %", share * 100.0)
}

/// What sampling adds to a share, or nothing if everything was recorded.
pub(crate) fn plus_minus(half: f64) -> String {
    if half == 0.0 { String::new() } else { format!(" ±{:4.1}", half * 100.0) }
}

/// Text in lines of at most so many columns, broken between words.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    // A percent sign belongs to its number.
    for word in text.replace(" %", "\u{a0}%").split(' ') {
        let line = lines.last_mut().expect("there is one");
        let taken = line.chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > columns {
            lines.push(word.to_owned());
        } else {
            if taken > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// A fact below a heading: what it is about, and sentences that are never cut.
pub fn write_entry(out: &mut impl Write, what: &str, text: &str, style: Style) -> io::Result<()> {
    for (i, line) in wrap(text, style.width.saturating_sub(12).max(40)).iter().enumerate() {
        writeln!(out, "  {:<9} {line}", if i == 0 { what } else { "" })?;
    }
    Ok(())
}

/// The rows to show, and how many are left out.
pub(crate) fn some<T>(rows: &[T], style: Style) -> (&[T], usize) {
    let shown = if style.top == 0 { rows.len() } else { rows.len().min(style.top) };
    (&rows[..shown], rows.len() - shown)
}

/// Says how many rows were left out.
pub(crate) fn and_more(out: &mut impl Write, left_out: usize) -> io::Result<()> {
    if left_out > 0 {
        writeln!(out, "  ... and {left_out} more (sonde report --top 0 shows all)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("averyverylongword two", 5), ["averyverylongword", "two"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("sampling, 95 %)", 13), ["sampling,", "95 %)"]);
    }
}
