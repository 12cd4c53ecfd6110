//! What is known of each register inside a superblock in terms of words already in the log.
//!
//! A base register that was logged once, and since then moved by constants only, need not be logged again: the
//! reader computes it. This is what keeps the log small (one word for a whole stack frame, none for a pointer that
//! was just loaded and logged as a value).

use iced_x86::Register;

/// The content of a general register, as the reader of the log can compute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Known {
    /// Nothing is known; it must be logged when needed.
    #[default]
    No,
    /// The log word `index` plus `delta` (wrapping).
    Word {
        /// Index of the word in the record; the header is word 0.
        index: u16,
        /// Constant to add.
        delta: u64,
    },
    /// A constant.
    Const(u64),
}

impl Known {
    /// The same content moved by a constant.
    pub fn plus(self, by: u64) -> Known {
        match self {
            Known::No => Known::No,
            Known::Word { index, delta } => Known::Word { index, delta: delta.wrapping_add(by) },
            Known::Const(c) => Known::Const(c.wrapping_add(by)),
        }
    }
}

/// A pair of registers whose scaled sum was logged.
#[derive(Clone, Copy)]
struct Sum {
    base: u8,
    index: u8,
    scale: u8,
    word: u16,
}

/// Knowledge about the sixteen general registers, and about a few sums of two of them.
#[derive(Clone, Copy)]
pub struct Registers {
    known: [Known; 16],
    sums: [Option<Sum>; 4],
    next_sum: usize,
}

impl Default for Registers {
    fn default() -> Self {
        Registers { known: [Known::No; 16], sums: [None; 4], next_sum: 0 }
    }
}

/// The number 0..16 of the general register that `r` is (a part of), if it is one.
///
/// By position in the decoder's list of registers, because this is asked several times per instruction and its own
/// answer takes two tables and a comparison each.
pub fn gpr(r: Register) -> Option<u8> {
    const FIRST: usize = Register::AL as usize;
    const HIGH: usize = Register::AH as usize;
    const LOW: usize = Register::SPL as usize;
    const WORD: usize = Register::AX as usize;
    const END: usize = Register::R15 as usize;
    match r as usize {
        n @ FIRST..HIGH => Some((n - FIRST) as u8),
        n @ HIGH..LOW => Some((n - HIGH) as u8),
        n @ LOW..WORD => Some((n - LOW + 4) as u8),
        n @ WORD..=END => Some(((n - WORD) & 15) as u8),
        _ => None,
    }
}

impl Registers {
    /// What is known of register number `r`.
    pub fn get(&self, r: u8) -> Known {
        self.known[r as usize & 15]
    }

    /// States the content of `r` after it was written (or logged: use [`learn`](Self::learn) then).
    pub fn set(&mut self, r: u8, known: Known) {
        self.known[r as usize & 15] = known;
        for s in &mut self.sums {
            if s.is_some_and(|s| s.base == r || s.index == r) {
                *s = None;
            }
        }
    }

    /// States the content of `r`, which did not change.
    pub fn learn(&mut self, r: u8, known: Known) {
        self.known[r as usize & 15] = known;
    }

    /// The word that holds `base + index * scale`, if it was logged and neither register was written since.
    pub fn sum(&self, base: u8, index: u8, scale: u8) -> Option<u16> {
        let hit = |s: &&Sum| s.base == base && s.index == index && s.scale == scale;
        self.sums.iter().flatten().find(hit).map(|s| s.word)
    }

    /// Remembers that `word` holds `base + index * scale`.
    pub fn learn_sum(&mut self, base: u8, index: u8, scale: u8, word: u16) {
        self.sums[self.next_sum] = Some(Sum { base, index, scale, word });
        self.next_sum = (self.next_sum + 1) % self.sums.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_registers_are_those_of_the_decoder() {
        for r in Register::values() {
            let slow = if r.is_gpr() { Some(r.full_register().number() as u8) } else { None };
            assert_eq!(gpr(r), slow, "{r:?}");
        }
    }
}
