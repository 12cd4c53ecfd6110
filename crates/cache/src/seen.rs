//! Lines that were ever brought in, in bounded memory.

/// Bits of the table: 1 MiB of memory, for 64 MiB of touched data at an eighth of errors.
const BITS: u64 = 1 << 23;

/// A table of one bit per hashed line: what it calls new is new; what it calls seen may be another line.
pub struct Seen {
    bits: Vec<u64>,
}

impl Seen {
    /// Bytes used by any.
    pub const BYTES: usize = (BITS / 8) as usize;

    /// Nothing seen.
    pub fn new() -> Seen {
        Seen { bits: vec![0; (BITS / 64) as usize] }
    }

    /// Whether the line is surely new; it is seen from now on.
    pub fn is_new(&mut self, line: u64) -> bool {
        let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BITS.trailing_zeros());
        let (word, bit) = ((hash / 64) as usize, 1u64 << (hash % 64));
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        new
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.bits.len() * 8
    }
}
