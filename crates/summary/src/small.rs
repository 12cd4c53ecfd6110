//! Small values, which most loads give, are counted in a table by themselves.

/// Values below this are small.
const SMALL: usize = 1 << 10;
/// Each value has so many counts, raised in turn: one that comes many times in a row need not wait each time for the last.
const TURNS: usize = 4;
/// Most values that are counted before they have to be taken out: a count has 32 bits.
const MOST: u64 = 1 << 31;

/// How often each small value came.
pub(crate) struct Small {
    counts: Box<[[u32; TURNS]; SMALL]>,
    /// Values since they were taken out.
    since: u64,
}

impl Small {
    /// None came yet.
    pub fn new() -> Small {
        Small { counts: Box::new([[0; TURNS]; SMALL]), since: 0 }
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }

    /// Whether they have to be taken out soon.
    pub fn is_full(&self) -> bool {
        self.since >= MOST
    }

    fn zeros(&self) -> u32 {
        self.counts[0].iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }

    /// Counts the small ones of some values, and puts the others at the start of `large`, which has room for all. How many
    /// others there are, and how many were zero.
    pub fn take(&mut self, values: &[u64], large: &mut [u64]) -> (usize, usize) {
        let zeros = self.zeros();
        let (mut others, mut turn) = (0, 0);
        for (&value, _) in values.iter().zip(0..large.len()) {
            // Whether a value is small cannot be predicted: each one is written, and kept or not.
            let is_large = value >= SMALL as u64;
            large[others] = value;
            others += usize::from(is_large);
            turn = (turn + 1) % TURNS;
            self.counts[value as usize % SMALL][turn] += u32::from(!is_large);
        }
        self.since += values.len() as u64;
        (others, self.zeros().wrapping_sub(zeros) as usize)
    }

    /// Counts a value that came so often, if it is small.
    pub fn add(&mut self, value: u64, times: usize) -> bool {
        let is_small = value < SMALL as u64;
        if is_small {
            self.counts[value as usize][0] += times as u32;
            self.since += times as u64;
        }
        is_small
    }

    /// Takes out all that came, with how often.
    pub fn drain(&mut self, mut out: impl FnMut(u64, u64)) {
        self.since = 0;
        for (value, counts) in (0..).zip(&mut self.counts[..]) {
            let times = std::mem::take(counts).iter().map(|count| u64::from(*count)).sum();
            if times > 0 {
                out(value, times);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_counted_and_large_ones_given_back() {
        let mut small = Small::new();
        let values = [0, 5, 1023, 1024, 5, 0, u64::MAX, 0, 0, 0, 0];
        let mut large = [0; 11];
        assert_eq!(small.take(&values, &mut large), (2, 6));
        assert_eq!(large[..2], [1024, u64::MAX]);
        assert_eq!(small.take(&values[3..7], &mut large), (2, 1));
        let mut all = Vec::new();
        small.drain(|value, times| all.push((value, times)));
        assert_eq!(all, [(0, 7), (5, 3), (1023, 1)]);
        small.drain(|_, _| panic!("nothing is left"));
        assert!(small.add(7, 300) && !small.add(1024, 1));
        small.drain(|value, times| assert_eq!((value, times), (7, 300)));
        small.since = MOST - 1;
        assert!(!small.is_full());
        small.take(&[1], &mut large);
        assert!(small.is_full());
    }
}
