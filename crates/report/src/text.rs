//! The report for a terminal.

mod calls;
mod lists;
mod loops;
mod objects;
mod streams;
mod tree;

use crate::figures::grouped;
use crate::section::Section;
use crate::view::Report;
use sonde_symbol::shorten;
use std::io::{self, Write};

pub use lists::waits_in_words;
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

/// Cut to a number of columns, the middle left out: both ends of a name say something.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= columns.max(4) {
        return text.to_owned();
    }
    let keep = columns.max(4) - 1;
    let (head, tail) = (keep.div_ceil(2), keep / 2);
    let mut all: String = chars[..head].iter().collect();
    all.push('…');
    all.extend(&chars[chars.len() - tail..]);
    all
}

/// A name of code cut to a number of columns: functions are shortened before places are cut.
pub(crate) fn fit_code(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let (inner, outer) = match text.split_once(", inlined in ") {
        Some((inner, outer)) => (inner.rsplit_once(" at ").unwrap_or((inner, "")), outer),
        None => (("", ""), text),
    };
    let outer = outer.rsplit_once(", ").filter(|(_, place)| is_line(place)).unwrap_or((outer, ""));
    let names = if inner.0.is_empty() { 1 } else { 2 };
    let fixed = text.chars().count() - inner.0.chars().count() - outer.0.chars().count();
    let room = columns.saturating_sub(fixed);
    // What the shorter one leaves goes to the longer one.
    let rest = |other: &str, least: usize| room.saturating_sub(other.chars().count()).max(least).max(16);
    let at = |name: &str, with: &str, place: &str| {
        if place.is_empty() { name.to_owned() } else { format!("{name}{with}{place}") }
    };
    let name = shorten(outer.0, rest(inner.0, room / names));
    let outside = at(&name, ", ", outer.1);
    if names == 1 {
        return fit(&outside, columns);
    }
    let inlined = shorten(inner.0, rest(&name, 0));
    let whole = format!("{}, inlined in {outside}", at(&inlined, " at ", inner.1));
    if whole.chars().count() <= columns {
        return whole;
    }
    // Where it was inlined says more than where it is written down.
    fit(&format!("{inlined}, inlined in {outside}"), columns)
}

/// Whether it is a file and lines, rather than a part of a name with commas.
fn is_line(text: &str) -> bool {
    let Some((file, lines)) = text.rsplit_once(':') else { return false };
    !file.contains([' ', '<', '(']) && lines.chars().all(|c| c.is_ascii_digit() || c == '-')
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
        writeln!(out, "  ... and {left_out} more (--top 0 shows all)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(fit("abcdefghij", 7), "abc…hij");
        assert_eq!(fit("abc", 7), "abc");
        assert_eq!(fit("äöüäöüäöü", 5).chars().count(), 5);
    }

    #[test]
    fn sentences_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("averyverylongword two", 5), ["averyverylongword", "two"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("sampling, 95 %)", 13), ["sampling,", "95 %)"]);
    }

    #[test]
    fn names_of_code_keep_their_places() {
        let text = "bool a::operator< <int>(int, int) at stl_x.h:120, inlined in sort_all(std::vector<int>&), main.cpp:33";
        assert_eq!(fit_code(text, 200), text);
        let short = fit_code(text, 76);
        assert_eq!(short, "a::operator< <..>(..) at stl_x.h:120, inlined in sort_all(..), main.cpp:33");
        assert_eq!(
            fit_code("std::vector<int>::at(int) and 2 more, main.cpp:7", 40),
            "std::vector::at and 2 more, main.cpp:7"
        );
        assert_eq!(fit_code(text, 60), "a::operator<, inlined in sort_all(..), main.cpp:33");
        assert_eq!(
            fit_code("std::sort_loop<long, int>(long, int) [clone .isra.0]", 24),
            "std::sort_loop<..>(..)"
        );
    }
}
