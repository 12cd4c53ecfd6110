//! Passes that wait to be looked at together: with many at hand, the same reference of all of them can be computed at
//! once, and in a burst their weight is known at its end only.

use crate::batch::{BATCH, Event};
use crate::open::Random;

/// Stands for an exit: references of this pass are events already.
const EVENTS: u32 = u32::MAX;

/// One pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// The exit taken, or [`EVENTS`].
    exit: u32,
    /// Its first word, or its first event.
    at: u32,
    /// Where it went, or how many events it has.
    next: u64,
}

/// What the references of a pass are computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Made {
    /// Words of the log from here on.
    Logged { exit: u32, at: u32, next_pc: u64 },
    /// These events.
    Events { first: usize, count: usize },
}

impl Pass {
    /// The exit taken, unless it has events already.
    pub fn exit(&self) -> Option<u32> {
        (self.exit != EVENTS).then_some(self.exit)
    }

    /// What it is made of.
    #[inline]
    pub fn made(&self) -> Made {
        if self.exit == EVENTS {
            Made::Events { first: self.at as usize, count: self.next as usize }
        } else {
            Made::Logged { exit: self.exit, at: self.at, next_pc: self.next }
        }
    }
}

/// Passes in their order.
#[derive(Default)]
pub(crate) struct Passes {
    pub list: Vec<Pass>,
    pub words: Vec<u64>,
    pub events: Vec<Event>,
    /// The thread's fs base in all of them.
    pub fs_base: u64,
    /// References in all of them.
    pub references: usize,
}

impl Passes {
    /// Most bytes of passes that wait only for others.
    pub const FULL: usize = 40 * BATCH;

    /// Whether there are enough to be looked at.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.references >= BATCH || self.bytes() >= Passes::FULL
    }

    /// Copies words of the log; where they begin.
    #[inline]
    pub fn copy(&mut self, words: &[u64]) -> u32 {
        let at = self.words.len() as u32;
        self.words.extend_from_slice(words);
        at
    }

    /// One whose references are computed later from words that begin `at`.
    #[inline]
    pub fn push(&mut self, exit: u32, at: u32, references: u16, next_pc: u64) {
        self.list.push(Pass { exit, at, next: next_pc });
        self.references += usize::from(references);
    }

    /// One whose events are the last so many.
    pub fn push_events(&mut self, count: usize) {
        if count > 0 {
            self.list.push(Pass { exit: EVENTS, at: (self.events.len() - count) as u32, next: count as u64 });
            self.references += count;
        }
    }

    /// Bytes in use.
    #[inline]
    pub fn bytes(&self) -> usize {
        Passes::bytes_of(self.list.len(), self.words.len()) + self.events.len() * size_of::<Event>()
    }

    /// Bytes of so many passes with so many words.
    #[inline]
    pub fn bytes_of(passes: usize, words: usize) -> usize {
        passes * size_of::<Pass>() + words * 8
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Pass>()
            + self.words.capacity() * 8
            + self.events.capacity() * size_of::<Event>()
    }

    /// Empties it; its memory stays.
    pub fn clear(&mut self) {
        self.list.clear();
        self.words.clear();
        self.events.clear();
        self.references = 0;
    }

    /// Keeps a random one of each two passes; `sizes` tells how many references and words an exit has.
    pub fn thin_out(&mut self, random: &mut Random, sizes: impl Fn(u32) -> (u16, u16)) {
        let older = std::mem::take(self);
        self.fs_base = older.fs_base;
        for pair in older.list.chunks(2) {
            match pair[random.below(pair.len() as u64) as usize].made() {
                Made::Logged { exit, at, next_pc } => {
                    let (references, words) = sizes(exit);
                    let (at, words) = (at as usize, usize::from(words));
                    let at = self.copy(&older.words[at..at + words]);
                    self.push(exit, at, references, next_pc);
                }
                Made::Events { first, count } => {
                    self.events.extend_from_slice(&older.events[first..first + count]);
                    self.push_events(count);
                }
            }
        }
    }
}
