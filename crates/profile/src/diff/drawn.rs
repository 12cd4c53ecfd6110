//! Words that are drawn at random in every run: the one that guards the stack against overflows is loaded at the beginning and end of
//! many functions, so that it is among the hottest values, and another one in each run. Such a value that went and one that
//! came in its place, as often, are no change of the program.

use super::{Change, Share};
use sonde_summary::Domain;

/// Leaves pairs of such values out, and tells how many there were.
pub(super) fn leave_out(changes: &mut Vec<Change>, domains: &[Domain], least: f64) -> usize {
    let mut gone = vec![false; changes.len()];
    let mut pairs = 0;
    for i in 0..changes.len() {
        let is_other = |j: &usize| !gone[*j] && took_its_place(&changes[i], &changes[*j], domains, least);
        if !gone[i]
            && let Some(j) = (0..changes.len()).find(is_other)
        {
            (gone[i], gone[j]) = (true, true);
            pairs += 1;
        }
    }
    let mut gone = gone.into_iter();
    changes.retain(|_| !gone.next().unwrap_or(false));
    pairs
}

/// Whether the first is gone and the second came instead, about as often.
fn took_its_place(old: &Change, new: &Change, domains: &[Domain], least: f64) -> bool {
    let absent = |share: &Share| share.lower == 0.0;
    let (before, after) = (old.shares.before, new.shares.after);
    let apart = (after.lower - before.upper).max(before.lower - after.upper);
    let alike = apart <= least + 0.1 * before.upper;
    let same = |dim: usize| (old.lo[dim], old.hi[dim]) == (new.lo[dim], new.hi[dim]);
    let drawn = |change: &Change, dim: usize| change.lo[dim] == change.hi[dim] && is_drawn(change.lo[dim]);
    let other_word = |dim: usize| domains[dim] == Domain::Value && drawn(old, dim) && drawn(new, dim);
    absent(&old.shares.after)
        && absent(&new.shares.before)
        && alike
        && (0..domains.len()).all(|dim| other_word(dim) || same(dim))
        && (0..domains.len()).any(other_word)
}

/// The guard has a lowest byte of 0, so that no string runs over it; the other 7 are random. All but 3 % of them have no other
/// byte of 0. Addresses have, and so have small numbers and nearly all floating-point numbers.
fn is_drawn(value: u64) -> bool {
    let bytes = value.to_le_bytes();
    bytes[0] == 0 && bytes[1..].iter().all(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::super::Shares;
    use super::*;

    fn change(value: u64, before: f64, after: f64) -> Change {
        let share = |share| Share { lower: share, upper: share };
        let shares = Shares { before: share(before), after: share(after), noise: 0.0 };
        Change { lo: vec![value], hi: vec![value], shares, is_rest: false }
    }

    fn left(changes: &[Change]) -> (usize, usize) {
        let mut changes = changes.to_vec();
        let pairs = leave_out(&mut changes, &[Domain::Value], 0.005);
        (pairs, changes.len())
    }

    #[test]
    fn a_guard_that_is_another_is_no_change() {
        let (one, other) = (0x9d3f_a1c4_7716_2b00, 0x41e8_5c93_d0af_1700);
        assert_eq!(left(&[change(one, 0.03, 0.0), change(other, 0.0, 0.031)]), (1, 0));
        assert_eq!(left(&[change(other, 0.0, 0.031), change(5, 0.1, 0.2), change(one, 0.03, 0.0)]), (1, 1));
        assert_eq!(left(&[change(one, 0.03, 0.0), change(other, 0.0, 0.2)]), (0, 2), "much more often");
        assert_eq!(left(&[change(one, 0.03, 0.0)]), (0, 1), "nothing in its place");
        assert_eq!(left(&[change(one, 0.03, 0.01), change(other, 0.0, 0.03)]), (0, 2), "it is still there");
    }

    #[test]
    fn numbers_are_not_drawn() {
        for value in [0, 5, 0x7ffc_1234_5600, 0x3ff0_0000_0000_0000, 0x3fb9_9999_9999_999a, u64::MAX] {
            assert!(!is_drawn(value), "{value:#x}");
        }
        assert_eq!(
            left(&[change(0x3ff0_0000_0000_0000, 0.1, 0.0), change(0x4000_0000_0000_0000, 0.0, 0.1)]),
            (0, 2)
        );
    }
}
