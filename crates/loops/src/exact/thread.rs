//! One thread: its activations, and in each the way from the entry to where it is.

use super::burst::Burst;
use super::claims::Claim;
use super::rounds::Tallies;
use crate::graph::Split;
use crate::natural::{Forest, NONE};

/// A block on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub node: u32,
    /// One more than the place on the way of the same block in an outer activation; 0 if there is none.
    outer: u32,
    /// Passes so far.
    pub passes: u64,
    /// The thread's instructions when it was entered.
    start: u64,
    /// Whether it was active before recording began.
    cut: bool,
}

/// How an activation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Called,
    /// A signal handler.
    Handler,
    /// Its begin was not seen. The first is not placed if the code was not known yet.
    Open,
    Unplaced,
}

/// An activation of a function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub kind: Kind,
    /// Where its blocks begin.
    base: u32,
    /// First pc.
    pub entry: u64,
    /// Where it returns to; the interrupted pc for handlers.
    pub back: u64,
    /// Address that the return address was stored at; 0 if the stream does not say.
    pub slot: u64,
    /// The block that called it, if one did.
    call: u32,
    /// The thread's instructions when it was called.
    start: u64,
    /// Number of the opening if it began in the middle, [`NONE`] if at the function's entry.
    pub opening: u32,
}

/// What the last pass left to be done once the next pc is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Nothing,
    /// A jump by the exit with this number, or one that has none.
    Jump(u32),
    Call {
        back: u64,
        slot: u64,
    },
    Return {
        slot: u64,
    },
    /// A signal handler begins.
    Handler,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub frames: Vec<Frame>,
    way: Vec<Entry>,
    /// One more than the innermost place of a block on the way; 0 if it is not there.
    place: Vec<u32>,
    /// First place of the innermost activation, plus one.
    floor: u32,
    placed: bool,
    /// Instructions executed.
    pub insns: u64,
    /// Instructions when the burst began.
    pub burst_start: u64,
    pub pending: Pending,
    /// The last block of the last pass.
    pub last_node: u32,
    /// Pc of the last instruction of the last pass.
    pub last_pc: u64,
    /// Where the last pass was cut short, if it was.
    pub cut_at: Option<u64>,
    /// Where the burst that it is in began.
    pub burst: Burst,
}

/// What leaving blocks needs to know and to count.
pub(super) struct Ledger<'a> {
    pub forest: &'a Forest,
    pub tallies: &'a mut Tallies,
    /// Whether to note what was left in the thread's `burst`.
    pub weighted: bool,
}

/// Outer activations that are searched for the same loop.
const OUTER_SEARCH: u32 = 64;

impl Thread {
    pub fn new() -> Thread {
        Thread {
            frames: Vec::new(),
            way: Vec::new(),
            place: Vec::new(),
            floor: 1,
            placed: false,
            insns: 0,
            burst_start: 0,
            pending: Pending::Nothing,
            last_node: NONE,
            last_pc: 0,
            cut_at: None,
            burst: Burst::default(),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>()
            + self.way.capacity() * size_of::<Entry>()
            + self.place.capacity() * 4
            + self.burst.memory_bytes()
    }

    /// Blocks and activations kept.
    pub fn depth(&self) -> usize {
        self.way.len() + self.frames.len()
    }

    /// A block begins.
    #[inline]
    pub fn visit(&mut self, node: u32, ledger: &mut Ledger<'_>) {
        if !self.placed {
            let unplaced = &mut ledger.tallies.of[node as usize].unplaced;
            *unplaced += 1;
            return;
        }
        if node as usize >= self.place.len() {
            self.place.resize(ledger.tallies.of.len(), 0);
        }
        let place = self.place[node as usize];
        if place < self.floor {
            self.push(node, false, 1);
            return;
        }
        if place as usize != self.way.len() {
            self.leave(place as usize, node, false, ledger);
        }
        self.way[place as usize - 1].passes += 1;
    }

    #[inline]
    fn push(&mut self, node: u32, cut: bool, passes: u64) {
        let outer = std::mem::replace(&mut self.place[node as usize], self.way.len() as u32 + 1);
        self.way.push(Entry { node, outer, passes, start: self.insns, cut });
    }

    /// Forgets the blocks from place `from` on. `next` is where the thread goes, [`NONE`] if out of the function;
    /// `ended` says that recording ends, so that loops that hold the last block are not over.
    fn leave(&mut self, from: usize, next: u32, ended: bool, ledger: &mut Ledger<'_>) {
        let opening = self.frames.last().map_or(NONE, |f| f.opening);
        let last = self.way.last().filter(|_| ended).map_or(NONE, |e| e.node);
        for i in (from..self.way.len()).rev() {
            let entry = self.way[i];
            let id = ledger.tallies.of[entry.node as usize].heads;
            let mut over = !ended;
            if id != NONE {
                over |= self.leave_loop(i, id, ledger);
            }
            if ledger.weighted {
                self.burst.see(entry.node, entry.passes, u64::from(!entry.cut) + u64::from(over));
            }
            if over && !entry.cut {
                let after = self.after(i, next, ledger);
                if opening == NONE && last == NONE {
                    ledger.tallies.note(entry.node, after, entry.passes);
                } else {
                    let Entry { node, passes, .. } = entry;
                    ledger.tallies.claim(Claim { node, after, opening, last, passes });
                }
                continue;
            }
            let tally = &mut ledger.tallies.of[entry.node as usize];
            tally.add_cut(entry.cut.into(), (!over).into(), entry.passes);
        }
        for entry in self.way.drain(from..).rev() {
            self.place[entry.node as usize] = entry.outer;
        }
    }

    /// As many instructions of this burst were seen as of others: what is active now counts so far.
    #[cold]
    pub fn end_count(&mut self) {
        for entry in &self.way {
            self.burst.see(entry.node, entry.passes, u64::from(!entry.cut));
        }
        self.burst.is_counted = true;
    }

    /// The block behind the straight line that begins at place `i`.
    #[inline]
    fn after(&self, mut i: usize, next: u32, ledger: &Ledger<'_>) -> u32 {
        while i + 1 < self.way.len() && ledger.tallies.of[self.way[i].node as usize].straight {
            i += 1;
        }
        self.way.get(i + 1).map_or(next, |e| e.node)
    }

    /// Measures the loop whose header is at place `i`: it was left where the way first leaves its body. Tells whether
    /// it was.
    fn leave_loop(&mut self, i: usize, id: u32, ledger: &mut Ledger<'_>) -> bool {
        let header = self.way[i];
        let outside = self.way[i + 1..].iter().find(|e| !ledger.forest.holds(id, e.node));
        let until = outside.map_or(self.insns, |e| e.start);
        let left = outside.is_some();
        if !self.active_outside(header.outer, id, ledger) {
            let insns = until - header.start;
            ledger.tallies.inclusive[header.node as usize] += insns;
        }
        left
    }

    /// Whether the loop is active in an outer activation, too, which then counts for both.
    fn active_outside(&self, mut outer: u32, id: u32, ledger: &Ledger<'_>) -> bool {
        for _ in 0..OUTER_SEARCH {
            if outer == 0 {
                return false;
            }
            let frame = self.frames.partition_point(|f| f.base < outer);
            let end = self.frames.get(frame).map_or(self.way.len(), |f| f.base as usize);
            if end > 0 && ledger.forest.holds(id, self.way[end - 1].node) {
                return true;
            }
            outer = self.way[outer as usize - 1].outer;
        }
        false
    }

    /// Begins an activation.
    pub fn enter(&mut self, kind: Kind, entry: u64, back: u64, slot: u64) {
        let call = if kind == Kind::Called { self.last_node } else { NONE };
        let base = self.way.len() as u32;
        self.frames.push(Frame { kind, base, entry, back, slot, call, start: self.insns, opening: NONE });
        self.settle();
    }

    /// Whether the block that calls is on the way of an outer activation, too.
    #[inline]
    pub fn calls_again(&self) -> bool {
        self.placed && self.way.last().is_some_and(|e| e.outer != 0)
    }

    /// Begins an activation in the middle, within loops whose headers are given with the number of the opening.
    pub fn enter_open(&mut self, entry: u64, around: Option<(u32, &[u32])>, nodes: usize) {
        let kind = if around.is_some() { Kind::Open } else { Kind::Unplaced };
        self.enter(kind, entry, 0, 0);
        let (opening, headers) = around.unwrap_or((NONE, &[]));
        if let Some(frame) = self.frames.last_mut() {
            frame.opening = opening;
        }
        if self.place.len() < nodes {
            self.place.resize(nodes, 0);
        }
        for header in headers {
            self.push(*header, true, 0);
        }
    }

    /// Ends the activations from number `from` on: the thread left them.
    pub fn unwind(&mut self, from: usize, ledger: &mut Ledger<'_>) {
        while self.frames.len() > from {
            self.end_frame(false, ledger);
        }
        self.settle();
    }

    /// Ends all activations: recording ends here.
    pub fn cut(&mut self, ledger: &mut Ledger<'_>) {
        while !self.frames.is_empty() {
            self.end_frame(true, ledger);
        }
        self.pending = Pending::Nothing;
        self.cut_at = None;
        self.settle();
    }

    fn end_frame(&mut self, ended: bool, ledger: &mut Ledger<'_>) {
        if let Some(frame) = self.frames.last().copied() {
            self.leave(frame.base as usize, NONE, ended, ledger);
            self.frames.pop();
            if frame.call != NONE {
                let insns = self.insns - frame.start;
                ledger.tallies.called[frame.call as usize] += insns;
            }
        }
    }

    /// The innermost activation goes on as that of another function, or begins anew.
    pub fn restart(&mut self, entry: u64, ledger: &mut Ledger<'_>) {
        if let Some(frame) = self.frames.last().copied() {
            self.leave(frame.base as usize, NONE, false, ledger);
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.entry = entry;
            frame.opening = NONE;
            if frame.kind == Kind::Unplaced {
                frame.kind = Kind::Open;
            }
        }
        self.settle();
    }

    fn settle(&mut self) {
        let top = self.frames.last();
        self.floor = top.map_or(1, |f| f.base + 1);
        self.placed = top.is_some_and(|f| f.kind != Kind::Unplaced);
    }

    /// A block was cut in two: where it is on the way, both halves were run, except where a pass was cut between.
    pub fn apply(&mut self, split: Split) {
        // A call is the last instruction of its block.
        let moved = |node: &mut u32| {
            if *node == split.lower {
                *node = split.upper;
            }
        };
        self.frames.iter_mut().for_each(|f| moved(&mut f.call));
        moved(&mut self.last_node);
        let on_way = self.place.get(split.lower as usize).is_some_and(|p| *p != 0);
        if !on_way {
            return;
        }
        let old = std::mem::take(&mut self.way);
        let mut bases: Vec<u32> = Vec::with_capacity(self.frames.len());
        let mut frame = 0;
        for (i, entry) in old.iter().enumerate() {
            while self.frames.get(frame).is_some_and(|f| f.base as usize <= i) {
                bases.push(self.way.len() as u32);
                frame += 1;
            }
            self.way.push(*entry);
            let last = i + 1 == old.len() && self.cut_at == Some(split.pc);
            if entry.node == split.lower && !last && !entry.cut {
                self.way.push(Entry { node: split.upper, passes: 1, ..*entry });
            }
        }
        bases.resize(self.frames.len(), self.way.len() as u32);
        for (frame, base) in self.frames.iter_mut().zip(bases) {
            frame.base = base;
        }
        self.renumber(split.upper);
    }

    fn renumber(&mut self, newest: u32) {
        self.place.fill(0);
        if self.place.len() <= newest as usize {
            self.place.resize(newest as usize + 1, 0);
        }
        for i in 0..self.way.len() {
            let node = self.way[i].node as usize;
            self.way[i].outer = std::mem::replace(&mut self.place[node], i as u32 + 1);
        }
        self.settle();
    }
}
