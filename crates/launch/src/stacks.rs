//! Stacks of threads: the kernel maps them like any other memory and does not name them.
//!
//! A thread's fs base leads to its control block, which C libraries put at the top of its stack; the log tells it at the
//! begin of each burst. So the memory around it, up to there, is the stack: below lies a guard page that cannot be read, and
//! above, memory that has nothing to do with it but may be joined to it in the kernel's list.

use sonde_event::maps::Mapping;
use sonde_wire::marker::{self, Cause, Kind};
use std::collections::HashSet;

/// Threads whose stacks have names of their own; those of further ones share one name.
const NAMED: usize = 256;
/// Bytes of the control block behind the fs base, at most (glibc has the largest, 2.3 KiB).
const CONTROL_BLOCK: u64 = 0x900;
const PAGE: u64 = 4096;

/// The stacks seen so far. The program's first thread has one that the kernel names.
#[derive(Default)]
pub struct Stacks {
    threads: HashSet<i32>,
    /// By number of the thread, from 2 on.
    bases: Vec<u64>,
}

impl Stacks {
    /// Takes what a thread logged. Returns an address in its stack if that was not known.
    pub fn note(&mut self, pid: i32, tid: i32, words: &[u64]) -> Option<u64> {
        if tid == pid || self.threads.contains(&tid) {
            return None;
        }
        let base = fs_base(words)?;
        self.threads.insert(tid);
        // Stacks are used again by threads that come later.
        let page = |base: u64| base / PAGE;
        if base == 0 || self.bases.iter().any(|known| page(*known) == page(base)) {
            return None;
        }
        self.bases.push(base);
        Some(base)
    }

    /// The stacks in a mapping, as mappings of their own.
    pub fn within(&self, mapping: &Mapping) -> Vec<Mapping> {
        let memory = mapping.name.is_empty() && mapping.permissions.starts_with("rw");
        let inside = self.bases.iter().enumerate().filter(|(_, base)| memory && mapping.contains(**base));
        let stack = |(i, base): (usize, &u64)| Mapping {
            end: (base + CONTROL_BLOCK).next_multiple_of(PAGE).min(mapping.end),
            start: self.below(mapping, *base),
            name: name(i),
            ..mapping.clone()
        };
        inside.map(stack).collect()
    }

    /// Where a stack begins: at that of its mapping, unless another one lies between.
    fn below(&self, mapping: &Mapping, base: u64) -> u64 {
        let others = self.bases.iter().filter(|other| mapping.contains(**other) && **other < base);
        let ends = others.map(|other| (other + CONTROL_BLOCK).next_multiple_of(PAGE));
        ends.filter(|end| *end <= base).max().unwrap_or(mapping.start)
    }
}

fn name(i: usize) -> String {
    if i < NAMED { format!("[stack of thread {}]", i + 2) } else { "[stack of other threads]".into() }
}

/// The fs base, if a burst begins at the beginning of these words.
fn fs_base(words: &[u64]) -> Option<u64> {
    let (kind, _) = marker::parse(*words.first()? as u32)?;
    words.get(3).copied().filter(|_| kind == Kind::Begin)
}

/// Whether the program ends, or becomes another one, at the end of these words, and waits for the reader.
pub fn is_last(words: &[u64]) -> bool {
    let Some([head, _, cause, _]) = words.last_chunk() else { return false };
    let is_end = marker::parse(*head as u32).is_some_and(|(kind, _)| kind == Kind::End);
    is_end && *cause == Cause::Exit as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(fs_base: u64) -> [u64; 5] {
        [u64::from(marker::header(Kind::Begin, 5)), 7, 0, fs_base, 0x1000]
    }

    #[test]
    fn stacks_end_with_the_control_block_of_their_thread() {
        let mut stacks = Stacks::default();
        assert_eq!(stacks.note(5, 5, &begin(0x7000_0000_06c0)), None, "the first thread's has a name");
        assert_eq!(stacks.note(5, 6, &begin(0x7f00_0080_06c0)), Some(0x7f00_0080_06c0));
        assert_eq!(stacks.note(5, 6, &begin(0x7f00_0080_06c0)), None, "known");
        assert_eq!(stacks.note(5, 7, &begin(0x7f00_0080_06c0)), None, "used again");
        assert_eq!(stacks.note(5, 8, &[0, 1, 2]), None, "no begin");
        assert!(stacks.note(5, 9, &begin(0x7f00_0090_06c0)).is_some());
        let joined = Mapping::parse("7f0000001000-7f0000a01000 rw-p 00000000 00:00 0 ").unwrap();
        let found: Vec<_> = stacks.within(&joined).into_iter().map(|m| (m.start, m.end, m.name)).collect();
        let stack = |from, to, n| (from, to, format!("[stack of thread {n}]"));
        assert_eq!(
            found,
            [stack(0x7f00_0000_1000, 0x7f00_0080_1000, 2), stack(0x7f00_0080_1000, 0x7f00_0090_1000, 3)]
        );
        let other = Mapping::parse("7f0000001000-7f0000a01000 rw-p 00000000 fe:01 77 /data").unwrap();
        assert!(stacks.within(&other).is_empty(), "a file is no stack");
    }

    #[test]
    fn the_last_words_of_a_program_are_known() {
        let end = |cause| [u64::from(marker::header(Kind::End, 4)), 1, cause as u64, 0x1000];
        assert!(is_last(&end(Cause::Exit)));
        assert!(!is_last(&end(Cause::Checks)) && !is_last(&[1]) && !is_last(&begin(1)));
    }
}
