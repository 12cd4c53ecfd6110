//! What all analyses found, in places.

use sonde_calls::CallProfile;
use sonde_loops::LoopsProfile;
use sonde_starts::StartsProfile;
use sonde_streams::StreamsProfile;
use sonde_summary::Summary;
use sonde_values::ValueProfile;

/// What was found in the stream of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The trees, and what places are.
    pub summary: Summary,
    /// Where bursts began, if there were any.
    pub starts: Option<StartsProfile>,
    /// Calls.
    pub calls: Option<CallProfile>,
    /// Loops.
    pub loops: Option<LoopsProfile>,
    /// Values of loads.
    pub values: Option<ValueProfile>,
    /// Hot data streams.
    pub streams: Option<StreamsProfile>,
}
