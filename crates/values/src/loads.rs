//! Which references of a superblock are loads with a value, found once per superblock: readers go through millions of
//! passes, and most of what a reference is made of does not matter here.

use sonde_event::{Access, Run, Superblock};
use sonde_x64::memory::{Reference, Repeat, Value};

/// Which loads are profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Also what returns load. Left out unless asked for: their values are code addresses, which calls tell already,
    /// and which differ from run to run.
    pub returns: bool,
}

/// What a reference is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not a load.
    Other,
    /// Profiled.
    Profiled,
    /// A return that is left out.
    Return,
    /// The stream does not have its value, or cannot say whether it happened.
    Unknown,
}

impl Kinds {
    pub(crate) fn class(self, reference: &Reference) -> Class {
        if reference.access != Access::Load {
            return Class::Other;
        }
        match reference.value {
            Value::NextPc if !self.returns => Class::Return,
            Value::Unknown => Class::Unknown,
            _ if reference.conditional || reference.repeat != Repeat::Once => Class::Unknown,
            _ => Class::Profiled,
        }
    }
}

/// Where the value of a load is found in a record.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A word, plus a constant, under a mask.
    Word { index: u16, delta: u64, mask: u64 },
    /// Always the same.
    Const(u64),
    /// Several words.
    Wide { first: u16, count: u16 },
    /// Where the program went next.
    NextPc,
    /// Nowhere: masked at the source.
    Nowhere,
}

/// A profiled load of a superblock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub pc: u64,
    source: Source,
    /// Number of the reference.
    pub reference: u16,
}

impl Site {
    fn new(superblock: &Superblock, index: usize, reference: &Reference) -> Site {
        let mask = if reference.size < 8 { (1 << (8 * u32::from(reference.size))) - 1 } else { u64::MAX };
        let source = match reference.value {
            Value::Word { index, delta } => Source::Word { index, delta, mask },
            Value::Const(c) => Source::Const(c & mask),
            Value::Words { first, count } => Source::Wide { first, count: u16::from(count) },
            Value::NextPc => Source::NextPc,
            Value::Unrecorded | Value::Unknown => Source::Nowhere,
        };
        let pc = superblock.insns.get(reference.insn as usize).map_or(0, |insn| insn.pc);
        Site { pc, source, reference: index as u16 }
    }

    /// Whether its value is in the stream, as far as the superblock tells.
    pub fn is_logged(&self) -> bool {
        !matches!(self.source, Source::Nowhere)
    }

    /// The value loaded in this pass; none if the stream does not tell where a return went, or it was masked.
    #[inline(always)]
    pub fn value(&self, run: &Run<'_>) -> Option<u64> {
        match self.source {
            Source::Word { index, delta, mask } => {
                Some(run.words.get(index as usize).copied().unwrap_or(0).wrapping_add(delta) & mask)
            }
            Source::Const(c) => Some(c),
            Source::Wide { first, count } => {
                let first = first as usize;
                run.words.get(first..first + count as usize).map(fingerprint)
            }
            Source::NextPc => run.next_pc,
            Source::Nowhere => None,
        }
    }
}

/// One word for several: the lowest if the others are 0, otherwise a mixture in which every bit counts. Comparing only
/// the low word would call vectors equal that are not.
pub fn fingerprint(words: &[u64]) -> u64 {
    let mixed = |(i, w): (usize, &u64)| {
        w.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(8 * i as u32 + 24)
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
    };
    let high = words.iter().enumerate().skip(1).map(mixed).fold(0, |a, b| a ^ b);
    words.first().copied().unwrap_or(0) ^ high
}

/// What is known about a superblock, and what the reader has noted about it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Pc, first exit, instructions: tells superblocks of different processes apart.
    identity: (u64, u32, usize),
    pub sites: Box<[Site]>,
    /// How many of them are masked at the source.
    masked: usize,
    /// For the reader: what its notes depend on had this version when they were made; 0 for none made.
    pub version: u64,
    /// The reader's notes.
    pub notes: Vec<u32>,
}

impl Known {
    /// How many of the sites a pass went through.
    #[inline]
    pub fn executed(&self, run: &Run<'_>) -> usize {
        match self.sites.last() {
            Some(last) if last.reference < run.path.refs => self.sites.len(),
            _ => self.sites.partition_point(|s| s.reference < run.path.refs),
        }
    }

    /// How many of the first `executed` sites are in the stream.
    #[inline]
    pub fn logged(&self, executed: usize) -> usize {
        if self.masked == 0 || executed == self.sites.len() {
            return executed - self.masked.min(executed);
        }
        self.sites[..executed].iter().filter(|s| s.is_logged()).count()
    }
}

/// The superblocks met so far. Grows with the code described, as the catalog does, not with how often it runs.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    kinds: Kinds,
    known: Vec<Known>,
    bytes: usize,
}

impl Sites {
    pub fn new(kinds: Kinds) -> Sites {
        Sites { kinds, ..Sites::default() }
    }

    /// The superblock of this pass.
    #[inline]
    pub fn of(&mut self, run: &Run<'_>) -> &mut Known {
        let index = run.path.superblock as usize;
        let block = run.superblock;
        let identity = (block.pc, block.first_exit, block.insns.len());
        if self.known.get(index).is_none_or(|k| k.identity != identity) {
            self.learn(index, block, identity);
        }
        &mut self.known[index]
    }

    #[cold]
    fn learn(&mut self, index: usize, block: &Superblock, identity: (u64, u32, usize)) {
        if self.known.len() <= index {
            self.known.resize_with(index + 1, Known::default);
        }
        let profiled = |r: &&(usize, &Reference)| self.kinds.class(r.1) == Class::Profiled;
        let all: Vec<(usize, &Reference)> = block.refs.iter().enumerate().collect();
        let sites: Box<[Site]> = all.iter().filter(profiled).map(|(i, r)| Site::new(block, *i, r)).collect();
        // Notes take at most one number per site.
        self.bytes += sites.len() * (size_of::<Site>() + size_of::<u32>());
        let masked = sites.iter().filter(|s| !s.is_logged()).count();
        self.known[index] = Known { identity, sites, masked, ..Known::default() };
    }

    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.known.capacity() * size_of::<Known>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_keep_small_values_and_tell_vectors_apart() {
        assert_eq!(fingerprint(&[7]), 7);
        assert_eq!(fingerprint(&[7, 0, 0, 0]), 7);
        let vectors: [&[u64]; 5] = [&[7, 0], &[7, 1], &[7, 1 << 63], &[7, 0, 1, 0], &[7, 0, 0, 1]];
        let mut all: Vec<u64> = vectors.map(fingerprint).to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), vectors.len());
    }
}
