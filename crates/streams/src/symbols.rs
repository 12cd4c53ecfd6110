//! Numbers for data references: Sequitur works on small numbers, a reference is a pc and an address.
//!
//! Paper 4 records references and compares streams by pcs only ("object addresses will change from one run to another");
//! within a run both belong to it: the same instruction at another address is another reference. Numbers are given in
//! order of first appearance. With each goes what shapes need: the size, and the value loaded last.

/// A data reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reference {
    /// The instruction.
    pub pc: u64,
    /// The address, rounded down if the reader was told to.
    pub address: u64,
    /// The value it last loaded, if it was recorded and as wide as a pointer.
    pub loaded: Option<u64>,
    /// Bytes.
    pub size: u16,
    /// How often it was made.
    pub count: u64,
}

/// The table of references.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    references: Vec<Reference>,
    /// Number + 1; 0 is empty.
    slots: Vec<u32>,
}

const SMALLEST: usize = 1 << 10;

fn hash(pc: u64, address: u64) -> u64 {
    let wide = u128::from(pc ^ 0x9e37_79b9_7f4a_7c15) * u128::from(address ^ 0xd6e8_feb8_6659_fd93);
    (((wide >> 64) as u64) ^ wide as u64).wrapping_mul(0xff51_afd7_ed55_8ccd)
}

impl Symbols {
    pub(crate) fn len(&self) -> usize {
        self.references.len()
    }

    pub(crate) fn clear(&mut self) {
        self.references.clear();
        self.slots.fill(0);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.references.capacity() * size_of::<Reference>() + self.slots.capacity() * 4
    }

    #[inline(always)]
    pub(crate) fn get(&self, symbol: u32) -> &Reference {
        &self.references[symbol as usize]
    }

    /// Whether a number stands for this reference.
    #[inline(always)]
    pub(crate) fn is(&self, symbol: u32, pc: u64, address: u64) -> bool {
        let r = self.get(symbol);
        r.pc == pc && r.address == address
    }

    /// Notes that a reference was made.
    #[inline(always)]
    pub(crate) fn made(&mut self, symbol: u32, loaded: Option<u64>) {
        let r = &mut self.references[symbol as usize];
        r.count += 1;
        r.loaded = loaded;
    }

    /// The number of a reference.
    #[inline]
    pub(crate) fn number(&mut self, pc: u64, address: u64, size: u16) -> u32 {
        if self.references.len() * 8 >= self.slots.len() * 5 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(pc, address) as usize & mask;
        loop {
            match self.slots[at] {
                0 => break,
                n if self.is(n - 1, pc, address) => return n - 1,
                _ => at = (at + 1) & mask,
            }
        }
        self.references.push(Reference { pc, address, size, ..Reference::default() });
        self.slots[at] = self.references.len() as u32;
        self.references.len() as u32 - 1
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(SMALLEST);
        self.slots = vec![0; size];
        for (i, r) in self.references.iter().enumerate() {
            let mut at = hash(r.pc, r.address) as usize & (size - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = i as u32 + 1;
        }
    }
}
