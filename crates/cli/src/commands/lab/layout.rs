//! Tables of many columns for people: columns in groups that are explained below, short names, what is long at the end of
//! the line. Files for programs keep the long names and their order.

use std::io::{self, Write};

/// Columns that belong together.
#[derive(Debug)]
pub struct Group {
    /// Above them.
    pub title: &'static str,
    /// By number, with a short name each.
    pub columns: Vec<(usize, &'static str)>,
    /// What they are.
    pub about: &'static str,
}

/// How a table is written for people.
#[derive(Debug)]
pub struct Layout {
    /// From left to right.
    pub groups: Vec<Group>,
    /// Rows in which the first column is the same are below a line with it.
    pub by_first: bool,
    /// A column of text behind all others.
    pub last: Option<(usize, &'static str)>,
}

/// Between groups.
const APART: &str = "   ";

impl Layout {
    /// Writes the rows and what the columns are.
    pub fn write(&self, out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
        let first = if self.by_first { 0 } else { self.width(rows, 0, "") };
        let (titles, names): (Vec<String>, Vec<String>) =
            self.groups.iter().map(|group| self.heads(group, rows)).unzip();
        let end = self.last.map_or("", |(_, name)| name);
        writeln!(out, "  {:first$}{APART}{}", "", titles.join(APART).trim_end())?;
        writeln!(out, "  {:first$}{APART}{}", "", format!("{}{APART}{end}", names.join(APART)).trim_end())?;
        let mut section = "";
        for row in rows {
            let name = row.first().map_or("", String::as_str);
            if self.by_first && section != name {
                writeln!(out, "  {name}")?;
                section = name;
            }
            let cells: Vec<String> = self.groups.iter().map(|group| self.cells(group, rows, row)).collect();
            let end = self.last.and_then(|(column, _)| row.get(column)).map_or("", String::as_str);
            let name = if self.by_first { "" } else { name };
            let line = format!("{name:first$}{APART}{}{APART}{end}", cells.join(APART));
            writeln!(out, "  {}", line.trim_end())?;
        }
        self.groups.iter().filter(|group| !group.about.is_empty()).try_for_each(|group| {
            let width = self.groups.iter().map(|group| group.title.chars().count()).max().unwrap_or(0);
            writeln!(out, "  {:<width$}  {}", group.title, group.about)
        })
    }

    fn width(&self, rows: &[Vec<String>], column: usize, name: &str) -> usize {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(name.chars().count())
    }

    /// Widths of a group's columns; the first is as much wider as the title needs.
    fn widths(&self, group: &Group, rows: &[Vec<String>]) -> Vec<usize> {
        let mut widths: Vec<usize> =
            group.columns.iter().map(|(column, name)| self.width(rows, *column, name)).collect();
        let all = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            *first += group.title.chars().count().saturating_sub(all);
        }
        widths
    }

    fn heads(&self, group: &Group, rows: &[Vec<String>]) -> (String, String) {
        let widths = self.widths(group, rows);
        let names = group.columns.iter().map(|(_, name)| *name);
        let names = right(names, &widths);
        let all = names.chars().count();
        (format!("{:<all$}", group.title), names)
    }

    fn cells(&self, group: &Group, rows: &[Vec<String>], row: &[String]) -> String {
        let cells = group.columns.iter().map(|(column, _)| row.get(*column).map_or("", String::as_str));
        right(cells, &self.widths(group, rows))
    }
}

fn right<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
    cells.zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(title: &'static str, columns: Vec<(usize, &'static str)>, about: &'static str) -> Group {
        Group { title, columns, about }
    }

    fn written(layout: &Layout, rows: &[[&str; 4]]) -> String {
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(String::from).to_vec()).collect();
        let mut out = Vec::new();
        layout.write(&mut out, &rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn groups_stand_above_their_columns_and_are_explained() {
        let groups =
            vec![group("one", vec![(1, "a"), (2, "b")], "first"), group("another", vec![(3, "c")], "second")];
        let layout = Layout { groups, by_first: false, last: None };
        let text = written(&layout, &[["x", "1", "22", "3"], ["long", "100", "2", "3"]]);
        let expected = "         one       another\n           a   b         c\n  x        1  22         3\n  \
                        long   100   2         3\n  one      first\n  another  second\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_long_goes_to_the_end_and_sections_have_a_line() {
        let groups = vec![group("one", vec![(2, "a"), (3, "b")], "")];
        let layout = Layout { groups, by_first: true, last: Some((1, "where")) };
        let text =
            written(&layout, &[["p", "here", "1", "2"], ["p", "there", "3", "4"], ["q", "here", "5", "6"]]);
        assert_eq!(
            text,
            "     one\n     a  b   where\n  p\n     1  2   here\n     3  4   there\n  q\n     5  6   here\n"
        );
    }
}
