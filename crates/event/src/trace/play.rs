//! From a trace to readers, as if it were live.

use super::read::{Chunk, Item, TraceError, TraceReader};
use super::text::{End, Meta};
use crate::decode::{Decoder, Lost};
use crate::error::StreamError;
use crate::maps::Mappings;
use crate::reader::Reader;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use sonde_x64::plan::Detail;
use std::collections::BTreeMap;
use std::io::Read;
use thiserror::Error;

/// A trace that cannot be replayed.
#[derive(Debug, Error)]
pub enum PlayError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The chunk that says how to read the log is missing.
    #[error(
        "the trace does not say what was recorded (its first chunk is damaged), so its log cannot be read"
    )]
    NoMeta,
    /// Recorded with a detail that this version does not know.
    #[error("the log was recorded with detail {0:?}, which this Sonde does not know; a newer one is needed")]
    Detail(String),
}

/// Most processes in one trace.
const MAX_STREAMS: usize = 1 << 12;

/// Feeds chunks through decoders to a reader.
pub struct Player {
    detail: Detail,
    decoders: BTreeMap<u32, Decoder>,
    errors: u64,
    first_error: Option<StreamError>,
    left_out: u64,
}

impl Player {
    /// For a log with this detail.
    pub fn new(detail: Detail) -> Player {
        Player { detail, decoders: BTreeMap::new(), errors: 0, first_error: None, left_out: 0 }
    }

    fn decoder(&mut self, stream: u32) -> Option<&mut Decoder> {
        if self.decoders.len() >= MAX_STREAMS && !self.decoders.contains_key(&stream) {
            self.left_out += 1;
            return None;
        }
        Some(self.decoders.entry(stream).or_insert_with(|| Decoder::new(self.detail)))
    }

    fn note(&mut self, result: Result<(), StreamError>) {
        if let Err(error) = result {
            self.errors += 1;
            self.first_error.get_or_insert(error);
        }
    }

    /// Takes a chunk of descriptions.
    pub fn describe(&mut self, stream: u32, mut words: &[u64]) {
        while let Some(head) = words.first_chunk::<HEAD_WORDS>() {
            let len = Head::decode(head).bytes as usize / 8;
            if len < HEAD_WORDS || len > words.len() {
                break;
            }
            let (this, rest) = words.split_at(len);
            let Some(decoder) = self.decoder(stream) else { return };
            let result = decoder.describe(this);
            self.note(result);
            words = rest;
        }
        if !words.is_empty() {
            let index = self.decoder(stream).map_or(0, |d| d.catalog().superblocks().len());
            self.note(Err(StreamError::BadDescription { index, what: "its length is impossible" }));
        }
    }

    /// Takes a chunk of log.
    pub fn log<R: Reader + ?Sized>(&mut self, stream: u32, tid: i32, words: &[u64], reader: &mut R) {
        let Some(decoder) = self.decoder(stream) else { return };
        let result = decoder.log(tid, words, reader);
        if result.is_err() {
            reader.gap();
        }
        self.note(result);
    }
}

/// What a replay met besides the stream.
pub struct Replayed {
    /// What was recorded and how.
    pub meta: Meta,
    /// Totals; missing if the file was cut off.
    pub end: Option<End>,
    /// Mappings of the program.
    pub mappings: Mappings,
    /// Decoders by process, with their catalogs.
    pub decoders: BTreeMap<u32, Decoder>,
    /// What the decoders could not read.
    pub lost: Lost,
    /// Errors in descriptions and log.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<StreamError>,
    /// Chunks of processes beyond the most that are read.
    pub left_out: u64,
    /// Damaged places in the file: offset and what is wrong. Only the first are kept.
    pub damaged: Vec<(u64, &'static str)>,
    /// How many damaged places there are.
    pub damages: u64,
    /// Whole chunks that were read.
    pub chunks: u64,
    /// Where the file was cut off, if it was.
    pub truncated: Option<u64>,
}

/// Damaged places that are kept.
const DAMAGED_KEPT: usize = 16;

/// Plays a trace to a reader.
pub fn replay<I: Read, R: Reader + ?Sized>(
    trace: &mut TraceReader<I>,
    reader: &mut R,
) -> Result<Replayed, PlayError> {
    let mut so_far = Replayed {
        meta: Meta::default(),
        end: None,
        mappings: Mappings::default(),
        decoders: BTreeMap::new(),
        lost: Lost::default(),
        errors: 0,
        first_error: None,
        left_out: 0,
        damaged: Vec::new(),
        damages: 0,
        chunks: 0,
        truncated: None,
    };
    let mut player = None;
    while let Some(item) = trace.next()? {
        match item {
            Item::Chunk { stream, chunk, .. } => {
                so_far.chunks += 1;
                so_far.take(stream, chunk, &mut player, reader)?;
            }
            Item::Damaged { at, what } => {
                so_far.damages += 1;
                if so_far.damaged.len() < DAMAGED_KEPT {
                    so_far.damaged.push((at, what));
                }
                reader.gap();
            }
            Item::Truncated { at } => so_far.truncated = Some(at),
        }
    }
    so_far.conclude(player)
}

impl Replayed {
    fn take<R: Reader + ?Sized>(
        &mut self,
        stream: u32,
        chunk: Chunk,
        player: &mut Option<Player>,
        reader: &mut R,
    ) -> Result<(), PlayError> {
        match chunk {
            Chunk::Meta(meta) => {
                let detail = meta.detail().ok_or_else(|| PlayError::Detail(meta.detail.clone()))?;
                player.get_or_insert_with(|| Player::new(detail));
                self.meta = *meta;
            }
            Chunk::Mappings(mappings) => {
                for mapping in mappings {
                    reader.mapping(&mapping);
                    self.mappings.add(mapping);
                }
            }
            Chunk::Descriptions(words) => {
                player.as_mut().ok_or(PlayError::NoMeta)?.describe(stream, &words);
            }
            Chunk::Log { tid, words } => {
                player.as_mut().ok_or(PlayError::NoMeta)?.log(stream, tid, &words, reader);
            }
            Chunk::End(end) => self.end = Some(*end),
        }
        Ok(())
    }

    fn conclude(mut self, player: Option<Player>) -> Result<Replayed, PlayError> {
        let player = player.ok_or(PlayError::NoMeta)?;
        for decoder in player.decoders.values() {
            self.lost.buffers += decoder.lost().buffers;
            self.lost.words += decoder.lost().words;
        }
        self.decoders = player.decoders;
        self.errors = player.errors;
        self.first_error = player.first_error;
        self.left_out = player.left_out;
        Ok(self)
    }

    /// Whether everything that was written could be read.
    pub fn is_whole(&self) -> bool {
        self.damages == 0 && self.truncated.is_none() && self.errors == 0 && self.end.is_some()
    }
}
