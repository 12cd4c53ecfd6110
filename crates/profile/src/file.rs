//! The file around the parts: a head that stock tools skip, then one compressed frame with a checksum.
//!
//! The head is a skippable frame of zstd, so that `zstd -dc < FILE.sonde` gives the protobuf message to any language;
//! the frame behind it carries its length and a checksum, by which a cut or changed file is recognized.

use crate::atomic;
use crate::decode::{Assembly, most_bytes};
use crate::encode;
use crate::error::ProfileError;
use crate::profile::Profile;
use prost::Message;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

/// A skippable frame of zstd, of 16 bytes.
const SKIPPABLE: [u8; 8] = [0x5e, 0x2a, 0x4d, 0x18, 16, 0, 0, 0];
const MAGIC: [u8; 8] = *b"SONDEPRF";
/// The version of the format that is written, and the last that can be read.
pub const VERSION: u32 = 1;
const HEAD_BYTES: usize = 24;
/// The frame is decompressed in a window of at most 2^23 bytes.
const WINDOW_LOG: u32 = 23;
/// Fast, and within a tenth of the best that higher levels reach on columns of numbers.
const LEVEL: i32 = 6;

/// What a reader accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of the content when decompressed. Memory while reading is at most about 16 times as much.
    pub content_bytes: u64,
}

impl Default for Limits {
    /// 64 MiB: more than the largest profile that is ever written.
    fn default() -> Limits {
        Limits { content_bytes: 64 << 20 }
    }
}

impl Profile {
    /// Writes the profile to a file, all or nothing: what was there before stays until the new one is complete.
    pub fn write_to(&self, path: &Path) -> Result<(), ProfileError> {
        let bytes = self.to_bytes()?;
        atomic::write(path, &bytes)
    }

    /// The file's bytes. Trees with more than [`Profile::MOST_NODES`] nodes are pruned; the profile is checked first, so
    /// that no file is written that cannot be read back.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ProfileError> {
        let pruned = self.pruned(Profile::MOST_NODES)?;
        let profile = pruned.as_ref().unwrap_or(self);
        profile.check()?;
        let mut content = Vec::new();
        for part in encode::parts(profile) {
            content.reserve(part.encoded_len());
            part.encode(&mut content).map_err(|error| ProfileError::damaged(error.to_string()))?;
        }
        let limit = Limits::default().content_bytes;
        if content.len() as u64 > limit {
            return Err(ProfileError::TooLarge { what: "the content of the profile", limit, of: "bytes" });
        }
        wrap(&content).map_err(|cause| ProfileError::Stream { action: "compress", cause })
    }

    /// Reads a file with the default limits.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        Profile::read_limited(path, &Limits::default())
    }

    /// Reads a file.
    pub fn read_limited(path: &Path, limits: &Limits) -> Result<Profile, ProfileError> {
        let cannot = |cause| ProfileError::System { action: "read", path: path.into(), cause };
        let file = File::open(path).map_err(cannot)?;
        let read = Profile::read_from(BufReader::new(file), limits);
        read.map_err(|error| ProfileError::File { path: path.into(), cause: Box::new(error) })
    }

    /// Reads a profile from a stream, part by part.
    pub fn read_from(mut input: impl BufRead, limits: &Limits) -> Result<Profile, ProfileError> {
        read_head(&mut input)?;
        let mut decoder =
            zstd::stream::read::Decoder::with_buffer(&mut input).map_err(unreadable)?.single_frame();
        decoder.window_log_max(WINDOW_LOG).map_err(unreadable)?;
        let profile =
            assemble(&mut Content { inner: BufReader::new(decoder), left: limits.content_bytes, limits })?;
        match input.fill_buf().map_err(unreadable)? {
            [] => Ok(profile),
            _ => Err(ProfileError::damaged("there is something behind its end")),
        }
    }
}

fn wrap(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(HEAD_BYTES + content.len() / 2);
    out.extend_from_slice(&SKIPPABLE);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let mut encoder = zstd::stream::write::Encoder::new(out, LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.include_contentsize(true)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.set_pledged_src_size(Some(content.len() as u64))?;
    encoder.write_all(content)?;
    encoder.finish()
}

/// Whether these are the first bytes of a profile of some version.
pub fn begins_as_profile(head: &[u8]) -> bool {
    head.starts_with(&[&SKIPPABLE[..], &MAGIC[..]].concat())
}

fn read_head(input: &mut impl Read) -> Result<(), ProfileError> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    input.take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(unreadable)?;
    let known = [&SKIPPABLE[..], &MAGIC[..]].concat();
    let common = known.len().min(head.len());
    if head.is_empty() || head[..common] != known[..common] {
        return Err(ProfileError::NotAProfile);
    }
    let Some(version) = head.get(16..20).and_then(|bytes| bytes.try_into().ok()) else {
        return Err(ProfileError::Truncated);
    };
    match u32::from_le_bytes(version) {
        VERSION if head.len() == HEAD_BYTES => Ok(()),
        VERSION => Err(ProfileError::Truncated),
        0 => Err(ProfileError::damaged("it has no version")),
        found => Err(ProfileError::TooNew { found, known: VERSION }),
    }
}

/// What reading gave: an error of the system, an end too early, or bytes that do not decompress.
fn unreadable(error: io::Error) -> ProfileError {
    match error.kind() {
        _ if error.raw_os_error().is_some() => ProfileError::Stream { action: "read", cause: error },
        io::ErrorKind::UnexpectedEof => ProfileError::Truncated,
        _ => ProfileError::damaged(error.to_string()),
    }
}

/// The content, as far as the limit lets it.
struct Content<'a, R> {
    inner: BufReader<R>,
    left: u64,
    limits: &'a Limits,
}

impl<R: Read> Content<'_, R> {
    fn take(&mut self, bytes: u64) -> Result<(), ProfileError> {
        let limit = self.limits.content_bytes;
        let too_large = ProfileError::TooLarge { what: "the content of the file", limit, of: "bytes" };
        self.left = self.left.checked_sub(bytes).ok_or(too_large)?;
        Ok(())
    }

    fn is_at_end(&mut self) -> Result<bool, ProfileError> {
        Ok(self.inner.fill_buf().map_err(unreadable)?.is_empty())
    }

    fn varint(&mut self) -> Result<u64, ProfileError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            self.take(1)?;
            let mut byte = [0];
            self.inner.read_exact(&mut byte).map_err(unreadable)?;
            let bits = u64::from(byte[0] & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(ProfileError::damaged("a number has too many digits"))
    }

    /// Never more memory than there is content, whatever length is promised.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, ProfileError> {
        self.take(length)?;
        let mut bytes = Vec::new();
        let read = self.inner.by_ref().take(length).read_to_end(&mut bytes).map_err(unreadable)?;
        if read as u64 == length { Ok(bytes) } else { Err(ProfileError::damaged("its last part is cut off")) }
    }
}

fn assemble(content: &mut Content<'_, impl Read>) -> Result<Profile, ProfileError> {
    const LENGTH_DELIMITED: u64 = 2;
    let mut assembly = Assembly::default();
    while !content.is_at_end()? {
        let key = content.varint()?;
        if key & 7 != LENGTH_DELIMITED {
            return Err(ProfileError::damaged("a part is no message"));
        }
        let number = u32::try_from(key >> 3).map_err(|_| ProfileError::damaged("a part has no number"))?;
        let (length, limit) = (content.varint()?, most_bytes(number));
        if length > limit {
            return Err(ProfileError::TooLarge { what: "a part of the file", limit, of: "bytes" });
        }
        assembly.part(number, &content.bytes(length)?)?;
    }
    assembly.finish()
}
