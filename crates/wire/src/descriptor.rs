//! Descriptions of superblocks: the code bytes from which the reader plans again.
//!
//! The ring holds records of whole 8-byte words: a [`Head`], then, if the head says so, a bit for each instruction whose
//! references are not recorded, then per segment its pc and length, then the bytes.
//! Positions count bytes since the start and never wrap; the place is the position modulo the ring's size. A record
//! does not wrap: a head with `bytes` = 0 means "go on at the start of the ring".

/// Fixed part of a description, as four words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// Bytes of the whole record, a multiple of 8.
    pub bytes: u32,
    /// Number of the first exit.
    pub first_exit: u32,
    /// Program's pc of the superblock.
    pub pc: u64,
    /// Number of exits.
    pub exits: u16,
    /// Number of instructions.
    pub insns: u16,
    /// Number of segments.
    pub segments: u16,
    /// Kind of the last exit.
    pub last_kind: u8,
    /// Whether there are instructions whose references are not recorded: a word that tells which follows.
    pub unrecorded: bool,
    /// Generation of the program's mappings in which it was made.
    pub generation: u32,
}

/// Words of a head.
pub const HEAD_WORDS: usize = 4;

impl Head {
    /// As words.
    pub fn encode(&self) -> [u64; HEAD_WORDS] {
        [
            u64::from(self.bytes) | u64::from(self.first_exit) << 32,
            self.pc,
            u64::from(self.exits)
                | u64::from(self.insns) << 16
                | u64::from(self.segments) << 32
                | u64::from(self.last_kind) << 48
                | u64::from(self.unrecorded) << 56,
            u64::from(self.generation),
        ]
    }

    /// From words.
    pub fn decode(w: &[u64; HEAD_WORDS]) -> Head {
        Head {
            bytes: w[0] as u32,
            first_exit: (w[0] >> 32) as u32,
            pc: w[1],
            exits: w[2] as u16,
            insns: (w[2] >> 16) as u16,
            segments: (w[2] >> 32) as u16,
            last_kind: (w[2] >> 48) as u8,
            unrecorded: w[2] >> 56 & 1 != 0,
            generation: w[3] as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back() {
        let head = Head {
            bytes: 88,
            first_exit: 0xdead_beef,
            pc: 0x7fff_0000_1234,
            exits: 3,
            insns: 48,
            segments: 2,
            last_kind: 8,
            unrecorded: true,
            generation: 7,
        };
        assert_eq!(Head::decode(&head.encode()), head);
        let all = Head { unrecorded: false, ..head };
        assert_eq!(Head::decode(&all.encode()), all);
    }
}
