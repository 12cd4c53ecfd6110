//! What any summary has to do at the least: read the events, or hash each into a small table. Nothing can be faster than
//! these and still look at every event.

/// Entries of a 1 KiB table of keys and counts: the paper's merging-event buffer.
const ENTRIES: usize = 64;

/// Sums the array: the speed of reading.
pub fn sum(keys: &[u64]) -> u64 {
    keys.iter().fold(0, |sum, &key| sum.wrapping_add(key))
}

#[inline(always)]
fn index(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

/// Combines equal events in a 1 KiB table; what is displaced is forgotten. Without a branch on the outcome.
pub fn table_branch_free(keys: &[u64]) -> u64 {
    let mut table = [(0u64, 0u64); ENTRIES];
    for &key in keys {
        let entry = &mut table[index(key)];
        // A mask: written as a choice it is compiled to a branch.
        let kept = u64::from(entry.0 == key).wrapping_neg();
        *entry = (key, (entry.1 & kept) + 1);
    }
    table.iter().fold(0, |sum, entry| sum.wrapping_add(entry.0 ^ entry.1))
}

/// The same with a branch: faster where the outcome can be predicted.
pub fn table_branchy(keys: &[u64]) -> u64 {
    let mut table = [(0u64, 0u64); ENTRIES];
    let mut displaced = 0u64;
    for &key in keys {
        let entry = &mut table[index(key)];
        if entry.0 == key {
            entry.1 += 1;
        } else {
            // Something must be done with it, or the compiler makes this branch-free too.
            displaced = displaced.wrapping_add(std::hint::black_box(entry.1));
            *entry = (key, 1);
        }
    }
    table.iter().fold(displaced, |sum, entry| sum.wrapping_add(entry.0 ^ entry.1))
}
