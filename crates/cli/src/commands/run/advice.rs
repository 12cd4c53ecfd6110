//! What to do when a run was too short for the trigger: a report without a burst helps nobody.

use std::time::Duration;

use sonde_launch::Policy;

use super::facts::Facts;
use crate::quantity::grouped;

/// Bursts that make a first picture.
const ENOUGH: f64 = 50.0;
const EVERYTHING: &str = "--policy always records all of a short run";
/// More often than this is little but triggers.
const SHORTEST: Duration = Duration::from_micros(100);

/// Advice, if bursts were wanted and none was recorded.
pub fn advice(facts: &Facts, policy: Policy) -> Option<String> {
    let not_changed = facts.in_place.as_ref().is_some_and(|in_place| in_place.error.is_some());
    if facts.bursts > 0 || facts.error.is_some() || not_changed {
        return None;
    }
    // Not the triggers: the probe sends itself one at the start.
    let skipped =
        facts.drops.iter().filter(|(kind, _)| kind.starts_with("skipped")).map(|(_, count)| count).sum();
    match policy {
        Policy::Bursts { checks: 0, .. } | Policy::Always => None,
        Policy::Bursts { period, .. } => Some(of_bursts(facts.cpu_seconds, skipped, period)),
        Policy::Counter { gap, .. } => Some(of_counter(gap)),
    }
}

/// What to do where fewer checks were passed than lie between bursts.
pub fn of_counter(gap: u64) -> String {
    let passed = format!(
        "no burst: the program passed fewer than {} checks (function entries, back-edges, indirect branches)",
        grouped(gap)
    );
    match gap / 100 {
        0 => format!("{passed}; {EVERYTHING}"),
        shorter => format!("{passed}; try --burst {shorter}:1000, or {EVERYTHING}"),
    }
}

/// What to do where no burst began in so much CPU time.
pub fn of_bursts(cpu_seconds: f64, skipped: u64, period: Duration) -> String {
    let used = format!("no burst: the program used {:.1} ms of CPU time", cpu_seconds * 1e3);
    if skipped > 0 {
        return format!(
            "{used}, and nothing could be recorded at any of {skipped} triggers (see above); {EVERYTHING}"
        );
    }
    let shorter = Duration::try_from_secs_f64(cpu_seconds / ENOUGH).unwrap_or_default();
    if shorter < SHORTEST || shorter >= period {
        return format!("{used}, and bursts begin after about {period:?}; {EVERYTHING}");
    }
    let shorter = shorter.as_micros();
    format!("{used}, and bursts begin after about {period:?}; try --period {shorter}us, or {EVERYTHING}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_that_is_advised_gives_bursts() {
        let period = Duration::from_millis(10);
        let text = of_bursts(0.008, 0, period);
        assert!(
            text.contains("8.0 ms") && text.contains("--period 160us") && text.contains("10ms"),
            "{text}"
        );
        assert!(
            of_counter(100_000).contains("--burst 1000:1000")
                && of_counter(100_000).contains("100,000 checks")
        );
        assert!(!of_counter(50).contains("--burst"));
        // Too short even for the shortest period.
        let text = of_bursts(0.0005, 0, period);
        assert!(!text.contains("--period") && text.contains("--policy always"), "{text}");
        // A long program at bad places.
        let text = of_bursts(3.0, 12, period);
        assert!(!text.contains("--period") && text.contains("12 triggers"), "{text}");
    }
}
