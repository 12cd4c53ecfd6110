//! Reads a trace chunk by chunk, in bounded memory, past whatever is damaged.

use super::head::{self, CHUNK_HEAD, CHUNK_MAGIC, FILE_HEAD, Head, Kind, Packing};
use super::text::{self, End, Meta};
use crate::maps::Mapping;
use std::io::{self, Read};
use thiserror::Error;

/// A file that is no trace, or that cannot be read at all.
#[derive(Debug, Error)]
pub enum TraceError {
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// Something else.
    #[error("not a trace file of Sonde")]
    NotATrace,
    /// Written by a newer Sonde.
    #[error("a trace file of version {0}; this Sonde reads version {known}, a newer one is needed", known = head::VERSION)]
    Version(u32),
}

// The message holds the cause, so it is not given as a source again.
impl From<io::Error> for TraceError {
    fn from(cause: io::Error) -> TraceError {
        TraceError::Io(cause)
    }
}

/// A whole chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// What was recorded and how.
    Meta(Box<Meta>),
    /// New mappings of the program.
    Mappings(Vec<Mapping>),
    /// Descriptions, one after the other.
    Descriptions(Vec<u64>),
    /// Log of a thread.
    Log {
        /// The thread.
        tid: i32,
        /// Its words.
        words: Vec<u64>,
    },
    /// Totals.
    End(Box<End>),
}

/// What comes next in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A chunk.
    Chunk {
        /// The process it is about.
        stream: u32,
        /// Bytes it takes in the file.
        stored: u64,
        /// Its bytes when unpacked.
        plain: u64,
        /// What it holds.
        chunk: Chunk,
    },
    /// Something that cannot be read; reading goes on at the next whole chunk.
    Damaged {
        /// Offset in the file.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The file ends in the middle of a chunk.
    Truncated {
        /// Offset of that chunk.
        at: u64,
    },
}

/// Reads a trace.
pub struct TraceReader<R: Read> {
    input: R,
    /// Bytes read and not used yet: `buffer[start..]`.
    buffer: Vec<u8>,
    start: usize,
    /// Offset in the file of `buffer[start]`.
    at: u64,
    next_number: u32,
    /// A chunk behind a gap, to be given after the gap was.
    pending: Option<Item>,
    /// Reading was resumed behind damage: the number of the next chunk tells nothing new.
    resumed: bool,
    ended: bool,
}

impl<R: Read> TraceReader<R> {
    /// Opens a trace: reads and checks its head.
    pub fn new(input: R) -> Result<TraceReader<R>, TraceError> {
        let mut reader = TraceReader {
            input,
            buffer: Vec::new(),
            start: 0,
            at: 0,
            next_number: 0,
            pending: None,
            resumed: false,
            ended: false,
        };
        if !reader.fill(FILE_HEAD)? || reader.bytes()[..8] != head::FILE_MAGIC {
            return Err(TraceError::NotATrace);
        }
        let version = &reader.bytes()[8..12];
        let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if version != head::VERSION {
            return Err(TraceError::Version(version));
        }
        reader.skip(FILE_HEAD);
        Ok(reader)
    }

    /// The next item, or nothing at the end of the file.
    #[expect(clippy::should_implement_trait, reason = "an iterator of results would not stop at an error")]
    pub fn next(&mut self) -> Result<Option<Item>, TraceError> {
        if let Some(item) = self.pending.take() {
            return Ok(Some(item));
        }
        if self.ended {
            return Ok(None);
        }
        let at = self.at;
        if !self.fill(CHUNK_HEAD)? {
            self.ended = true;
            return Ok((!self.bytes().is_empty()).then_some(Item::Truncated { at }));
        }
        let Some(head) = self.head() else {
            return self.resume(at, "no chunk begins here").map(Some);
        };
        let whole = CHUNK_HEAD + head.stored as usize;
        if !self.fill(whole)? {
            self.ended = true;
            return Ok(Some(Item::Truncated { at }));
        }
        let item = self.take(&head, at);
        self.skip(whole);
        Ok(Some(self.in_order(&head, at, item)))
    }

    /// Chunks are numbered: a hole is told before the chunk behind it.
    fn in_order(&mut self, head: &Head, at: u64, item: Item) -> Item {
        let expected = std::mem::replace(&mut self.next_number, head.number.wrapping_add(1));
        let resumed = std::mem::take(&mut self.resumed);
        if head.number == expected || resumed {
            return item;
        }
        self.pending = Some(item);
        Item::Damaged { at, what: "chunks are missing before this one" }
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    fn head(&self) -> Option<Head> {
        self.bytes().first_chunk().and_then(Head::decode)
    }

    /// Makes sure that `count` bytes are there; false if the file ends before.
    fn fill(&mut self, count: usize) -> io::Result<bool> {
        let have = self.buffer.len() - self.start;
        if have >= count {
            return Ok(true);
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        // Read on in blocks; a hostile length makes us read no more than there is.
        let missing = (count - have).max(64 << 10) as u64;
        self.input.by_ref().take(missing).read_to_end(&mut self.buffer)?;
        Ok(self.buffer.len() >= count)
    }

    fn skip(&mut self, count: usize) {
        self.start += count;
        self.at += count as u64;
    }

    /// Looks for the next head of a chunk that makes sense.
    fn resume(&mut self, from: u64, what: &'static str) -> Result<Item, TraceError> {
        self.resumed = true;
        self.skip(1);
        loop {
            let found = self.bytes().windows(CHUNK_MAGIC.len()).position(|w| w == CHUNK_MAGIC);
            match found {
                Some(offset) => {
                    self.skip(offset);
                    if !self.fill(CHUNK_HEAD)? {
                        self.ended = true;
                        break;
                    }
                    if self.head().is_some() {
                        break;
                    }
                    self.skip(1);
                }
                None => {
                    let keep = CHUNK_MAGIC.len() - 1;
                    self.skip(self.bytes().len().saturating_sub(keep));
                    if !self.fill(CHUNK_MAGIC.len())? {
                        self.ended = true;
                        break;
                    }
                }
            }
        }
        Ok(Item::Damaged { at: from, what })
    }

    /// The chunk at the start of the buffer, which is there as a whole.
    fn take(&self, head: &Head, at: u64) -> Item {
        let stored = &self.bytes()[CHUNK_HEAD..CHUNK_HEAD + head.stored as usize];
        if crc32fast::hash(stored) != head.checksum {
            return Item::Damaged { at, what: "the checksum of a chunk does not match" };
        }
        match unpack(head, stored).and_then(|plain| interpret(head, plain)) {
            Ok(chunk) => Item::Chunk {
                stream: head.stream,
                stored: (CHUNK_HEAD + stored.len()) as u64,
                plain: u64::from(head.plain),
                chunk,
            },
            Err(what) => Item::Damaged { at, what },
        }
    }
}

/// The bytes of a chunk, in words: most chunks are made of words. The last one is filled up with zeros.
fn unpack(head: &Head, stored: &[u8]) -> Result<Vec<u64>, &'static str> {
    let len = head.plain as usize;
    let mut words = vec![0u64; len.div_ceil(8)];
    let room: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..len];
    match head.packing {
        Packing::None => room.copy_from_slice(stored),
        Packing::Zstd => {
            let got =
                zstd::bulk::decompress_to_buffer(stored, room).map_err(|_| "a chunk cannot be unpacked")?;
            if got != len {
                return Err("a chunk is shorter than its head says");
            }
        }
    }
    Ok(words)
}

fn interpret(head: &Head, words: Vec<u64>) -> Result<Chunk, &'static str> {
    let bytes: &[u8] = &bytemuck::cast_slice(&words)[..head.plain as usize];
    let whole_words = head.plain.is_multiple_of(8);
    match head.kind {
        Kind::Meta => serde_json::from_slice(bytes)
            .map(|meta| Chunk::Meta(Box::new(meta)))
            .map_err(|_| "the chunk that says what was recorded is not readable"),
        Kind::End => serde_json::from_slice(bytes)
            .map(|end| Chunk::End(Box::new(end)))
            .map_err(|_| "the chunk with the totals is not readable"),
        Kind::Mappings => Ok(Chunk::Mappings(text::read_mappings(&String::from_utf8_lossy(bytes)))),
        Kind::Descriptions if whole_words => Ok(Chunk::Descriptions(words)),
        Kind::Log if whole_words => Ok(Chunk::Log { tid: head.tid, words }),
        Kind::Descriptions | Kind::Log => Err("a chunk of words has half a word"),
    }
}
