//! What the counts of a summary are counts of.

/// The unit of a tree's weights.
///
/// Bursts are taken after equal CPU time, but end after a number of checks: adding up their events would favour code
/// with many instructions between checks. So each burst is given the CPU time that it stands for, divided among its
/// events in proportion to the instructions it recorded (docs/design/weights.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Events as they were recorded: exhaustive and counter mode, and traces.
    Events,
    /// Picoseconds of CPU time: an event of a burst weighs the burst's time divided by its instructions.
    Picoseconds,
}

impl Unit {
    /// All units, in the order of their codes.
    pub const ALL: [Unit; 2] = [Unit::Events, Unit::Picoseconds];

    /// The unit in a word.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Events => "events",
            Unit::Picoseconds => "picoseconds",
        }
    }
}
