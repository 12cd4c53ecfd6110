//! Comparing profiles (paper 4 section 5.2): addresses change from run to run, so two streams are the same if their
//! access signature is, the pcs in order.

use crate::profile::StreamsProfile;
use std::collections::HashMap;

/// What a stream's heat is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Of all hot streams of its profile: a profile overlaps itself entirely. "The minimum of its contribution to P and
    /// Q" is read so.
    #[default]
    OfProfile,
    /// Of all references of its trace: a profile overlaps itself by its coverage.
    OfTrace,
}

/// Shares by signature. Streams of one signature at different addresses are added up.
fn shares(profile: &StreamsProfile, share: Share) -> HashMap<&[u64], f64> {
    let whole = match share {
        Share::OfProfile => profile.covered(),
        Share::OfTrace => profile.references,
    };
    let mut shares: HashMap<&[u64], f64> = HashMap::new();
    for stream in &profile.streams {
        *shares.entry(stream.signature()).or_default() += stream.heat() as f64 / whole.max(1) as f64;
    }
    shares
}

/// The overlap of two profiles, 0 to 1: the sum over all signatures of the smaller share (equation 5).
pub fn overlap(p: &StreamsProfile, q: &StreamsProfile, share: Share) -> f64 {
    let (p, q) = (shares(p, share), shares(q, share));
    let mut minima: Vec<f64> = p.iter().map(|(s, p)| p.min(q.get(s).copied().unwrap_or(0.0))).collect();
    // In a fixed order, so that the sum is the same each time.
    minima.sort_by(f64::total_cmp);
    minima.into_iter().sum()
}
