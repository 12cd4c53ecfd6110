//! How a run was recorded and how it went: what every figure of a profile has to be read with.

use crate::timeline::Timeline;
use sonde_event::trace::Machine;
use std::collections::BTreeMap;

/// Numbers by name. Names are those of the JSON of `sonde run` (docs/run-json.md).
pub type Named = BTreeMap<String, u64>;

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// It is not known.
    #[default]
    Unknown,
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Version of Sonde that recorded it.
    pub recorder: String,
    /// The program and its arguments; see [`Run::set_command`].
    pub command: Vec<String>,
    /// Arguments left out of `command`.
    pub command_left_out: u64,
    /// The file that was run.
    pub path: String,
    /// When it was recorded: `bursts`, `always` or `counter`.
    pub policy: String,
    /// What was recorded: `blocks`, `addresses` or `values`.
    pub record: String,
    /// What began bursts, if something did.
    pub trigger: Option<String>,
    /// Why it was this trigger.
    pub trigger_note: Option<String>,
    /// How the probe got in.
    pub loader: String,
    /// CPU time between bursts, 0 where none was set.
    pub period_ns: u64,
    /// Length of a burst in checks, 0 where none was set.
    pub burst_checks: u64,
    /// Checks between bursts (policy `counter`), 0 where none was set.
    pub gap_checks: u64,
    /// Share of the CPU time that was to be spent in bursts, where one was asked for.
    pub rate: Option<f64>,
    /// What profiling was allowed to cost, as a share of the program's own CPU time, where that was limited.
    pub max_overhead: Option<f64>,
    /// Mean CPU time between bursts, as it was decided to keep within that.
    pub mean_period_ns: Option<u64>,
    /// Bursts that `period_ns` asks for beyond those.
    pub bursts_left_out: u64,
    /// Share by which the period varied at random.
    pub random_gap: f64,
    /// Seed of the random gaps.
    pub seed: u64,
    /// Milliseconds since 1970 at the start.
    pub started_ms: u64,
    /// Where it was recorded.
    pub machine: Machine,
    /// CPU time of the program.
    pub cpu_ns: u64,
    /// The part of it in the kernel, where it was measured.
    pub system_ns: Option<u64>,
    /// CPU time of Sonde itself, where it was measured.
    pub sonde_ns: Option<u64>,
    /// Wall time.
    pub wall_ns: u64,
    /// How the program ended.
    pub ending: Ending,
    /// Bursts.
    pub bursts: u64,
    /// CPU time in bursts.
    pub burst_ns: u64,
    /// The program that it replaced itself by, if that was seen.
    pub became: Option<String>,
    /// The first error met in the stream, if any.
    pub error: Option<String>,
    /// Counters that are not 0.
    pub counters: Named,
    /// Why bursts ended.
    pub burst_ends: Named,
    /// What was not seen.
    pub losses: Named,
    /// How it went over time.
    pub timeline: Timeline,
}

impl Run {
    /// Most bytes of [`Run::command`]: a command line can have megabytes.
    pub const COMMAND_BYTES: usize = 16 << 10;

    /// Takes the command line, as far as there is room; what is left out is counted.
    pub fn set_command<S: Into<String>>(&mut self, words: impl IntoIterator<Item = S>) {
        self.command.clear();
        self.command_left_out = 0;
        let mut room = Run::COMMAND_BYTES;
        for word in words {
            let word: String = word.into();
            // The empty ones take room as well.
            match room.checked_sub(word.len() + 1).filter(|_| self.command_left_out == 0) {
                Some(left) => {
                    room = left;
                    self.command.push(word);
                }
                None => self.command_left_out += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_line_is_cut_and_the_rest_counted() {
        let mut run = Run::default();
        run.set_command((0..10_000).map(|i| format!("file-{i}")));
        assert!(run.command.iter().map(String::len).sum::<usize>() <= Run::COMMAND_BYTES);
        assert_eq!(run.command.len() as u64 + run.command_left_out, 10_000);
        assert_eq!(run.command[1], "file-1");
        run.set_command(["a", "b"]);
        assert_eq!((run.command.len(), run.command_left_out), (2, 0));
    }
}
