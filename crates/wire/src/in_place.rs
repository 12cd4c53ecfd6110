//! What Sonde changed in the program's own code, so that checks are counted there: where the code as it was can be read,
//! which instructions lie elsewhere now, and what each page has to look like.
//!
//! The table is words: the number of modules, seven words for each, then their lists. It is written while the program stands
//! still; the number of modules last.

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Words of a module.
const WORDS: usize = 7;

/// An executable mapping that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module<'t> {
    /// First address.
    pub start: u64,
    /// End address.
    pub end: u64,
    /// Where the same bytes can be read as they were.
    pub original: u64,
    /// Where its stubs lie.
    pub stubs: u64,
    /// Where they end.
    pub stubs_end: u64,
    /// Instructions that have a copy in the stubs, in order: distance from `start` (upper half), place in the stubs.
    pub moved: &'t [u64],
    /// [`hash`] of each page.
    pub hashes: &'t [u64],
}

impl Module<'_> {
    /// Where an instruction runs: in the stubs, if it was moved there.
    pub fn runs_at(&self, pc: u64) -> u64 {
        let distance = pc - self.start;
        let i = self.moved.partition_point(|entry| entry >> 32 < distance);
        match self.moved.get(i) {
            Some(entry) if entry >> 32 == distance => self.stubs + (entry & 0xffff_ffff),
            _ => pc,
        }
    }
}

/// Words that a table takes: of all modules together, instructions moved and pages.
pub fn words(modules: usize, moved: usize, pages: usize) -> usize {
    1 + modules * WORDS + moved + pages
}

/// Writes a table. False if it does not fit.
pub fn write(modules: &[Module<'_>], table: &mut [u64]) -> bool {
    let lists =
        modules.iter().fold((0, 0), |(m, p), module| (m + module.moved.len(), p + module.hashes.len()));
    if words(modules.len(), lists.0, lists.1) > table.len() {
        return false;
    }
    let mut next = words(modules.len(), 0, 0);
    for (i, module) in modules.iter().enumerate() {
        let mut put = |list: &[u64]| {
            table[next..next + list.len()].copy_from_slice(list);
            let place = (next as u64) << 32 | list.len() as u64;
            next += list.len();
            place
        };
        let (moved, hashes) = (put(module.moved), put(module.hashes));
        let words =
            [module.start, module.end, module.original, module.stubs, module.stubs_end, moved, hashes];
        table[1 + i * WORDS..][..WORDS].copy_from_slice(&words);
    }
    table[0] = modules.len() as u64;
    true
}

/// The modules of a table. What does not make sense is left out.
pub fn modules(table: &[u64]) -> impl Iterator<Item = Module<'_>> {
    let count = table.first().copied().unwrap_or(0) as usize;
    let list = |place: u64| table.get((place >> 32) as usize..)?.get(..(place & 0xffff_ffff) as usize);
    table.get(1..).unwrap_or_default().chunks_exact(WORDS).take(count).filter_map(move |w| {
        let [start, end, original, stubs, stubs_end, moved, hashes] = *w else { return None };
        Some(Module { start, end, original, stubs, stubs_end, moved: list(moved)?, hashes: list(hashes)? })
    })
}

/// A hash of a page. Four lanes, because each step waits for the multiplication before: whoever begins a burst hashes
/// hundreds of pages.
pub fn hash(page: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1u64, 2, 3, 4];
    let (blocks, _) = page.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
        }
    }
    lanes.iter().fold(0, |all, lane| (all ^ lane).wrapping_mul(PRIME).rotate_left(31))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let one = Module {
            start: 0x1000,
            end: 0x3000,
            original: 0x9000,
            stubs: 0x7000,
            stubs_end: 0x8000,
            moved: &[],
            hashes: &[1, 2],
        };
        let two = Module { start: 0x5000, moved: &[2 << 32 | 14, 7 << 32 | 30], hashes: &[3], ..one };
        let mut table = [0; 32];
        assert!(write(&[one, two], &mut table));
        assert!(modules(&table).eq([one, two]));
        assert_eq!(modules(&[]).count() + modules(&[0; 9]).count(), 0);
        assert!(!write(&[one, two], &mut table[..words(2, 2, 2)]));
        assert!(write(&[one, two], &mut table[..words(2, 2, 3)]));
        assert_eq!(
            [0x5000, 0x5002, 0x5003, 0x5007].map(|pc| two.runs_at(pc)),
            [0x5000, 0x700e, 0x5003, 0x701e]
        );
        // Lists that lie outside.
        table[6] = 31 << 32 | 2;
        assert_eq!(modules(&table).count(), 1);
    }

    #[test]
    fn every_byte_of_a_page_counts() {
        let mut page = [7u8; PAGE as usize];
        let before = hash(&page);
        for i in [0, 1, 8, 31, 32, 4095] {
            page[i] ^= 1;
            assert_ne!(hash(&page), before, "byte {i}");
            page[i] ^= 1;
        }
        assert_eq!(hash(&page), before);
    }
}
