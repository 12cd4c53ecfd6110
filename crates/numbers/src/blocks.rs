//! Turns reads of any size into runs of whole lines inside one fixed buffer.

use std::io::{self, Read};

use memchr::{memchr, memrchr};

use crate::format::TextFormat;
use crate::swar::PADDING;

/// What a text in UTF-8 may begin with.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the buffer holds next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Whole lines, the last newline included, at these positions.
    Lines { from: usize, to: usize },
    /// A line longer than allowed was passed over; this is how it began.
    Oversized(Vec<u8>),
    /// The input is at its end.
    Done,
}

/// The buffer and the reader that fills it. Memory is fixed: `block + max_line` and some padding.
pub(crate) struct LineBlocks<R> {
    reader: R,
    buffer: Vec<u8>,
    block: usize,
    max_line: usize,
    /// `buffer[start..end]` is read but not handed out, its first `scanned` bytes hold no newline.
    start: usize,
    end: usize,
    scanned: usize,
    ended: bool,
    /// Whether the mark that a text may begin with is still to be looked for.
    at_begin: bool,
    pub(crate) bytes: u64,
}

impl<R: Read> LineBlocks<R> {
    pub(crate) fn new(reader: R, format: &TextFormat) -> Self {
        let block = format.block.max(1);
        // One byte more for the newline that the last line may lack, and the bytes among which the mark is looked for.
        let buffer = vec![0; block + format.max_line + 1 + BYTE_ORDER_MARK.len() + PADDING];
        LineBlocks {
            reader,
            buffer,
            block,
            max_line: format.max_line,
            start: 0,
            end: 0,
            scanned: 0,
            ended: false,
            at_begin: true,
            bytes: 0,
        }
    }

    /// The whole buffer: at least [`PADDING`] bytes are readable behind every line handed out.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    pub(crate) fn step(&mut self) -> io::Result<Step> {
        if std::mem::take(&mut self.at_begin) {
            self.skip_mark()?;
        }
        loop {
            if let Some(last) = memrchr(b'\n', &self.buffer[self.start + self.scanned..self.end]) {
                let to = self.start + self.scanned + last + 1;
                return Ok(self.hand_out(to));
            }
            if self.ended {
                return Ok(self.last_line());
            }
            if self.end - self.start > self.max_line {
                return self.pass_over();
            }
            self.scanned = self.end - self.start;
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.scanned);
            self.fill()?;
        }
    }

    /// Takes the mark away, if the input begins with one: editors and spreadsheets write it, and it is nobody's number.
    fn skip_mark(&mut self) -> io::Result<()> {
        while !self.ended
            && self.end < BYTE_ORDER_MARK.len()
            && BYTE_ORDER_MARK.starts_with(&self.buffer[..self.end])
        {
            self.fill()?;
        }
        if self.buffer[..self.end].starts_with(BYTE_ORDER_MARK) {
            self.buffer.copy_within(BYTE_ORDER_MARK.len()..self.end, 0);
            self.end -= BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    fn hand_out(&mut self, to: usize) -> Step {
        let from = self.start;
        (self.start, self.scanned) = (to, self.end - to);
        Step::Lines { from, to }
    }

    fn last_line(&mut self) -> Step {
        if self.start == self.end {
            return Step::Done;
        }
        self.buffer[self.end] = b'\n';
        self.end += 1;
        self.hand_out(self.end)
    }

    /// Reads once behind `end`; no bytes means the end of the input.
    fn fill(&mut self) -> io::Result<()> {
        let room = &mut self.buffer[self.end..self.end + self.block];
        let count = loop {
            match self.reader.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        self.bytes += count as u64;
        self.ended = count == 0;
        Ok(())
    }

    fn pass_over(&mut self) -> io::Result<Step> {
        let beginning = self.buffer[self.start..self.end].iter().copied().take(128).collect();
        self.scanned = 0;
        while !self.ended {
            (self.start, self.end) = (0, 0);
            self.fill()?;
            if let Some(newline) = memchr(b'\n', &self.buffer[..self.end]) {
                self.start = newline + 1;
                break;
            }
        }
        if self.ended {
            (self.start, self.end) = (0, 0);
        }
        Ok(Step::Oversized(beginning))
    }
}
