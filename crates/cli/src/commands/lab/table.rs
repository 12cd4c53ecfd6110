//! A table with the paper's figures beside ours, as text or CSV.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};

use super::layout::Layout;
use super::source::Args;
use crate::outcome::CannotWrite;

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// What it shows, and of which program.
    pub title: String,
    /// The paper's figures to compare with, a line each.
    pub paper: Vec<String>,
    /// Names of columns.
    pub columns: Vec<&'static str>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
    /// How people see it; otherwise all columns side by side.
    pub layout: Option<Layout>,
    /// What else there is to say, a line each.
    pub notes: Vec<String>,
}

impl Table {
    /// Writes it where it was asked for.
    pub fn print(&self, args: &Args) -> Result<()> {
        let out: Box<dyn Write> = match &args.output {
            Some(path) => {
                Box::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
            }
            None if args.is_program() => Box::new(io::stderr().lock()),
            None => Box::new(io::stdout().lock()),
        };
        let mut out = BufWriter::new(out);
        let written = if args.csv { self.csv(&mut out) } else { self.text(&mut out) };
        written.and_then(|()| out.flush()).map_err(|e| CannotWrite(e).into())
    }

    fn csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.columns.join(","))?;
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", self.title)?;
        for line in &self.paper {
            writeln!(out, "  paper: {line}")?;
        }
        match &self.layout {
            Some(layout) => layout.write(out, &self.rows)?,
            None => self.side_by_side(out)?,
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "  {note}"))
    }

    fn side_by_side(&self, out: &mut impl Write) -> io::Result<()> {
        let width = |i: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count());
            cells.max().unwrap_or(0).max(self.columns[i].len())
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).enumerate();
            let cell = |(i, (cell, width)): (usize, (&&str, &usize))| match i {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            };
            padded.map(cell).collect::<Vec<_>>().join("  ")
        };
        writeln!(out, "  {}", line(self.columns.clone()).trim_end())?;
        for row in &self.rows {
            writeln!(out, "  {}", line(row.iter().map(String::as_str).collect()).trim_end())?;
        }
        Ok(())
    }
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_aligned_and_csv_is_quoted() {
        let table = Table {
            title: "t".into(),
            paper: vec!["98 %".into()],
            columns: vec!["name", "x"],
            rows: vec![vec!["a, b".into(), "1".into()], vec!["c".into(), "100".into()]],
            ..Table::default()
        };
        let (mut text, mut csv) = (Vec::new(), Vec::new());
        table.text(&mut text).unwrap();
        table.csv(&mut csv).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "t\n  paper: 98 %\n  name    x\n  a, b    1\n  c     100\n"
        );
        assert_eq!(String::from_utf8(csv).unwrap(), "name,x\n\"a, b\",1\nc,100\n");
    }
}
