//! What all analyses found, in places.

use sonde_calls::CallProfile;
use sonde_streams::StreamsProfile;
use sonde_summary::Summary;

/// What was found in the stream of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The trees, and what places are.
    pub summary: Summary,
    /// Calls.
    pub calls: Option<CallProfile>,
    /// Hot data streams.
    pub streams: Option<StreamsProfile>,
}
