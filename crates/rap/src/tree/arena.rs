//! Storage of the nodes: lines of sixteen slots, what each line stands for, and large counts; all recycled.

use super::slot::{COUNT_MAX, LINES_MAX};
use crate::code::Code;

/// The slots of one node: exactly one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Line(pub [u32; 16]);

/// What every descent through a line reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head<C> {
    /// The first code of the line's range. An edge that skips levels is checked against it.
    pub start: C,
    /// Events of the *slot that refers to this line*: counted before it was split, or beside the line's range. Like a
    /// slot's count; what does not fit is in `Meta`, and this is then `COUNT_MAX`.
    pub parked: u32,
}

/// What is rarely needed about a line.
#[derive(Clone, Copy, Debug, Default)]
struct Meta {
    /// The part of the parked count that `Head` does not hold.
    parked_more: u64,
    /// One more than the index of this line's large counts; 0 when it has none.
    wide: u32,
}

/// All lines of a tree.
#[derive(Debug)]
pub(super) struct Arena<C> {
    pub lines: Vec<Line>,
    pub heads: Vec<Head<C>>,
    metas: Vec<Meta>,
    free: Vec<u32>,
    wides: Vec<[u64; 16]>,
    wides_free: Vec<u32>,
    /// Most bytes that all of this may take.
    bytes_limit: usize,
}

impl<C: Code> Arena<C> {
    pub fn new(bytes_limit: usize) -> Self {
        Arena {
            lines: Vec::new(),
            heads: Vec::new(),
            metas: Vec::new(),
            free: Vec::new(),
            wides: Vec::new(),
            wides_free: Vec::new(),
            bytes_limit,
        }
    }

    /// Sets the most bytes that all of this may take; `usize::MAX` is no limit.
    pub fn limit_bytes(&mut self, bytes_limit: usize) {
        self.bytes_limit = bytes_limit;
    }

    /// Leaves `bytes` of the limit to someone else, if there are as many left.
    pub fn lend(&mut self, bytes: usize) -> bool {
        let has_room = self.bytes_limit.saturating_sub(self.bytes()) >= bytes;
        if has_room && self.bytes_limit != usize::MAX {
            self.bytes_limit -= bytes;
        }
        has_room
    }

    /// Takes back what was lent.
    pub fn take_back(&mut self, bytes: usize) {
        self.bytes_limit = self.bytes_limit.saturating_add(bytes);
    }

    pub fn bytes_limit(&self) -> usize {
        self.bytes_limit
    }

    pub fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
            + self.heads.capacity() * size_of::<Head<C>>()
            + self.metas.capacity() * size_of::<Meta>()
            + (self.free.capacity() + self.wides_free.capacity()) * size_of::<u32>()
            + self.wides.capacity() * size_of::<[u64; 16]>()
    }

    /// Lines in use.
    pub fn used(&self) -> usize {
        self.lines.len() - self.free.len()
    }

    /// An empty line, or `None` at the limit.
    pub fn take(&mut self, start: C) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            self.lines[index as usize] = Line::default();
            self.heads[index as usize] = Head { start, parked: 0 };
            self.metas[index as usize] = Meta::default();
            return Some(index);
        }
        if self.lines.len() == self.lines.capacity() && !self.grow() {
            return None;
        }
        self.lines.push(Line::default());
        self.heads.push(Head { start, parked: 0 });
        self.metas.push(Meta::default());
        Some((self.lines.len() - 1) as u32)
    }

    /// How many more of something that takes `each` bytes are allowed, when there are `len` now: doubling, at most.
    fn allowance(&self, len: usize, each: usize) -> usize {
        (self.bytes_limit.saturating_sub(self.bytes()) / each).min(len.max(8))
    }

    /// Makes room for more lines, never past the limit: `Vec` alone would overshoot it.
    fn grow(&mut self) -> bool {
        let each = size_of::<Line>() + size_of::<Head<C>>() + size_of::<Meta>() + size_of::<u32>();
        let more = self.allowance(self.lines.len(), each).min(LINES_MAX - self.lines.len());
        self.lines.reserve_exact(more);
        self.heads.reserve_exact(more);
        self.metas.reserve_exact(more);
        self.free.reserve_exact(self.lines.capacity() - self.free.len());
        more > 0
    }

    /// Gives a line back, with its large counts.
    pub fn release(&mut self, index: u32) {
        let wide = std::mem::take(&mut self.metas[index as usize].wide);
        if wide != 0 {
            self.wides_free.push(wide - 1);
        }
        self.free.push(index);
    }

    /// The events parked on the edge to a line.
    pub fn parked(&self, index: u32) -> u64 {
        u64::from(self.heads[index as usize].parked).saturating_add(self.metas[index as usize].parked_more)
    }

    pub fn set_parked(&mut self, index: u32, count: u64) {
        let here = count.min(COUNT_MAX.into());
        self.heads[index as usize].parked = here as u32;
        self.metas[index as usize].parked_more = count - here;
    }

    pub fn has_wides(&self, index: u32) -> bool {
        self.metas[index as usize].wide != 0
    }

    /// The part of a slot's count that did not fit the slot.
    pub fn wide(&self, index: u32, digit: u32) -> u64 {
        match self.metas[index as usize].wide {
            0 => 0,
            wide => self.wides[wide as usize - 1][digit as usize],
        }
    }

    /// Sets that part. `false` when there is no memory for it; nothing is changed then.
    pub fn set_wide(&mut self, index: u32, digit: u32, count: u64) -> bool {
        let wide = match self.metas[index as usize].wide {
            0 if count == 0 => return true,
            0 => match self.take_wide() {
                Some(wide) => wide,
                None => return false,
            },
            wide => wide - 1,
        };
        self.metas[index as usize].wide = wide + 1;
        self.wides[wide as usize][digit as usize] = count;
        true
    }

    fn take_wide(&mut self) -> Option<u32> {
        if let Some(wide) = self.wides_free.pop() {
            self.wides[wide as usize] = [0; 16];
            return Some(wide);
        }
        if self.wides.len() == self.wides.capacity() {
            let more = self.allowance(self.wides.len(), size_of::<[u64; 16]>() + size_of::<u32>());
            self.wides.reserve_exact(more);
            self.wides_free.reserve_exact(self.wides.capacity() - self.wides_free.len());
            if more == 0 {
                return None;
            }
        }
        self.wides.push([0; 16]);
        Some((self.wides.len() - 1) as u32)
    }
}
