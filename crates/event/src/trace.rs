//! The trace file: a stream on disk.
//!
//! A file is a head, then chunks, each with its own checksums, compressed by itself: what was written whole can be
//! read whatever happened to the rest. Descriptions and log are kept as the probe wrote them, so recording needs no
//! decoding, and a replay is decoded by the same [`Decoder`](crate::Decoder) as a live run.
//!
//! | bytes | head of the file |
//! |---|---|
//! | 8 | `SONDETRC` |
//! | 4 | version, 1 |
//! | 4 | 0 |
//!
//! | bytes | head of a chunk |
//! |---|---|
//! | 4 | `CHNK` |
//! | 1 | [`Kind`] |
//! | 1 | 0: stored as it is, 1: zstd |
//! | 2 | 0 |
//! | 4 | stream: 0 for the program, others for processes that it started |
//! | 4 | number of the chunk, from 0 |
//! | 4 | thread, for log chunks |
//! | 4 | bytes stored |
//! | 4 | bytes when unpacked |
//! | 4 | CRC-32 of the bytes stored |
//! | 4 | CRC-32 of this head without this field |
//!
//! All numbers are little-endian. Memory is bounded for writer and reader: no chunk is larger than [`MAX_PLAIN`].

mod head;
mod play;
mod read;
mod text;
mod write;

pub use head::{Kind, MAX_PLAIN, VERSION, begins_as_trace};
pub use play::{PlayError, Player, Replayed, replay};
pub use read::{Chunk, Item, TraceError, TraceReader};
pub use text::{End, Machine, Meta, detail_name};
pub use write::TraceWriter;
