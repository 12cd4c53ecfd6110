//! Reads lines of text: a fast loop for lines that are one plain number, a careful one for all others.

use std::io::Read;

use memchr::memchr;

use crate::batch::{Batch, Sink};
use crate::blocks::{LineBlocks, Step};
use crate::columns::{self, BadColumn, Picker};
use crate::error::{BadLine, ReadError, Reason};
use crate::field::{self, trim};
use crate::format::{Counts, Notation, OnBad, Separator, TextFormat};
use crate::key::{NumberKey, Scalar};
use crate::quad::quad;
use crate::rows::Rows;
use crate::swar;

/// Reads all of `reader` and hands the keys to `sink`. `name` is what errors call the input.
///
/// On an error the sink has seen an unspecified part of the lines before it.
pub fn read_text<K: NumberKey>(
    name: &str,
    reader: impl Read,
    format: &TextFormat,
    on_bad: OnBad,
    sink: &mut impl Sink<K>,
) -> Result<Counts, ReadError> {
    let mut blocks = LineBlocks::new(reader, format);
    let mut lines = Lines::<K>::new(name, format, on_bad)?;
    loop {
        match blocks.step().map_err(|cause| ReadError::Io { name: name.into(), cause })? {
            Step::Lines { from, to } => lines.block(blocks.buffer(), from, to, sink)?,
            Step::Oversized(beginning) => lines.oversized(&beginning)?,
            Step::Done => break,
        }
    }
    lines.batch.flush(sink);
    lines.counts.bytes = blocks.bytes;
    Ok(lines.counts)
}

/// What one input's reading carries from line to line.
struct Lines<'a, K> {
    name: &'a str,
    format: &'a TextFormat,
    on_bad: OnBad,
    picker: Picker,
    rows: Option<Rows>,
    /// A line is one number in a notation that the fast loop knows, and may be as long as the fast loop takes it.
    plain: bool,
    /// A line is one number: no columns to be cut.
    whole: bool,
    /// The separator is still to be chosen, by the first line with data.
    undecided: bool,
    batch: Batch<K>,
    counts: Counts,
}

impl<'a, K: NumberKey> Lines<'a, K> {
    fn new(name: &'a str, format: &'a TextFormat, on_bad: OnBad) -> Result<Self, ReadError> {
        let whole = format.whole_line() && K::DIMS == 1;
        Ok(Lines {
            name,
            format,
            on_bad,
            picker: Picker::new(format, K::DIMS)?,
            rows: Rows::new(format, K::DIMS).filter(|_| !whole),
            plain: whole && format.notation != Notation::Ipv6 && format.max_line > swar::LONGEST,
            whole,
            undecided: format.separator == Separator::Auto,
            batch: Batch::new(format.weight_column.is_some()),
            counts: Counts::default(),
        })
    }

    /// Reads the whole lines in `buffer[from..to]`.
    fn block(
        &mut self,
        buffer: &[u8],
        from: usize,
        to: usize,
        sink: &mut impl Sink<K>,
    ) -> Result<(), ReadError> {
        let mut at = from;
        while at < to {
            at = self.fast_lines(buffer, at, to, sink);
            if at < to {
                let end = at + memchr(b'\n', &buffer[at..to]).expect("the block ends with a newline");
                self.careful_line(buffer, at, end, sink)?;
                at = end + 1;
            }
        }
        Ok(())
    }

    /// Reads lines as long as a fast way can; the position of the first line that needs care.
    fn fast_lines(&mut self, buffer: &[u8], from: usize, to: usize, sink: &mut impl Sink<K>) -> usize {
        let mut at = from;
        if self.counts.header_lines < self.format.header_lines {
            return at;
        }
        if let Some(rows) = self.rows.as_ref().filter(|_| !self.undecided) {
            let weighted = self.format.weight_column.is_some();
            while at < to
                && let Some((key, weight, next)) = rows.read(buffer, at)
            {
                match weighted {
                    true => self.batch.push_weighted(key, weight, sink),
                    false => self.batch.push(key, sink),
                }
                self.counts.numbers += 1;
                at = next;
            }
        }
        while self.plain && at < to {
            let spare = self.batch.spare();
            let (next, written) = match self.format.notation {
                Notation::Ipv4 => plain_lines(buffer, at, to, spare, quad),
                _ => plain_lines(buffer, at, to, spare, swar::number),
            };
            self.counts.numbers += written as u64;
            self.batch.advance(written, sink);
            at = next;
            if written == 0 {
                break;
            }
        }
        at
    }

    fn careful_line(
        &mut self,
        buffer: &[u8],
        from: usize,
        to: usize,
        sink: &mut impl Sink<K>,
    ) -> Result<(), ReadError> {
        let line = &buffer[from..to];
        if self.counts.header_lines < self.format.header_lines {
            self.counts.header_lines += 1;
            return Ok(());
        }
        if line.len() > self.format.max_line {
            return self.oversized(line);
        }
        let trimmed = trim(line);
        if trimmed.is_empty() {
            self.counts.empty_lines += 1;
            return Ok(());
        }
        if self.undecided {
            self.decide(line);
        }
        let read = match self.whole {
            true => whole_line(trimmed, self.format.notation)
                .map(|scalar| (K::splat(scalar), 1))
                .map_err(|reason| BadColumn { reason, field: None }),
            false => self.picker.pick(buffer, from, to),
        };
        match read {
            Ok((key, _)) if self.format.weight_column.is_none() => self.batch.push(key, sink),
            Ok((key, weight)) => self.batch.push_weighted(key, weight, sink),
            Err(bad) => {
                let shown = bad.field.map_or(line, |(start, end)| &buffer[start..end]);
                return self.bad(shown, bad.reason);
            }
        }
        self.counts.numbers += 1;
        Ok(())
    }

    /// One separator for the whole file: a stray comma must not change what a column is.
    fn decide(&mut self, line: &[u8]) {
        let separator = columns::chosen(self.format.separator, line);
        self.picker.separated_by(separator);
        if let Some(rows) = &mut self.rows {
            rows.separated_by(separator);
        }
        self.undecided = false;
    }

    fn oversized(&mut self, beginning: &[u8]) -> Result<(), ReadError> {
        if self.counts.header_lines < self.format.header_lines {
            self.counts.header_lines += 1;
            return Ok(());
        }
        self.bad(beginning, Reason::LineTooLong { limit: self.format.max_line })
    }

    #[cold]
    fn bad(&mut self, line: &[u8], reason: Reason) -> Result<(), ReadError> {
        let bad = || BadLine::new(self.name, self.counts.lines() + 1, line, reason);
        if self.on_bad == OnBad::Stop {
            return Err(ReadError::Bad(bad()));
        }
        if self.counts.first_bad.is_none() {
            self.counts.first_bad = Some(bad());
        }
        self.counts.bad_lines += 1;
        Ok(())
    }
}

/// Reads lines that are a plain number, newline or carriage return and newline, until `out` is full or another kind
/// of line stands at the returned position. `number` gives the value and the length of the number at a position.
#[inline]
fn plain_lines<K: NumberKey>(
    buffer: &[u8],
    from: usize,
    to: usize,
    out: &mut [K],
    number: impl Fn(&[u8], usize) -> Option<(u64, usize)>,
) -> (usize, usize) {
    let mut at = from;
    let mut written = 0;
    for slot in out.iter_mut() {
        if at >= to {
            break;
        }
        let Some((value, length)) = number(buffer, at) else { break };
        let Some(scalar) = K::Scalar::from_u64(value) else { break };
        let Some(next) = behind_line_end(buffer, at + length) else { break };
        *slot = K::splat(scalar);
        written += 1;
        at = next;
    }
    (at, written)
}

/// The position after the line end at `at`, if there is one.
#[inline(always)]
pub(crate) fn behind_line_end(buffer: &[u8], at: usize) -> Option<usize> {
    // Two branches that are nearly always predicted: computing the position would make each line wait for this byte.
    if buffer[at] == b'\n' {
        return Some(at + 1);
    }
    (buffer[at] == b'\r' && buffer[at + 1] == b'\n').then_some(at + 2)
}

/// A line that should be one number; tells apart several columns and nonsense.
fn whole_line<S: Scalar>(line: &[u8], notation: Notation) -> Result<S, Reason> {
    field::parse(line, notation).map_err(|reason| {
        let first = line.split(|&byte| matches!(byte, b' ' | b'\t' | b',')).next().unwrap_or(line);
        let several = first.len() < line.len() && field::parse::<S>(trim(first), notation).is_ok();
        if several { Reason::SeveralColumns } else { reason }
    })
}
