//! Columns of numbers: differences, and sums that cannot overflow.

use crate::error::ProfileError;

/// Ascending numbers as differences.
pub(super) fn differences(ascending: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut before = 0u64;
    ascending.map(|number| number.wrapping_sub(std::mem::replace(&mut before, number))).collect()
}

/// And back.
pub(super) fn sums(differences: &[u64]) -> impl Iterator<Item = u64> + '_ {
    let mut sum = 0u64;
    differences.iter().map(move |difference| {
        sum = sum.wrapping_add(*difference);
        sum
    })
}

/// Whether numbers add up to less than 2^63: then two such sums can be added as well.
pub(super) fn add_up(numbers: impl IntoIterator<Item = u64>) -> Result<(), String> {
    let sum = numbers.into_iter().try_fold(0u64, u64::checked_add).filter(|sum| *sum < 1 << 63);
    sum.map(|_| ()).ok_or_else(|| "its counts add up to more than can be counted".to_owned())
}

/// Whether columns are of one length.
pub(super) fn even(what: &str, lengths: &[usize]) -> Result<(), ProfileError> {
    let same = lengths.windows(2).all(|pair| pair[0] == pair[1]);
    if same { Ok(()) } else { Err(ProfileError::damaged(format!("{what}: columns of different lengths"))) }
}
