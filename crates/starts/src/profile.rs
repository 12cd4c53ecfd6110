//! Beginnings by instruction: plain data, to be stored, merged and shown.

use std::cmp::Reverse;

/// A number of beginnings, and the time that they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Bursts.
    pub count: u64,
    /// Picoseconds of CPU time.
    pub weight: u64,
}

impl Sum {
    /// Adds another one.
    pub fn add(&mut self, other: Sum) {
        self.count = self.count.saturating_add(other.count);
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// An instruction at which bursts began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The instruction.
    pub pc: u64,
    /// How many.
    pub sum: Sum,
}

/// Where the bursts of a run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartsProfile {
    /// In user code, by instruction, at most [`StartsProfile::MOST`].
    pub starts: Vec<Start>,
    /// Right behind a system call: the trigger fell into the kernel.
    pub behind_calls: Sum,
    /// At an instruction whose page fault the kernel handled when the trigger came.
    pub in_faults: Sum,
    /// At further instructions, beyond the most that are kept.
    pub not_kept: Sum,
}

impl StartsProfile {
    /// Most instructions that are kept.
    pub const MOST: usize = 1 << 16;

    /// All in the kernel.
    pub fn kernel(&self) -> Sum {
        let mut all = self.behind_calls;
        all.add(self.in_faults);
        all
    }

    /// All in user code.
    pub fn all(&self) -> Sum {
        let mut all = self.not_kept;
        self.starts.iter().for_each(|start| all.add(start.sum));
        all
    }

    /// Replaces every address by what `place` gives.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        self.starts.iter_mut().for_each(|start| start.pc = place(start.pc));
        self.put_in_order();
    }

    /// Adds the beginnings of other runs.
    pub fn merge(&mut self, other: &StartsProfile) {
        self.starts.extend_from_slice(&other.starts);
        self.behind_calls.add(other.behind_calls);
        self.in_faults.add(other.in_faults);
        self.not_kept.add(other.not_kept);
        self.put_in_order();
        self.bound(StartsProfile::MOST);
    }

    /// What holds for every profile.
    pub fn check(&self) -> Result<(), String> {
        if self.starts.len() > StartsProfile::MOST {
            return Err("there are too many".into());
        }
        if !self.starts.is_sorted_by(|a, b| a.pc < b.pc) {
            return Err("they are not ordered, or one is there twice".into());
        }
        if self.starts.iter().any(|start| start.sum.count == 0) {
            return Err("no burst began at one of them".into());
        }
        let sums = self.starts.iter().map(|start| start.sum).chain([
            self.behind_calls,
            self.in_faults,
            self.not_kept,
        ]);
        let add = |(count, weight): (u64, u64), sum: Sum| {
            Some((count.checked_add(sum.count)?, weight.checked_add(sum.weight)?))
        };
        let all = sums.into_iter().try_fold((0u64, 0u64), add);
        let fits = all.is_some_and(|(count, weight)| count < 1 << 63 && weight < 1 << 63);
        if fits { Ok(()) } else { Err("they add up to more than can be counted".into()) }
    }

    fn put_in_order(&mut self) {
        self.starts.sort_unstable_by_key(|start| start.pc);
        self.starts.dedup_by(|next, first| {
            let same = next.pc == first.pc;
            if same {
                first.sum.add(next.sum);
            }
            same
        });
    }

    fn bound(&mut self, most: usize) {
        if self.starts.len() > most {
            self.starts.sort_unstable_by_key(|start| (Reverse(start.sum.weight), start.pc));
            self.starts.split_off(most).into_iter().for_each(|start| self.not_kept.add(start.sum));
            self.starts.sort_unstable_by_key(|start| start.pc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile(starts: &[(u64, u64)]) -> StartsProfile {
        let mut all = StartsProfile::default();
        let start = |(pc, weight): &(u64, u64)| Start { pc: *pc, sum: Sum { count: 1, weight: *weight } };
        all.starts = starts.iter().map(start).collect();
        all.put_in_order();
        all
    }

    proptest! {
        #[test]
        fn merging_adds_up_and_loses_nothing(
            a in proptest::collection::vec((0u64..50, 1u64..1000), 0..80),
            b in proptest::collection::vec((0u64..50, 1u64..1000), 0..80),
        ) {
            let (both, mut sum) = (profile(&[a.clone(), b.clone()].concat()), profile(&a));
            sum.merge(&profile(&b));
            prop_assert_eq!(&sum, &both);
            prop_assert_eq!(sum.check(), Ok(()));
            sum.bound(3);
            prop_assert_eq!(sum.check(), Ok(()));
            prop_assert_eq!(sum.all(), both.all());
            let lightest = sum.starts.iter().map(|s| s.sum.weight).min().unwrap_or(0);
            prop_assert!(both.starts.iter().filter(|s| s.sum.weight > lightest).count() <= 3);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(profile(&[(1, 2), (3, 4)]).check(), Ok(()));
        let twice = StartsProfile { starts: vec![profile(&[(1, 2)]).starts[0]; 2], ..Default::default() };
        assert!(twice.check().is_err());
        assert!(profile(&[(1, u64::MAX)]).check().is_err());
        assert!(StartsProfile { starts: vec![Start::default()], ..Default::default() }.check().is_err());
    }

    #[test]
    fn places_that_become_one_are_added_up() {
        let mut all = profile(&[(0x10, 1), (0x20, 2), (0x31, 4)]);
        all.relocate(&mut |pc| pc & 1);
        assert_eq!(
            all,
            StartsProfile {
                starts: vec![
                    Start { pc: 0, sum: Sum { count: 2, weight: 3 } },
                    Start { pc: 1, sum: Sum { count: 1, weight: 4 } },
                ],
                ..Default::default()
            }
        );
    }
}
