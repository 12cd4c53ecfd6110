//! The streams found so far, over all parts of a trace.

use crate::config::StreamsConfig;
use crate::grammar::Grammar;
use crate::hot::{Analysis, Lengths, cut};
use crate::profile::{Stream, StreamsProfile};
use crate::shape::{Shape, classify};
use crate::symbols::{Reference, Symbols};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Pc and address.
type Key = Box<[(u64, u64)]>;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    frequency: u64,
    /// Upper bound, in the parts where it was found.
    at_most: u64,
    /// References of those parts.
    references: u64,
    shape: Shape,
    /// Number of the last part it was found in, from 1.
    part: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Found {
    streams: HashMap<Key, Entry>,
    references: u64,
    parts: u64,
    lowest: u64,
    highest: u64,
    dropped: u64,
    dropped_heat: u64,
}

impl Found {
    /// Takes the hot streams of one part of the trace.
    pub(crate) fn take(&mut self, config: &StreamsConfig, grammar: &Grammar, symbols: &Symbols) {
        let lengths = Lengths { min: u64::from(config.min_length), max: u64::from(config.max_length) };
        let grammar = cut(grammar, lengths);
        let analysis = Analysis::new(&grammar, lengths);
        let references = analysis.references();
        if references == 0 {
            return;
        }
        let heat = analysis.search(config.coverage);
        self.parts += 1;
        self.references += references;
        self.lowest = if self.lowest == 0 { heat.threshold } else { self.lowest.min(heat.threshold) };
        self.highest = self.highest.max(heat.threshold);
        let mut word = Vec::new();
        for rule in &heat.hot {
            word.clear();
            grammar.expand(grammar.body(*rule as usize), &mut |s| word.extend(s));
            self.add(&word, heat.cold_uses[*rule as usize], references, symbols);
            if self.streams.len() >= 2 * config.max_streams as usize {
                self.prune(config.max_streams as usize);
            }
        }
    }

    fn add(&mut self, word: &[u32], frequency: u64, references: u64, symbols: &Symbols) {
        let made: Vec<Reference> = word.iter().map(|s| *symbols.get(*s)).collect();
        let key: Key = made.iter().map(|r| (r.pc, r.address)).collect();
        let part = self.parts;
        let entry = self.streams.entry(key).or_default();
        entry.frequency += frequency;
        if entry.part != part {
            entry.part = part;
            entry.references += references;
            entry.at_most += rarest(word, symbols);
            // The shape is that of the addresses, which are the same each time; only links depend on values.
            if entry.shape == Shape::Irregular {
                entry.shape = classify(&made);
            }
        }
    }

    /// Keeps the hottest; of equal ones the first by their references, so that the result does not depend on hashing.
    fn prune(&mut self, keep: usize) {
        let mut all: Vec<(Key, Entry)> = self.streams.drain().collect();
        all.sort_by(|a, b| (Reverse(heat(a)), &a.0).cmp(&(Reverse(heat(b)), &b.0)));
        for cold in all.split_off(all.len().min(keep)) {
            self.dropped += 1;
            self.dropped_heat += heat(&cold);
        }
        self.streams.extend(all);
    }

    pub(crate) fn memory_bytes(&self, config: &StreamsConfig) -> usize {
        self.streams.capacity() * size_of::<(Key, Entry)>()
            + self.streams.len() * config.max_length as usize * size_of::<(u64, u64)>()
    }

    pub(crate) fn finish(self, config: &StreamsConfig) -> StreamsProfile {
        let mut profile = StreamsProfile {
            references: self.references,
            parts: self.parts,
            lowest_threshold: self.lowest,
            highest_threshold: self.highest,
            min_length: config.min_length,
            max_length: config.max_length,
            max_streams: config.max_streams,
            ..StreamsProfile::default()
        };
        profile.lost.streams = self.dropped;
        profile.lost.heat = self.dropped_heat;
        profile.streams = self
            .streams
            .into_iter()
            .map(|(key, entry)| Stream {
                pcs: key.iter().map(|r| r.0).collect(),
                addresses: key.iter().map(|r| r.1).collect(),
                frequency: entry.frequency,
                at_most: entry.at_most + (self.references - entry.references) / key.len().max(1) as u64,
                shape: entry.shape,
            })
            .collect();
        profile.arrange();
        profile
    }
}

fn heat((key, entry): &(Key, Entry)) -> u64 {
    key.len() as u64 * entry.frequency
}

/// How often a stream can have occurred without overlap: each occurrence needs all of its references.
fn rarest(word: &[u32], symbols: &Symbols) -> u64 {
    let mut sorted = word.to_vec();
    sorted.sort_unstable();
    let of = |same: &[u32]| symbols.get(same[0]).count / same.len() as u64;
    sorted.chunk_by(|a, b| a == b).map(of).min().unwrap_or(0)
}
