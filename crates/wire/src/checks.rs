//! The table of branches that keep no check in counter mode, by file and place in the file.
//!
//! All is 32-bit words: the number of modules; per module its identity (two words, low first), where its offsets begin
//! in the table, and how many there are; then the offsets of each module, ascending. It is written before the program
//! starts and only read afterwards; lengths are checked all the same.

/// Words before the first module.
const HEAD: usize = 1;
/// Words per module.
const ENTRY: usize = 4;

/// A hash of which version of which file something is: device, inode, size, times of change.
pub fn identity(words: &[u64; 7]) -> u64 {
    words.iter().fold(7, |h: u64, w| (h ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// Words that a table of so many modules and offsets takes.
pub fn words(modules: usize, offsets: usize) -> usize {
    HEAD + modules * ENTRY + offsets
}

/// Writes a table; false, and nothing that could be found, if it does not fit.
pub fn write(modules: &[(u64, &[u32])], table: &mut [u32]) -> bool {
    let total = modules.iter().map(|m| m.1.len()).sum();
    let needed = words(modules.len(), total);
    if needed > table.len() || u32::try_from(needed).is_err() {
        return false;
    }
    table[0] = modules.len() as u32;
    let mut at = words(modules.len(), 0);
    for (i, (identity, offsets)) in modules.iter().enumerate() {
        let entry = [*identity as u32, (*identity >> 32) as u32, at as u32, offsets.len() as u32];
        table[HEAD + i * ENTRY..][..ENTRY].copy_from_slice(&entry);
        table[at..][..offsets.len()].copy_from_slice(offsets);
        at += offsets.len();
    }
    true
}

/// The offsets of a file; none if the table does not know it.
pub fn find(table: &[u32], identity: u64) -> Option<&[u32]> {
    let modules = table.first().map_or(0, |n| *n as usize);
    let entries = table.get(HEAD..)?.chunks_exact(ENTRY).take(modules);
    let is = |e: &&[u32]| u64::from(e[0]) | u64::from(e[1]) << 32 == identity;
    let entry = entries.into_iter().find(is)?;
    table.get(entry[2] as usize..)?.get(..entry[3] as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_found_and_nothing_else() {
        let modules: [(u64, &[u32]); 3] = [(7 << 40 | 1, &[3, 9]), (8, &[]), (9, &[1])];
        let mut table = [0; 17];
        assert!(!write(&modules, &mut table[..15]));
        assert_eq!(find(&table, 8), None);
        assert!(write(&modules, &mut table));
        assert_eq!(words(3, 3), 16);
        assert_eq!(find(&table, 7 << 40 | 1), Some(&[3, 9][..]));
        assert_eq!(find(&table, 8), Some(&[][..]));
        assert_eq!(find(&table, 9), Some(&[1][..]));
        assert_eq!(find(&table, 1), None);
        assert_eq!(find(&[], 9), None);
    }

    #[test]
    fn damaged_tables_give_nothing() {
        assert_eq!(find(&[1, 9, 0, 5, 1], 9), None);
        assert_eq!(find(&[u32::MAX, 9, 0, 0, 6], 9), None);
        assert_eq!(find(&[u32::MAX, 1], 9), None);
    }
}
