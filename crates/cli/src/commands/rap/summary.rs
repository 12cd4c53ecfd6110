//! Everything that a report says, taken out of the tree once: the text and the JSON report show the same facts.

use serde::Serialize;
use sonde_numbers::{Counts, Notation};
use sonde_rap::exact::SortedCounts;
use sonde_rap::{Key, Snapshot, Tree};

use super::keys::CliKey;
use super::show;

/// Shares of all events for which the report says how few ranges hold them.
const COVERED: [f64; 3] = [0.5, 0.8, 0.95];

/// The facts of one run. Field names are the JSON keys of `docs/rap-json.md`: they are stable.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// All events, weights added up.
    pub events: u64,
    /// The error that was asked for, as a share of events.
    pub eps: f64,
    /// The error that holds.
    pub eps_effective: f64,
    /// Sub-ranges per split.
    pub branching: u32,
    /// Ratio between successive merges.
    pub merge_ratio: f64,
    /// Ranges in the tree.
    pub nodes: usize,
    /// The most ranges that the tree had.
    pub nodes_max: usize,
    /// Bytes held by tree and buffer.
    pub memory_bytes: usize,
    /// What a number was taken for.
    #[serde(rename = "type")]
    pub key_type: String,
    /// Dimensions of a key.
    pub dimensions: usize,
    /// Numbers read: lines or words, whatever their weight.
    pub numbers: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Lines left out because they could not be read.
    pub skipped: u64,
    /// The first of them.
    pub first_skipped: Option<String>,
    /// Lines without content.
    pub empty_lines: u64,
    /// Share from which a range is hot.
    pub hot_threshold: f64,
    /// How few ranges hold half, most and nearly all events.
    pub coverage: Vec<Coverage>,
    /// The hot ranges, outer before inner.
    pub hot: Vec<Hot>,
}

/// How few ranges hold a share of all events.
#[derive(Debug, Serialize)]
pub struct Coverage {
    /// The share.
    pub share: f64,
    /// The number of ranges.
    pub ranges: usize,
    /// The widest of them has 2 to this power values.
    pub log2_width: u32,
}

/// The corner of a range: a string, or one per dimension.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Corner {
    /// One dimension.
    One(String),
    /// Several.
    Many(Vec<String>),
}

/// A hot range.
#[derive(Debug, Serialize)]
pub struct Hot {
    /// Lower end, hexadecimal.
    pub lo: Corner,
    /// Upper end, included, hexadecimal.
    pub hi: Corner,
    /// Events counted here, those of hot sub-ranges left out.
    pub own: u64,
    /// Events counted here and below.
    pub total: u64,
    /// `own` as a share of all events.
    pub own_share: f64,
    /// `total` as a share of all events.
    pub total_share: f64,
    /// The true number of events in the range is at least this,
    pub lower: u64,
    /// and at most this.
    pub upper: u64,
    /// The range as the text report shows it.
    pub range: String,
    /// How many hot ranges are around it.
    pub depth: usize,
    /// With `--exact`: the truth.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
}

/// What an exact count says about a hot range.
#[derive(Debug, Serialize)]
pub struct Truth {
    /// The true number of events in the range.
    pub exact_total: u64,
    /// What the estimate misses, as a share of all events.
    pub error_share: f64,
}

/// `part` of `whole`; nothing of nothing is nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn corner<K: Key>(key: K) -> Corner {
    let mut sides = show::corner(key);
    if sides.len() == 1 { Corner::One(sides.remove(0)) } else { Corner::Many(sides) }
}

/// What was counted, ready to be summed up.
pub struct Counted<'a, K: Key> {
    /// The tree, for its size.
    pub tree: &'a Tree<K>,
    /// Its nodes.
    pub snapshot: &'a Snapshot<K>,
    /// Exact counts of the same stream, if asked for.
    pub exact: Option<SortedCounts<K>>,
    /// What the reader met.
    pub counts: Counts,
    /// How numbers were written.
    pub notation: Notation,
    /// Share from which a range is hot.
    pub threshold: f64,
}

impl<K: CliKey> Counted<'_, K> {
    /// Takes out all facts.
    pub fn summary(&self) -> Summary {
        let config = self.tree.config();
        Summary {
            events: self.snapshot.events,
            eps: config.eps,
            eps_effective: self.snapshot.eps_effective,
            branching: config.branching.factor(),
            merge_ratio: config.merge_ratio,
            nodes: self.tree.nodes(),
            nodes_max: self.tree.nodes_max(),
            memory_bytes: self.tree.memory_bytes(),
            key_type: self.key_type(),
            dimensions: <K as Key>::DIMS,
            numbers: self.counts.numbers,
            bytes: self.counts.bytes,
            skipped: self.counts.bad_lines,
            first_skipped: self.counts.first_bad.as_ref().map(ToString::to_string),
            empty_lines: self.counts.empty_lines,
            hot_threshold: self.threshold,
            coverage: self.coverage(),
            hot: self.hot(),
        }
    }

    fn key_type(&self) -> String {
        match self.notation {
            Notation::Number => format!("u{}", K::DIM_BITS),
            Notation::Ipv4 => "ipv4".into(),
            Notation::Ipv6 => "ipv6".into(),
        }
    }

    fn coverage(&self) -> Vec<Coverage> {
        let one = |share| {
            let chosen = self.snapshot.covering(share);
            let widest = chosen.iter().map(|covering| covering.range.free_bits()).max();
            Coverage { share, ranges: chosen.len(), log2_width: widest.unwrap_or(0) }
        };
        COVERED.map(one).into()
    }

    fn hot(&self) -> Vec<Hot> {
        let events = self.snapshot.events;
        let hot = self.snapshot.hot(self.threshold);
        let one = |found: &sonde_rap::HotRange<K>| Hot {
            lo: corner(found.range.lo),
            hi: corner(found.range.hi),
            own: found.own,
            total: found.total,
            own_share: share(found.own, events),
            total_share: share(found.total, events),
            lower: found.lower,
            upper: found.upper,
            range: show::range(&found.range, self.notation),
            depth: found.depth,
            truth: self.exact.as_ref().map(|exact| {
                let exact_total = exact.count(found.range.lo, found.range.hi);
                Truth { exact_total, error_share: share(exact_total - found.total.min(exact_total), events) }
            }),
        };
        hot.iter().map(one).collect()
    }
}
