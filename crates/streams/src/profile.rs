//! The result: hot data streams as plain data that can be merged, named and stored.

use crate::shape::Shape;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A sequence of references that the program repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// The instructions, in order.
    pub pcs: Vec<u64>,
    /// The address of each.
    pub addresses: Vec<u64>,
    /// Occurrences that do not overlap, in the derivation: a lower bound of the true number.
    pub frequency: u64,
    /// An upper bound of it: its rarest reference did not occur more often. For parts of the trace where the stream was
    /// not found, as many as would fit there.
    pub at_most: u64,
    /// What the addresses look like.
    pub shape: Shape,
}

impl Stream {
    /// References in it.
    pub fn length(&self) -> u64 {
        self.pcs.len() as u64
    }

    /// Length times frequency: the references that it accounts for.
    pub fn heat(&self) -> u64 {
        self.length().saturating_mul(self.frequency)
    }

    /// What it is compared by.
    pub fn signature(&self) -> &[u64] {
        &self.pcs
    }
}

/// What is missing from a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// References left out because their address is not known.
    pub without_address: u64,
    /// References left out because they may not have happened (masked forms).
    pub conditional: u64,
    /// Repeated string instructions: each stands for one reference, whatever its count.
    pub repetitions: u64,
    /// Times that the grammar was full and begun anew.
    pub grammar_restarts: u64,
    /// Times that the table of references was full, and it and the grammar were begun anew.
    pub table_restarts: u64,
    /// Streams that were found and dropped, since only so many are kept: the ones of least heat.
    pub streams: u64,
    /// Their heat.
    pub heat: u64,
    /// Holes in the stream of events.
    pub gaps: u64,
}

/// The hot data streams of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamsProfile {
    /// The streams, hottest first.
    pub streams: Vec<Stream>,
    /// References looked at. Heat is a share of these: of references, not of time.
    pub references: u64,
    /// Bursts looked at.
    pub bursts: u64,
    /// Parts into which the trace was divided by restarts; each has its own threshold. At least 1 if there were
    /// references.
    pub parts: u64,
    /// Lowest threshold of heat used.
    pub lowest_threshold: u64,
    /// Highest threshold of heat used.
    pub highest_threshold: u64,
    /// Shortest stream looked for.
    pub min_length: u32,
    /// Longest stream looked for.
    pub max_length: u32,
    /// Most streams kept.
    pub max_streams: u32,
    /// What is missing.
    pub lost: Lost,
}

impl StreamsProfile {
    /// References in hot streams. No reference is counted twice.
    pub fn covered(&self) -> u64 {
        self.streams.iter().map(Stream::heat).fold(0, u64::saturating_add)
    }

    /// The share of references in the streams that are here, 0 to 1.
    pub fn coverage(&self) -> f64 {
        self.covered() as f64 / self.references.max(1) as f64
    }

    /// The same with the streams that were found but dropped, since only so many are kept: what the thresholds reached.
    pub fn coverage_found(&self) -> f64 {
        self.covered().saturating_add(self.lost.heat) as f64 / self.references.max(1) as f64
    }

    /// Replaces every pc and address by what `place` gives. Streams that become equal are united; `at_most` then is a
    /// bound only if `place` keeps different references apart.
    pub fn relocate(&mut self, place: &mut dyn FnMut(u64) -> u64) {
        for stream in &mut self.streams {
            for address in stream.pcs.iter_mut().chain(&mut stream.addresses) {
                *address = place(*address);
            }
        }
        self.arrange();
    }

    /// Adds another run's profile. Bounds add up: a stream that the other does not have may still have occurred there as
    /// often as it fits.
    pub fn merge(&mut self, other: &StreamsProfile) {
        let fits = |s: &Stream, references: u64| references / s.length().max(1);
        let key = |s: &Stream| (s.pcs.clone(), s.addresses.clone());
        let mut theirs: BTreeMap<_, &Stream> = other.streams.iter().map(|s| (key(s), s)).collect();
        for mine in &mut self.streams {
            match theirs.remove(&key(mine)) {
                Some(same) => unite(mine, same),
                None => mine.at_most = mine.at_most.saturating_add(fits(mine, other.references)),
            }
        }
        for stream in theirs.into_values() {
            let at_most = stream.at_most.saturating_add(fits(stream, self.references));
            self.streams.push(Stream { at_most, ..stream.clone() });
        }
        self.add_totals(other);
        self.arrange();
    }

    fn add_totals(&mut self, other: &StreamsProfile) {
        let lowest = [self.lowest_threshold, other.lowest_threshold].into_iter().filter(|t| *t > 0).min();
        self.lowest_threshold = lowest.unwrap_or(0);
        self.highest_threshold = self.highest_threshold.max(other.highest_threshold);
        let shortest = [self.min_length, other.min_length].into_iter().filter(|l| *l > 0).min();
        self.min_length = shortest.unwrap_or(0);
        self.max_length = self.max_length.max(other.max_length);
        self.max_streams = self.max_streams.max(other.max_streams);
        self.references = self.references.saturating_add(other.references);
        self.bursts = self.bursts.saturating_add(other.bursts);
        self.parts = self.parts.saturating_add(other.parts);
        sonde_event::add_counts!(Lost {
            without_address, conditional, repetitions, grammar_restarts, table_restarts, streams, heat, gaps
        }: &mut self.lost, &other.lost);
    }

    /// Sorts, unites equal streams, and drops the coldest beyond the limit.
    pub(crate) fn arrange(&mut self) {
        self.streams.sort_by(|a, b| (&a.pcs, &a.addresses).cmp(&(&b.pcs, &b.addresses)));
        self.streams.dedup_by(|next, kept| {
            let same = next.pcs == kept.pcs && next.addresses == kept.addresses;
            if same {
                unite(kept, next);
            }
            same
        });
        self.streams.sort_by(|a, b| order(a).cmp(&order(b)));
        for stream in self.streams.split_off(self.streams.len().min(self.max_streams as usize)) {
            self.lost.streams += 1;
            self.lost.heat = self.lost.heat.saturating_add(stream.heat());
        }
    }

    /// What must hold of every profile.
    ///
    /// # Errors
    /// Says what does not.
    pub fn check(&self) -> Result<(), String> {
        if self.streams.len() > self.max_streams as usize {
            return Err(format!("{} streams, at most {} are kept", self.streams.len(), self.max_streams));
        }
        let mut heat = self.lost.heat;
        for (i, stream) in self.streams.iter().enumerate() {
            let length = stream.length();
            if stream.addresses.len() != stream.pcs.len() {
                return Err(format!("stream {i}: {length} pcs, {} addresses", stream.addresses.len()));
            }
            if !(u64::from(self.min_length)..=u64::from(self.max_length)).contains(&length) {
                return Err(format!(
                    "stream {i}: length {length} is not {} to {}",
                    self.min_length, self.max_length
                ));
            }
            if stream.frequency == 0 || stream.frequency > stream.at_most {
                return Err(format!(
                    "stream {i}: occurs {} times, at most {}",
                    stream.frequency, stream.at_most
                ));
            }
            heat =
                heat.checked_add(stream.heat()).ok_or_else(|| format!("stream {i}: its heat overflows"))?;
        }
        if heat > self.references {
            return Err(format!("streams account for {heat} of {} references", self.references));
        }
        match self.streams.windows(2).position(|w| order(&w[0]) >= order(&w[1])) {
            Some(i) => Err(format!("streams {i} and {} are out of order or equal", i + 1)),
            None => Ok(()),
        }
    }
}

fn order(s: &Stream) -> (Reverse<u64>, &[u64], &[u64]) {
    (Reverse(s.heat()), &s.pcs, &s.addresses)
}

/// Counts an equal stream. Of two shapes the more telling one stays: values may have been recorded only once.
fn unite(kept: &mut Stream, other: &Stream) {
    kept.frequency = kept.frequency.saturating_add(other.frequency);
    kept.at_most = kept.at_most.saturating_add(other.at_most);
    kept.shape = kept.shape.max(other.shape);
}
