//! The modes of `sonde run` and random settings within each: bursts must be harmless wherever they begin and end.

use std::fmt;

use crate::manifest::Sees;
use crate::random::Random;
use crate::support::Sonde;

/// One way of observing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Native between bursts that this trigger begins.
    Bursts(&'static str),
    /// The same by stops, in child processes too.
    Follow,
    /// Everything recorded, with this much detail.
    Always(&'static str),
    /// The same for values of loads, of which ever fewer are recorded.
    Masks,
    /// The two-version scheme that counts checks.
    Counter,
    /// Checks counted in the program's own code.
    InPlace,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bursts(trigger) => write!(f, "bursts/{trigger}"),
            Self::Follow => f.write_str("bursts/follow"),
            Self::Always(record) => write!(f, "always/{record}"),
            Self::Masks => f.write_str("always/masks"),
            Self::Counter => f.write_str("counter"),
            Self::InPlace => f.write_str("counter/in place"),
        }
    }
}

impl Mode {
    /// Whether every run of any program records something; triggered bursts may all fall due after the end.
    pub fn records_always(self) -> bool {
        matches!(self, Self::Always(_) | Self::Masks | Self::Counter)
    }

    /// Whether a program that looks at this sees nothing of the mode.
    pub fn is_hidden_from(self, sees: Sees) -> bool {
        match self {
            Self::Bursts(trigger) => trigger == "stops" || !sees.signal,
            Self::InPlace => !sees.code,
            Self::Follow => !sees.tracer,
            Self::Always(_) | Self::Masks | Self::Counter => !sees.handlers,
        }
    }
}

const RECORDS: [&str; 3] = ["blocks", "addresses", "values"];

/// The modes that this `sonde` offers on this machine.
pub fn modes(sonde: &Sonde) -> Vec<Mode> {
    let policy = |name| sonde.offers("--policy", name);
    let mut modes = Vec::new();
    if policy("bursts") {
        modes.extend(
            ["stops", "perf", "timer"].into_iter().filter(|t| sonde.offers("--trigger", t)).map(Mode::Bursts),
        );
    }
    if sonde.offers("--follow", "") {
        modes.push(Mode::Follow);
    }
    if policy("always") {
        modes.extend(RECORDS.into_iter().filter(|r| sonde.offers("--record", r)).map(Mode::Always));
    }
    if policy("always") && sonde.offers("--live-masks", "") {
        modes.push(Mode::Masks);
    }
    if policy("counter") {
        modes.push(Mode::Counter);
    }
    if policy("counter") && sonde.offers("--in-place", "") {
        modes.push(Mode::InPlace);
    }
    modes
}

/// Options of `sonde run` for a mode, the rest drawn at random among what `sonde` accepts.
pub fn draw(mode: Mode, sonde: &Sonde, random: &mut Random) -> Vec<String> {
    let mut options = match mode {
        Mode::Bursts(trigger) => bursts(trigger, sonde, random),
        Mode::Follow => bursts("stops", sonde, random),
        Mode::Always(record) => fixed(&["--policy", "always", "--record", record]),
        Mode::Masks => fixed(&["--policy", "always"]),
        Mode::Counter => counter(sonde, (1, 3_000), random),
        Mode::InPlace => in_place(sonde, random),
    };
    let triggered = matches!(mode, Mode::Bursts(_) | Mode::Counter | Mode::InPlace);
    let masked = mode == Mode::Masks || triggered && sonde.offers("--live-masks", "") && random.once_in(4);
    if masked {
        mask(&mut options, random);
    }
    // Reading what was recorded is the slow part of exhaustive runs; here only the program's own behaviour is compared.
    if sonde.offers("--no-ranges", "") && !masked && !random.once_in(8) {
        options.push("--no-ranges".into());
    }
    if sonde.offers("--probe-memory", "") && random.once_in(3) {
        options.extend(fixed(&["--probe-memory", random.pick(&["32M", "64M", "1G"])]));
    }
    if mode == Mode::Follow {
        // A trace is of one process, so that these two do not go together.
        options.push("--follow".into());
    } else if sonde.offers("-o", "") && random.once_in(4) {
        options.extend(fixed(&["-o", "profile.sonde"]));
    }
    options
}

fn bursts(trigger: &str, sonde: &Sonde, random: &mut Random) -> Vec<String> {
    let mut options = fixed(&["--policy", "bursts", "--trigger", trigger]);
    if sonde.offers("--rate", "") && random.once_in(4) {
        options.extend(fixed(&["--rate", random.pick(&["0.1%", "1%", "5%", "30%"])]));
    } else {
        options.extend(["--period".into(), format!("{}us", random.log_uniform(200, 10_000))]);
        options.extend(["--burst".into(), random.log_uniform(1, 200_000).to_string()]);
    }
    if sonde.offers("--random-gap", "") {
        options.extend(fixed(&["--random-gap", random.pick(&["0%", "25%", "50%", "100%"])]));
    }
    options.extend(record(sonde, random));
    options
}

fn in_place(sonde: &Sonde, random: &mut Random) -> Vec<String> {
    // Each burst takes tens of microseconds to begin, and some programs pass millions of checks.
    let mut options = counter(sonde, (3_000, 1_000_000), random);
    options.push("--in-place".into());
    options
}

fn counter(sonde: &Sonde, between: (u64, u64), random: &mut Random) -> Vec<String> {
    // Few enough between bursts that every program, however short, comes to one.
    let checks = random.log_uniform(between.0, between.1);
    let recorded = random.log_uniform(1, 10_000);
    let mut options = fixed(&["--policy", "counter", "--burst"]);
    options.push(format!("{checks}:{recorded}"));
    if sonde.offers("--checks", "") && random.once_in(2) {
        let schemes = ["EL", "EC", "EN", "L4", "L10", "LN", "EC+L4"];
        options.extend(fixed(&["--checks", random.pick(&schemes)]));
    }
    options.extend(record(sonde, random));
    options
}

/// Values of loads by slots that change what is recorded far more often than they should, and unmask everything, too.
fn mask(options: &mut Vec<String>, random: &mut Random) {
    if let Some(at) = options.iter().position(|o| o == "--record") {
        options.drain(at..at + 2);
    }
    options.extend(fixed(&["--what", "values", "--value-method", "slots", "--live-masks"]));
    options.extend(["--mask-step".into(), random.log_uniform(1, 100_000).to_string()]);
    options.extend(["--value-resample".into(), random.log_uniform(10_000, 10_000_000).to_string()]);
}

fn record(sonde: &Sonde, random: &mut Random) -> Vec<String> {
    let known: Vec<&str> = RECORDS.into_iter().filter(|r| sonde.offers("--record", r)).collect();
    if known.is_empty() { Vec::new() } else { fixed(&["--record", random.pick(&known)]) }
}

fn fixed(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const HELP: &str = "  --policy <P> bursts|always|counter\n  --trigger <T> auto|stops|perf|timer\n  --record <R> blocks|addresses|values\n  --period <D>\n  --burst <N>\n  --rate <R>\n  --random-gap <G>\n  --follow\n  --in-place\n  --live-masks\n  --mask-step <N>\n  --what <W>\n  --value-method <M>\n  --value-resample <N>\n";

    #[test]
    fn all_modes_of_a_full_sonde_and_none_of_an_empty_one() {
        let full = Sonde::described(Path::new("sonde"), Some(HELP), None);
        let names: Vec<String> = modes(&full).iter().map(Mode::to_string).collect();
        assert_eq!(
            names,
            [
                "bursts/stops",
                "bursts/perf",
                "bursts/timer",
                "bursts/follow",
                "always/blocks",
                "always/addresses",
                "always/values",
                "always/masks",
                "counter",
                "counter/in place"
            ]
        );
        assert!(modes(&Sonde::described(Path::new("sonde"), None, None)).is_empty());
    }

    #[test]
    fn drawn_options_are_all_accepted() {
        let full = Sonde::described(Path::new("sonde"), Some(HELP), None);
        let mut random = Random::new(3);
        for mode in modes(&full) {
            for _ in 0..50 {
                let options = draw(mode, &full, &mut random);
                assert!(
                    options.iter().filter(|o| o.starts_with('-')).all(|o| full.accepts(o, "")),
                    "{options:?}"
                );
            }
        }
    }
}
