//! Writes a trace as it is recorded.

use super::head::{self, Head, Kind, MAX_PLAIN, Packing};
use super::text::{self, End, Meta};
use crate::maps::Mapping;
use std::io::{self, Write};

/// Descriptions are collected up to this many bytes, or until the log needs them.
const BATCH: usize = 256 << 10;
/// Fast enough not to hold up the program more than needed; higher levels win little on log words.
const LEVEL: i32 = 1;

/// Writes a trace file.
///
/// Whatever comes after a failure to write (a full disk) is not written; [`TraceWriter::finish`] tells.
pub struct TraceWriter<W: Write> {
    out: W,
    number: u32,
    stream: u32,
    descriptions: Vec<u64>,
    mappings: Vec<Mapping>,
    packer: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a file.
    pub fn new(mut out: W, meta: &Meta) -> io::Result<TraceWriter<W>> {
        out.write_all(&head::file_head())?;
        let mut writer = TraceWriter {
            out,
            number: 0,
            stream: 0,
            descriptions: Vec::new(),
            mappings: Vec::new(),
            packer: zstd::bulk::Compressor::new(LEVEL)?,
            packed: Vec::new(),
            bytes: head::FILE_HEAD as u64,
            failed: None,
        };
        let json = serde_json::to_vec(meta).map_err(io::Error::from)?;
        writer.chunk(Kind::Meta, 0, &json)?;
        Ok(writer)
    }

    /// Takes a description as the probe published it.
    pub fn description(&mut self, words: &[u64]) {
        self.descriptions.extend_from_slice(words);
        if self.descriptions.len() * 8 >= BATCH {
            self.write_waiting();
        }
    }

    /// Takes (a part of) a thread's log.
    pub fn log(&mut self, tid: i32, words: &[u64]) {
        self.write_waiting();
        // A log is only ever cut between buffers of the probe, which are smaller than a chunk can be; if that changes,
        // refuse rather than cut a record in two.
        let result = self.chunk(Kind::Log, tid, bytemuck::cast_slice(words));
        self.note(result);
    }

    /// Takes a new mapping.
    pub fn mapping(&mut self, mapping: &Mapping) {
        self.mappings.push(mapping.clone());
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the file. Returns where it was written to, or the first error met.
    pub fn finish(mut self, end: &End) -> io::Result<W> {
        self.write_waiting();
        let result = serde_json::to_vec(end)
            .map_err(io::Error::from)
            .and_then(|json| self.chunk(Kind::End, 0, &json))
            .and_then(|()| self.out.flush());
        self.note(result);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    /// Writes what the log to come may refer to.
    fn write_waiting(&mut self) {
        let mappings = std::mem::take(&mut self.mappings);
        for some in mappings.chunks(1024) {
            let result = self.chunk(Kind::Mappings, 0, text::write_mappings(some).as_bytes());
            self.note(result);
        }
        if self.descriptions.is_empty() {
            return;
        }
        let mut words = std::mem::take(&mut self.descriptions);
        let result = self.chunk(Kind::Descriptions, 0, bytemuck::cast_slice(&words));
        self.note(result);
        words.clear();
        self.descriptions = words;
    }

    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed.get_or_insert(error);
        }
    }

    fn chunk(&mut self, kind: Kind, tid: i32, plain: &[u8]) -> io::Result<()> {
        if self.failed.is_some() {
            return Ok(());
        }
        if plain.len() > MAX_PLAIN {
            return Err(io::Error::other("a chunk would be larger than the format allows"));
        }
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
        self.packer.compress_to_buffer(plain, &mut self.packed)?;
        let (packing, stored) = if self.packed.len() < plain.len() {
            (Packing::Zstd, self.packed.as_slice())
        } else {
            (Packing::None, plain)
        };
        let head = Head {
            kind,
            packing,
            stream: self.stream,
            number: self.number,
            tid,
            stored: stored.len() as u32,
            plain: plain.len() as u32,
            checksum: crc32fast::hash(stored),
        };
        self.out.write_all(&head.encode())?;
        self.out.write_all(stored)?;
        self.number = self.number.wrapping_add(1);
        self.bytes += (head::CHUNK_HEAD + stored.len()) as u64;
        Ok(())
    }
}
