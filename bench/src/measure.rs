//! Interleaved timing: in every round each contender runs once, so that a slow spell of the machine hits all alike, and
//! ratios are taken inside a round. What is measured is the processor time of this thread, system calls included: on a
//! shared machine the time spent waiting for a processor says nothing about the contender.

use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};

/// Something to be timed: its name, how many events one run handles, and the run, which returns what it must not skip.
pub struct Contender<'a> {
    /// The name shown.
    pub name: String,
    events: usize,
    run: Box<dyn FnMut() -> u64 + 'a>,
    /// Million events per second, by round.
    rates: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// A contender that handles `events` events in one `run`.
    pub fn new(name: impl Into<String>, events: usize, run: impl FnMut() -> u64 + 'a) -> Self {
        Contender { name: name.into(), events, run: Box::new(run), rates: Vec::new() }
    }

    /// Median rate in million events per second.
    pub fn rate(&self) -> f64 {
        median(self.rates.clone())
    }

    /// Median over the rounds of this rate divided by the other's.
    pub fn ratio_to(&self, other: &Contender) -> f64 {
        median(self.rates.iter().zip(&other.rates).map(|(mine, theirs)| mine / theirs).collect())
    }
}

/// Runs all contenders `rounds` times, in turn, after one round that is not counted.
pub fn interleave(contenders: &mut [Contender], rounds: usize) {
    for round in 0..=rounds {
        for contender in contenders.iter_mut() {
            let start = processor_seconds();
            black_box((contender.run)());
            let seconds = processor_seconds() - start;
            if round > 0 {
                contender.rates.push(contender.events as f64 / seconds / 1e6);
            }
        }
    }
}

/// Processor time that this thread has used so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_ratios() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }

    #[test]
    fn every_contender_runs_in_every_round() {
        let (mut a, mut b) = (0, 0);
        let mut contenders = [
            Contender::new("a", 1, || {
                a += 1;
                a
            }),
            Contender::new("b", 1, || {
                b += 1;
                b
            }),
        ];
        interleave(&mut contenders, 3);
        assert_eq!(contenders[0].rates.len(), 3);
        assert!(contenders[0].ratio_to(&contenders[1]) > 0.0);
        drop(contenders);
        assert_eq!((a, b), (4, 4));
    }
}
