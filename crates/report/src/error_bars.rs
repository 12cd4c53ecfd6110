//! How far a share may be off because only bursts were seen.

use sonde_summary::{Bursts, Unit};

/// Half the width of a 95 % interval, in standard errors.
const Z: f64 = 1.96;

/// Half the width of the 95 % interval around a share of time that was estimated from bursts; 0 where everything was
/// recorded.
///
/// A burst is one sample of the time: where it began. Near 0 and 1 the normal approximation is too narrow, so the share is
/// moved as Agresti and Coull do: two more bursts that have it and two that have not.
pub fn half_width(share: f64, unit: Unit, bursts: &Bursts) -> f64 {
    width(share, unit, bursts.effective())
}

/// The same for a share of so many events: where they are fewer than bursts, not every burst can have told of them.
pub fn half_width_of(share: f64, unit: Unit, bursts: &Bursts, events: u64) -> f64 {
    width(share, unit, bursts.effective().min(events as f64))
}

/// The same for a share of so many loads or stores. What a burst recorded of them hangs together, so it counts once however
/// many there are; bursts in code without any tell nothing.
pub fn half_width_of_data(share: f64, unit: Unit, bursts: &Bursts, events: u64) -> f64 {
    width(share, unit, bursts.effective_of_references().min(events as f64))
}

fn width(share: f64, unit: Unit, bursts: f64) -> f64 {
    if unit == Unit::Events {
        return 0.0;
    }
    let n = bursts + 4.0;
    let share = share.clamp(0.0, 1.0);
    let p = (share * bursts + 2.0) / n;
    // The interval lies around the moved share; what is shown, around the share itself, holds all of it.
    (p - share).abs() + Z * (p * (1.0 - p) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(count: u64) -> Bursts {
        Bursts { count, ..Bursts::default() }
    }

    #[test]
    fn more_bursts_tell_more_and_all_tells_all() {
        let at = |n| half_width(0.5, Unit::Picoseconds, &bursts(n));
        assert!((at(10_000) - 0.0098).abs() < 1e-4);
        assert!(at(100) > 9.0 * at(10_000) && at(100) < 11.0 * at(10_000));
        assert_eq!(half_width(0.5, Unit::Events, &bursts(100)), 0.0);
        let of = |events| half_width_of(0.5, Unit::Picoseconds, &bursts(100), events);
        assert!(
            of(1_000_000) == at(100) && of(10) == at(10),
            "events, not bursts, are what there is little of"
        );
    }

    #[test]
    fn bursts_that_weigh_differently_tell_less() {
        let of = |weights: &[u64]| {
            let mut bursts = bursts(weights.len() as u64);
            weights.iter().for_each(|ms| {
                bursts.weigh(ms * 1_000_000_000);
            });
            bursts
        };
        assert!((of(&[10; 50]).effective() - 50.0).abs() < 1e-9);
        // One that weighs as much as all others.
        let uneven = of(&[[1; 50].as_slice(), &[50]].concat());
        assert!((uneven.effective() - 100.0 * 100.0 / 2550.0).abs() < 1e-9);
        let width = |bursts: &Bursts| half_width(0.5, Unit::Picoseconds, bursts);
        assert!(width(&uneven) > 2.0 * width(&bursts(51)));
    }

    #[test]
    fn nothing_is_certain_from_few_bursts() {
        assert!(half_width(0.0, Unit::Picoseconds, &bursts(10)) > 0.1);
        assert!(half_width(1.0, Unit::Picoseconds, &bursts(0)) > 0.4);
    }

    /// The interval holds the truth about as often as it says: bursts that are in a place or not, drawn at random.
    #[test]
    fn intervals_hold_the_truth() {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for (truth, n) in
            [0.02, 0.1, 0.3, 0.5].into_iter().flat_map(|truth| [2, 3, 10, 300].map(|n| (truth, n)))
        {
            let held = (0..2000).filter(|_| {
                let share = (0..n).filter(|_| random() < truth).count() as f64 / n as f64;
                (share - truth).abs() <= half_width(share, Unit::Picoseconds, &bursts(n))
            });
            assert!(held.count() >= 1860, "93 % of 2000 at {truth} with {n} bursts");
        }
    }
}
