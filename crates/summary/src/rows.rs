//! Exact counts of keys that come again and again, before a tree sees them: a program touches the same few hundred
//! kilobytes for millions of references, which is less than a tree needs to find its way to them each time.
//!
//! A row counts 32 neighbouring numbers, side by side in few bytes. Rows are found by hashing; one that others want
//! for long enough goes to the tree, and what finds its row taken meanwhile goes there at once. So a stream that never
//! comes back costs one look more than without rows. What a tree gets has the weight of all that it stands for: its bound
//! is that of weighted events, and holds for everything once the rows are emptied.

/// Numbers that a row counts.
pub(crate) const ROW: usize = 32;
/// How often a row is found taken before it is given away.
const PATIENCE: u8 = 31;
/// Fewest rows that are worth a look.
const FEWEST: usize = 64;
/// 2^64 divided by the golden ratio: multiplying by it spreads low and high bits into the top ones.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    /// What all numbers belong to: an instruction, or nothing.
    of: u64,
    /// The numbers, divided by [`ROW`].
    numbers: u64,
}

impl Tag {
    /// Which row they have, of 2^(64 - `shift`).
    #[inline(always)]
    fn place(self, shift: u32) -> usize {
        let mixed = self.numbers ^ self.of.wrapping_mul(GOLDEN).rotate_left(32);
        (mixed.wrapping_mul(GOLDEN) >> shift) as usize
    }
}

/// No numbers: they have fewer bits.
const FREE: Tag = Tag { of: 0, numbers: u64::MAX };

/// A row: all of it in one line of the processor's cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row {
    tag: Tag,
    counts: [u8; ROW],
    patience: u8,
}

/// A table of rows.
#[derive(Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
    shift: u32,
    /// How many may still be given away.
    gifts: usize,
}

impl Rows {
    /// Bytes of a row.
    pub const BYTES: usize = size_of::<Row>();

    /// So many rows, or the power of two below; none if that is too few.
    pub fn new(most: usize) -> Rows {
        let len = if most >= FEWEST { 1 << most.ilog2() } else { 0 };
        Rows {
            rows: vec![Row { tag: FREE, counts: [0; ROW], patience: 0 }; len],
            shift: u64::BITS - len.max(2).ilog2(),
            gifts: 0,
        }
    }

    /// So many may be given away from now on: each can give [`ROW`] keys to the tree.
    pub fn may_give(&mut self, gifts: usize) {
        self.gifts = gifts;
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.rows.len() * Rows::BYTES
    }

    /// Counts numbers that belong to `of`; `number` makes them from a column. What has to go to the tree is told to `out`:
    /// what it belongs to, the number, and how often it came.
    #[inline]
    pub fn add_all(
        &mut self,
        of: u64,
        column: &[u64],
        number: impl Fn(u64) -> u64,
        mut out: impl FnMut(u64, u64, u64),
    ) {
        // In locals: a loop that raises bytes would read them again each time.
        let (rows, shift, gifts) = (&mut self.rows[..], self.shift, &mut self.gifts);
        let mut raise = |number: u64| {
            let tag = Tag { of, numbers: number / ROW as u64 };
            let at = tag.place(shift);
            let row = &mut rows[at];
            if row.tag != tag {
                return miss(row, gifts, tag, number, 1, &mut out);
            }
            let count = &mut row.counts[number as usize % ROW];
            *count = count.wrapping_add(1);
            if *count == 0 {
                out(of, number, 1 << u8::BITS);
            }
        };
        // Neighbours are often equal, and a count is raised only after it was raised before: two halves in turn wait less.
        let (first, second) = column.split_at(column.len() / 2);
        for (a, b) in first.iter().zip(second) {
            raise(number(*a));
            raise(number(*b));
        }
        second.get(first.len()).map(|last| number(*last)).into_iter().for_each(raise);
    }

    /// Counts a number that came so often.
    pub fn add(&mut self, of: u64, number: u64, times: u64, mut out: impl FnMut(u64, u64, u64)) {
        let tag = Tag { of, numbers: number / ROW as u64 };
        let at = tag.place(self.shift);
        let Ok(few) = u8::try_from(times) else { return out(of, number, times) };
        let row = &mut self.rows[at];
        if row.tag != tag {
            return miss(row, &mut self.gifts, tag, number, few, &mut out);
        }
        let count = &mut row.counts[number as usize % ROW];
        match count.checked_add(few) {
            Some(sum) => *count = sum,
            None => out(of, number, times + u64::from(std::mem::take(count))),
        }
    }

    /// Takes everything out of a row, which is free then.
    pub fn empty(&mut self, at: usize, out: &mut impl FnMut(u64, u64, u64)) {
        self.rows[at].empty(out);
    }
}

impl Row {
    fn empty(&mut self, out: &mut impl FnMut(u64, u64, u64)) {
        let tag = std::mem::replace(&mut self.tag, FREE);
        let first = tag.numbers.wrapping_mul(ROW as u64);
        let counts = std::mem::replace(&mut self.counts, [0; ROW]);
        for (number, count) in (0..).zip(counts).filter(|(_, count)| *count > 0) {
            out(tag.of, first + number, count.into());
        }
    }
}

/// The row is taken by others.
#[cold]
#[inline(never)]
fn miss(
    row: &mut Row,
    gifts: &mut usize,
    tag: Tag,
    number: u64,
    times: u8,
    out: &mut impl FnMut(u64, u64, u64),
) {
    if row.tag != FREE {
        if row.patience > 0 || *gifts == 0 {
            row.patience = row.patience.saturating_sub(1);
            return out(tag.of, number, times.into());
        }
        *gifts -= 1;
        row.empty(out);
    }
    (row.tag, row.patience) = (tag, PATIENCE);
    row.counts[number as usize % ROW] = times;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn too_few_are_none() {
        assert!(Rows::new(FEWEST - 1).is_empty());
        assert_eq!(Rows::new(1000).len(), 512);
        assert!(Rows::new(1000).memory_bytes() <= 1000 * Rows::BYTES);
    }

    proptest! {
        /// Nothing is lost or counted twice, whether rows are kept, taken over or full.
        #[test]
        fn counts_are_exact(
            columns in prop::collection::vec(
                (0..3u64, prop_oneof![0..300u64, any::<u64>()], 1..2000u64, prop::option::of(1..200_000u64)), 1..80),
        ) {
            let mut rows = Rows::new(FEWEST);
            let (mut exact, mut got) = (BTreeMap::new(), BTreeMap::new());
            let (mut told, mut all, mut gifts) = (0, 0, 0);
            let mut out = |of: u64, number: u64, times: u64| {
                told += 1;
                *got.entry((of, number)).or_insert(0) += times;
            };
            for (of, start, step, times) in columns {
                rows.may_give(10);
                gifts += 10;
                let numbers: Vec<u64> = (0..500u64).map(|i| start.wrapping_add(i * i % step * 7)).collect();
                match times {
                    Some(times) => {
                        all += 1;
                        *exact.entry((of, start)).or_insert(0) += times;
                        rows.add(of, start, times, &mut out);
                    }
                    None => {
                        all += numbers.len();
                        numbers.iter().for_each(|number| *exact.entry((of, *number)).or_insert(0) += 1);
                        rows.add_all(of, &numbers, |number| number, &mut out);
                    }
                }
            }
            (0..rows.len()).for_each(|at| rows.empty(at, &mut out));
            prop_assert_eq!(got, exact);
            prop_assert!(told <= all + (gifts + FEWEST) * ROW);
        }

        /// A hot number is told of seldom.
        #[test]
        fn what_comes_again_stays(number: u64, of: u64) {
            let mut rows = Rows::new(FEWEST);
            let mut told = Vec::new();
            rows.add_all(of, &vec![number; 200_000], |number| number, |of, number, times| told.push((of, number, times)));
            prop_assert_eq!(told, [(of, number, 256); 781]);
        }
    }
}
