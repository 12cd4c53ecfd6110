//! References as most of them are, computed without a decision: everything that looks at each load and store spends
//! its time here.
//!
//! A reference is plain if it happens once, has an address, and its value is unknown, known beforehand, or a single
//! word of the log. A superblock all of whose references are plain has them in this form too; its passes can be read
//! several times faster than through [`crate::Run::references`], which decides for each reference what it is.
//!
//! Faster still is to look at the same reference of many passes at once ([`PlainRecipe::addresses`]): what it is made of
//! then stays in registers, and a reference that is always to the same address is seen to be.

use sonde_x64::memory::{Access, Reference, Repeat, Value};
use sonde_x64::plan::Insn;

/// How a plain reference is computed: a term that is not there is word 0 times 0, or masked out.
#[derive(Clone, Copy, Debug)]
pub struct PlainRecipe {
    offset: u64,
    fs_mask: u64,
    /// What is kept of the word of the value, what is added to it, and what counts of the sum.
    keep: u64,
    add: u64,
    mask: u64,
    next_mask: u64,
    pc: u64,
    words: [u16; 3],
    scales: [u8; 2],
    kind: PlainKind,
}

/// What is always the same about a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainKind {
    /// Bytes.
    pub size: u16,
    /// [`PlainKind::LOAD`] and the like.
    pub flags: u16,
}

impl PlainKind {
    /// A load, not a store.
    pub const LOAD: u16 = 1;
    /// The value is known.
    pub const VALUE: u16 = 2;
}

/// A plain reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainRef {
    /// Pc of the instruction.
    pub pc: u64,
    /// Address.
    pub address: u64,
    /// Value; 0 if it is not known.
    pub value: u64,
    /// What is always the same about it.
    pub kind: PlainKind,
}

impl PlainRecipe {
    /// For a reference of one of these instructions, if it is plain.
    fn new(reference: &Reference, insns: &[Insn]) -> Option<PlainRecipe> {
        let address = reference.address?;
        if reference.repeat != Repeat::Once || reference.conditional {
            return None;
        }
        let (index, keep, add, next_mask) = match reference.value {
            Value::Unknown => (0, 0, 0, 0),
            Value::Const(value) => (0, 0, value, 0),
            Value::Word { index, delta } => (index, u64::MAX, delta, 0),
            Value::NextPc => (0, 0, 0, u64::MAX),
            Value::Words { .. } | Value::Unrecorded => return None,
        };
        let known = reference.value != Value::Unknown;
        let bits = 8 * u32::from(reference.size);
        let mask = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
        let term = |i: usize| address.terms[i].map_or((0, 0), |t| (t.word, t.scale));
        let load = if reference.access == Access::Load { PlainKind::LOAD } else { 0 };
        Some(PlainRecipe {
            offset: address.offset,
            fs_mask: if address.fs { u64::MAX } else { 0 },
            keep,
            add,
            mask: if known { mask } else { 0 },
            next_mask,
            pc: insns.get(reference.insn as usize).map_or(0, |insn| insn.pc),
            words: [term(0).0, term(1).0, index],
            scales: [term(0).1, term(1).1],
            kind: PlainKind { size: reference.size, flags: load | if known { PlainKind::VALUE } else { 0 } },
        })
    }

    /// All of a superblock, or none.
    pub(crate) fn all(references: &[Reference], insns: &[Insn]) -> Vec<PlainRecipe> {
        let all: Option<Vec<_>> = references.iter().map(|r| PlainRecipe::new(r, insns)).collect();
        all.unwrap_or_default()
    }

    /// Whether the value is where the program went next.
    pub fn needs_next_pc(&self) -> bool {
        self.next_mask != 0
    }

    /// Computes the reference.
    #[inline(always)]
    pub fn compute(&self, words: &[u64], fs_base: u64, next_pc: u64) -> PlainRef {
        let word = |i: usize| words.get(usize::from(self.words[i])).copied().unwrap_or(0);
        let term = |i: usize| word(i).wrapping_mul(u64::from(self.scales[i]));
        let address = self.offset.wrapping_add(term(0)).wrapping_add(term(1));
        let value = (word(2) & self.keep).wrapping_add(self.add).wrapping_add(next_pc & self.next_mask);
        PlainRef {
            pc: self.pc,
            address: address.wrapping_add(fs_base & self.fs_mask),
            value: value & self.mask,
            kind: self.kind,
        }
    }

    /// Pc of the instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// What is always the same about it.
    pub fn kind(&self) -> PlainKind {
        self.kind
    }

    /// Whether a record of so many words has all that it is computed from.
    pub fn fits(&self, words: u16) -> bool {
        let needs = |index: u16, used: bool| !used || index < words;
        needs(self.words[0], self.scales[0] != 0)
            && needs(self.words[1], self.scales[1] != 0)
            && needs(self.words[2], self.keep != 0)
    }

    /// The addresses in passes whose records begin at `starts` in `words`, put into `out`; or the only one there is, if
    /// no word makes a difference.
    pub fn addresses(&self, words: &[u64], starts: &[u32], fs_base: u64, out: &mut Vec<u64>) -> Option<u64> {
        let offset = self.offset.wrapping_add(fs_base & self.fs_mask);
        let [a, b] = self.scales.map(u64::from);
        let [i, j, _] = self.words.map(usize::from);
        let word = |start: u32, index: usize| words.get(start as usize + index).copied().unwrap_or(0);
        out.clear();
        match (a, b) {
            (0, 0) => return Some(offset),
            (1, 0) => out.extend(starts.iter().map(|&start| offset.wrapping_add(word(start, i)))),
            _ => out.extend(starts.iter().map(|&start| {
                let first = word(start, i).wrapping_mul(a);
                offset.wrapping_add(first).wrapping_add(word(start, j).wrapping_mul(b))
            })),
        }
        None
    }

    /// The values in passes whose records begin at `starts` in `words`, and which went on to `next`, put into `out`; or
    /// the only one there is.
    pub fn values(&self, words: &[u64], starts: &[u32], next: &[u64], out: &mut Vec<u64>) -> Option<u64> {
        let (add, mask, index) = (self.add, self.mask, usize::from(self.words[2]));
        out.clear();
        if self.next_mask != 0 {
            out.extend(next.iter().map(|&next| next.wrapping_add(add) & mask));
        } else if self.keep == 0 {
            return Some(add & mask);
        } else {
            let word = |start: u32| words.get(start as usize + index).copied().unwrap_or(0);
            out.extend(starts.iter().map(|&start| word(start).wrapping_add(add) & mask));
        }
        None
    }
}
