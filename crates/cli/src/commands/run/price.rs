//! What profiling cost, and what was done about it, in words: the same for a run and for its profile.

use std::time::Duration;

use sonde_launch::TRIGGER_SECONDS;

use crate::quantity::{count, percent};

/// A limit on what profiling may cost, and what became of bursts because of it.
pub struct Price {
    pub limit: f64,
    /// Mean CPU time from one burst to the next: as asked for, and as it was.
    pub period: Duration,
    pub mean: Duration,
    pub left_out: u64,
}

impl Price {
    /// What was done to keep within the limit; nothing if nothing had to be.
    pub fn in_words(&self) -> Option<String> {
        let milliseconds = |time: Duration| {
            let digits = format!("{:.1}", time.as_secs_f64() * 1e3);
            digits.strip_suffix(".0").map_or(digits.clone(), str::to_owned)
        };
        (self.left_out > 0).then(|| {
            format!(
                "one every {} ms, made rarer to every {} ms on average to keep within {} (--max-overhead): {} left out",
                milliseconds(self.period),
                milliseconds(self.mean),
                percent(self.limit),
                count(self.left_out, "burst", "bursts"),
            )
        })
    }
}

/// What was spent in all, over what the program used by itself: times in seconds.
pub fn share_spent(cpu: f64, in_bursts: f64, triggers: u64, sonde: f64) -> f64 {
    (in_bursts + triggers as f64 * TRIGGER_SECONDS + sonde) / (cpu - in_bursts).max(1e-3)
}

/// All that was spent, as a share of what the program used by itself.
pub fn in_all(share: f64) -> String {
    format!("in all {} of what the program used by itself", percent((share * 1000.0).round() / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_done_is_told() {
        let period = Duration::from_millis(20);
        let mut price = Price { limit: 0.03, period, mean: Duration::from_micros(34_060), left_out: 1234 };
        assert_eq!(
            price.in_words().unwrap(),
            "one every 20 ms, made rarer to every 34.1 ms on average to keep within 3 % (--max-overhead): 1,234 bursts left out"
        );
        price.left_out = 0;
        assert_eq!(price.in_words(), None);
        assert_eq!(in_all(0.04321), "in all 4.3 % of what the program used by itself");
    }
}
