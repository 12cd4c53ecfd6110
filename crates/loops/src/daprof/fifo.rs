//! The queue between processor and profiler: what comes too fast is dropped, and counted.

use std::collections::VecDeque;

/// A FIFO that a slower clock empties. Time is in clocks of the processor; the profiler takes one item at each tick of its
/// own clock, that is whenever `period` clocks of the processor have passed.
#[derive(Clone, Debug)]
pub struct Fifo<T> {
    places: usize,
    period: u64,
    /// Ticks of the profiler's clock so far.
    ticks: u64,
    waiting: VecDeque<T>,
    /// Items that found it full.
    pub dropped: u64,
}

impl<T> Fifo<T> {
    /// A FIFO with so many places. With a period of 0 items pass at once.
    pub fn new(places: usize, period: u32) -> Fifo<T> {
        Fifo { places, period: period.into(), ticks: 0, waiting: VecDeque::with_capacity(places), dropped: 0 }
    }

    /// The profiler takes what it could take until `now`.
    #[inline]
    pub fn drain(&mut self, now: u64, mut take: impl FnMut(T)) {
        if self.period == 0 {
            return self.waiting.drain(..).for_each(take);
        }
        let ticks = now / self.period;
        while self.ticks < ticks {
            let Some(item) = self.waiting.pop_front() else { break };
            take(item);
            self.ticks += 1;
        }
        self.ticks = ticks;
    }

    /// An item arrives; call [`drain`](Fifo::drain) for the same time first.
    #[inline]
    pub fn push(&mut self, item: T) {
        if self.waiting.len() == self.places {
            self.dropped += 1;
        } else {
            self.waiting.push_back(item);
        }
    }

    /// Takes all that waits: the processor stands still.
    pub fn flush(&mut self, take: impl FnMut(T)) {
        self.waiting.drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_three_clocks_passes_and_four_wait() {
        let mut fifo = Fifo::new(4, 3);
        let mut taken = Vec::new();
        // A branch every clock from clock 1 on: taken at clocks 3, 6, 9, ...
        for clock in 1..=10 {
            fifo.drain(clock, |item| taken.push((item, clock)));
            fifo.push(clock);
        }
        assert_eq!(taken, [(1, 3), (2, 6), (3, 9)]);
        // 1..=6 found room (two had left), 7 found it full, 8 too; 9 took the place of 3; 10 was too many.
        assert_eq!(fifo.dropped, 3);
        fifo.flush(|item| taken.push((item, 0)));
        assert_eq!(taken[3..], [(4, 0), (5, 0), (6, 0), (9, 0)]);
    }

    #[test]
    fn a_branch_every_third_clock_is_never_dropped() {
        let mut fifo = Fifo::new(1, 3);
        let mut taken = 0;
        for i in 0..1000 {
            fifo.drain(3 * i, |_| taken += 1);
            fifo.push(i);
        }
        assert_eq!((taken, fifo.dropped), (999, 0));
    }
}
