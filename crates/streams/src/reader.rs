//! From the event stream to hot data streams.

use crate::config::{StreamsConfig, StreamsError};
use crate::found::Found;
use crate::profile::{Lost, StreamsProfile};
use crate::sequitur::{Sequence, Sequitur};
use crate::symbols::Symbols;
use sonde_event::{Access, Begin, End, Reader, Ref, Run};
use std::collections::HashMap;

/// Builds the profile while reading.
///
/// Each thread is a sequence of one grammar, so that a stream is found whichever threads repeat it; begin and end of a
/// burst break a sequence. When the grammar or the table of references is full, the hot streams of this part of the trace
/// are taken out and both are begun anew, which is counted in [`Lost`]: a stream is then found in each part by itself, and
/// not where it spans two.
#[derive(Debug)]
pub struct StreamsReader {
    config: StreamsConfig,
    sequitur: Sequitur,
    symbols: Symbols,
    sequences: HashMap<i32, Sequence>,
    /// The thread that was seen last.
    current: Option<(i32, Sequence)>,
    /// Symbols of the run being read that are not in the grammar yet.
    waiting: Vec<u32>,
    found: Found,
    bursts: u64,
    lost: Lost,
}

impl StreamsReader {
    /// A reader with these settings.
    ///
    /// # Errors
    /// When they make no sense.
    pub fn new(config: StreamsConfig) -> Result<StreamsReader, StreamsError> {
        config.check()?;
        Ok(StreamsReader {
            config,
            sequitur: Sequitur::new(),
            symbols: Symbols::default(),
            sequences: HashMap::new(),
            current: None,
            waiting: Vec::new(),
            found: Found::default(),
            bursts: 0,
            lost: Lost::default(),
        })
    }

    /// Bytes held; more by the size of a grammar while a part is analysed.
    pub fn memory_bytes(&self) -> usize {
        self.sequitur.memory_bytes()
            + self.symbols.memory_bytes()
            + self.found.memory_bytes(&self.config)
            + self.sequences.capacity() * size_of::<(i32, Sequence)>()
    }

    /// The profile. References are what they were at run time; see [`StreamsProfile::relocate`].
    pub fn finish(mut self) -> StreamsProfile {
        self.end_part();
        let mut profile = self.found.finish(&self.config);
        profile.bursts = self.bursts;
        self.lost.streams += profile.lost.streams;
        self.lost.heat += profile.lost.heat;
        profile.lost = self.lost;
        profile
    }

    /// Notes one reference of a thread, as [`Reader::run`] does for each in the stream: for traces from elsewhere.
    pub fn reference(&mut self, tid: i32, r: &Ref) {
        let sequence = self.sequence(tid);
        self.note(sequence, r);
        self.hand_over(sequence);
        self.make_room();
    }

    fn sequence(&mut self, tid: i32) -> Sequence {
        if let Some((last, sequence)) = self.current
            && last == tid
        {
            return sequence;
        }
        let sequence = *self.sequences.entry(tid).or_insert_with(|| self.sequitur.sequence());
        self.current = Some((tid, sequence));
        sequence
    }

    #[inline(always)]
    fn note(&mut self, sequence: Sequence, r: &Ref) {
        if self.config.only.is_some_and(|only| only != r.access) || r.count == 0 {
            return;
        }
        let Some(address) = r.address else {
            self.lost.without_address += 1;
            return;
        };
        if r.conditional {
            self.lost.conditional += 1;
            return;
        }
        self.lost.repetitions += u64::from(r.count > 1);
        let address = address >> self.config.address_bits << self.config.address_bits;
        let pointer = if r.access == Access::Load && r.size == 8 { r.value } else { None };
        // In a repetition the next reference is known: comparing saves the search.
        let expected = if self.waiting.is_empty() { self.sequitur.expected(sequence) } else { None };
        match expected {
            Some(symbol) if self.symbols.is(symbol, r.pc, address) => {
                self.symbols.made(symbol, pointer);
                self.sequitur.push(sequence, symbol);
            }
            _ => {
                let symbol = self.symbols.number(r.pc, address, r.size);
                self.symbols.made(symbol, pointer);
                self.waiting.push(symbol);
            }
        }
    }

    /// Gives the grammar what waits for it.
    #[inline(always)]
    fn hand_over(&mut self, sequence: Sequence) {
        if !self.waiting.is_empty() {
            self.sequitur.extend(sequence, &self.waiting);
            self.waiting.clear();
        }
    }

    /// Begins anew where a limit is reached.
    #[inline]
    fn make_room(&mut self) {
        let full_table = self.symbols.len() >= self.config.max_references;
        if full_table || self.sequitur.size() >= self.config.max_grammar {
            self.lost.table_restarts += u64::from(full_table);
            self.lost.grammar_restarts += u64::from(!full_table);
            self.end_part();
        }
    }

    #[cold]
    fn end_part(&mut self) {
        let grammar = self.sequitur.grammar();
        self.found.take(&self.config, &grammar, &self.symbols);
        self.sequitur.clear();
        self.symbols.clear();
        self.sequences.clear();
        self.current = None;
    }

    fn break_off(&mut self, tid: i32) {
        if let Some(sequence) = self.sequences.get(&tid) {
            self.sequitur.break_off(*sequence);
        }
    }
}

impl Reader for StreamsReader {
    fn begin(&mut self, begin: &Begin) {
        self.bursts += 1;
        self.break_off(begin.tid);
    }

    fn end(&mut self, end: &End) {
        self.break_off(end.tid);
    }

    fn run(&mut self, run: &Run<'_>) {
        if run.path.refs == 0 {
            return;
        }
        let sequence = self.sequence(run.tid);
        for r in run.references() {
            self.note(sequence, &r);
        }
        self.hand_over(sequence);
        self.make_room();
    }

    fn gap(&mut self) {
        self.lost.gaps += 1;
        for sequence in self.sequences.values() {
            self.sequitur.break_off(*sequence);
        }
    }
}
