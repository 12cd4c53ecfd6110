//! What to do when a run was too short for the trigger: a report without a burst helps nobody.

use std::time::Duration;

use super::facts::Facts;

/// Bursts that make a first picture.
const ENOUGH: f64 = 50.0;
/// More often than this is little but triggers.
const SHORTEST: Duration = Duration::from_micros(100);

/// Advice, if bursts were wanted and none was recorded.
pub fn advice(facts: &Facts, period: Option<Duration>) -> Option<String> {
    let period = period?;
    // Not the triggers: the probe sends itself one at the start.
    let skipped =
        facts.drops.iter().filter(|(kind, _)| kind.starts_with("skipped")).map(|(_, count)| count).sum();
    (facts.bursts == 0).then(|| words(facts.cpu_seconds, skipped, period))
}

fn words(cpu_seconds: f64, skipped: u64, period: Duration) -> String {
    let used = format!("no burst: the program used {:.1} ms of CPU time", cpu_seconds * 1e3);
    let everything = "--policy always records all of a short run";
    if skipped > 0 {
        return format!(
            "{used}, and nothing could be recorded at any of {skipped} triggers (see above); {everything}"
        );
    }
    let shorter = Duration::try_from_secs_f64(cpu_seconds / ENOUGH).unwrap_or_default();
    if shorter < SHORTEST || shorter >= period {
        return format!("{used}, and bursts begin after about {period:?}; {everything}");
    }
    let shorter = shorter.as_micros();
    format!("{used}, and bursts begin after about {period:?}; try --period {shorter}us, or {everything}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_that_is_advised_gives_bursts() {
        let period = Duration::from_millis(10);
        let text = words(0.008, 0, period);
        assert!(
            text.contains("8.0 ms") && text.contains("--period 160us") && text.contains("10ms"),
            "{text}"
        );
        // Too short even for the shortest period.
        let text = words(0.0005, 0, period);
        assert!(!text.contains("--period") && text.contains("--policy always"), "{text}");
        // A long program at bad places.
        let text = words(3.0, 12, period);
        assert!(!text.contains("--period") && text.contains("12 triggers"), "{text}");
    }
}
