//! Binary files without a copy: mapped into memory, the sink gets slices of the page cache itself.
//!
//! The only `unsafe` of this crate, kept because it pays: with a tree behind it, a mapped file ran at the speed of the
//! tree alone, reading in blocks at 0.85 to 0.93 of it (`sonde-bench read`). Text is read in blocks instead: there
//! the copy does not show beside the parsing.
#![allow(unsafe_code, reason = "mapping a file is unsafe since others may change it meanwhile; see below")]

use std::fs::File;
use std::io;

use crate::batch::Sink;
use crate::error::ReadError;
use crate::format::{Counts, OnBad};
use crate::raw::{RawWord, end_of_torn};

/// Handed on at once, between two looks at the file's size.
const CHUNK: usize = 4 << 20;
/// Smaller files are not worth a mapping.
const LEAST: u64 = 1 << 20;

/// Reads a regular file as words, as [`crate::read_raw`] does, from its beginning. `passed` is told the bytes of each
/// chunk that was handed on.
///
/// `Ok(None)`: this file cannot or need not be mapped, nothing was read; use [`crate::read_raw`].
///
/// A file that becomes shorter meanwhile is an error, found at the next chunk. If it is cut off inside the very chunk
/// being read, the system ends the program with `SIGBUS`: no program that maps files can do better without a handler.
pub fn read_raw_file<W: RawWord>(
    name: &str,
    file: &File,
    on_bad: OnBad,
    sink: &mut impl Sink<W>,
    mut passed: impl FnMut(u64),
) -> Result<Option<Counts>, ReadError> {
    let io_error = |cause| ReadError::Io { name: name.into(), cause };
    let metadata = file.metadata().map_err(io_error)?;
    if cfg!(target_endian = "big") || !metadata.is_file() || metadata.len() < LEAST {
        return Ok(None);
    }
    // SAFETY: the bytes are only read, as integers for which every pattern is valid. Another process that writes to the
    // file meanwhile can make us count other words than it held before, which is true of any way of reading it.
    let Ok(map) = (unsafe { memmap2::Mmap::map(file) }) else { return Ok(None) };
    let width = size_of::<W>();
    let whole = map.len() / width * width;
    let mut counts = Counts::default();
    for chunk in map[..whole].chunks(CHUNK / width * width) {
        if file.metadata().map_err(io_error)?.len() < map.len() as u64 {
            return Err(io_error(io::Error::other("the file became shorter while it was read")));
        }
        sink.keys(bytemuck::cast_slice(chunk));
        counts.numbers += (chunk.len() / width) as u64;
        passed(chunk.len() as u64);
    }
    counts.bytes = map.len() as u64;
    if map.len() > whole {
        end_of_torn(name, width, map.len() - whole, on_bad, &mut counts)?;
    }
    Ok(Some(counts))
}
