//! A snapshot as bytes: with a version, a checksum, and a reader that trusts nothing.
//!
//! Layout of version 1, all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `SRAP` |
//! | 2 | version, 1 |
//! | 1, 1 | dimensions; bits of one dimension |
//! | 1 | branching factor |
//! | 1, 8 | buffer: 0 auto, 1 none, 2 so many bytes, 3 unlimited; its bytes (0 unless kind 2) |
//! | 8, 8, 8, 8 | `eps`, `merge_ratio` (IEEE 754); `first_merge`; `max_memory` (0 for none) |
//! | 8, 8, 8, 8 | `events`; `eps_effective` (IEEE 754); `nodes_max`; number of nodes |
//! | ... | the nodes in preorder |
//! | 4 | CRC-32 (IEEE) of everything before |
//!
//! A node is: its free bits (1 or 2 bytes, LEB128); how many leading bytes of its big-endian lower code equal those of
//! the node before (1 byte); the further bytes of the code, as far as they are not free; its count (LEB128).
//! Neighbours share most of their prefix, so a node takes about 6 bytes instead of 24.

use crate::code::Code;
use crate::config::{Branching, Buffer, Config, ConfigError};
use crate::key::Key;
use crate::range::Range;
use crate::snapshot::{Node, Snapshot};
use crate::tree::MergeError;
use std::fmt;

mod crc;
mod reader;
use crc::crc32;
use reader::Reader;

const MAGIC: [u8; 4] = *b"SRAP";
const VERSION: u16 = 1;
/// Free bits, shared bytes, count: the least that a node takes, which bounds how many a file of a given length can hold.
const MIN_NODE_BYTES: usize = 3;

/// Why bytes were not accepted as a snapshot.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not a serialized tree at all.
    Magic,
    /// Written by a version that this one does not know.
    Version(u16),
    /// The tree's keys are of another type.
    KeyType {
        /// Dimensions in the file.
        dims: u8,
        /// Bits of a dimension in the file.
        bits: u8,
    },
    /// The bytes end too early.
    Truncated,
    /// There are bytes after the end.
    TrailingBytes(usize),
    /// The checksum does not fit: the bytes were changed on the way.
    Checksum,
    /// The parameters are not valid.
    Config(ConfigError),
    /// A field has a value that no tree has.
    Field(&'static str),
    /// The nodes do not form a tree.
    Nodes(MergeError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Magic => {
                write!(f, "not a serialized range-adaptive tree: it does not begin with SRAP")
            }
            DecodeError::Version(got) => {
                write!(f, "version {got} is unknown, only {VERSION} can be read: update")
            }
            DecodeError::KeyType { dims, bits } => {
                write!(
                    f,
                    "the tree has keys of {dims} dimension(s) of {bits} bits: read it with that key type"
                )
            }
            DecodeError::Truncated => write!(f, "the bytes end in the middle of the tree"),
            DecodeError::TrailingBytes(got) => write!(f, "{got} bytes too many after the end of the tree"),
            DecodeError::Checksum => write!(f, "checksum mismatch: the bytes are damaged"),
            DecodeError::Config(error) => write!(f, "the tree's parameters are not valid: {error}"),
            DecodeError::Field(name) => write!(f, "the field {name} has a value that no tree has"),
            DecodeError::Nodes(error) => write!(f, "the nodes do not form a tree: {error}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl<K: Key> Snapshot<K> {
    /// The snapshot as bytes, for files and wires; read back with [`Snapshot::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(100 + self.nodes.len() * 8);
        write_header(self, &mut out);
        let mut before: Vec<u8> = Vec::new();
        for node in &self.nodes {
            let free = node.range.free_bits();
            let code = code_bytes::<K>(node.range.start());
            let kept = (K::BITS - free).div_ceil(8) as usize;
            let shared = shared_bytes(&before, &code).min(kept);
            write_number(free.into(), &mut out);
            out.push(shared as u8);
            out.extend_from_slice(&code[shared..kept]);
            write_number(node.own, &mut out);
            before = code;
        }
        let checksum = crc32(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The snapshot from its bytes. Any input gives an answer: at worst an error, never a panic, and never more memory
    /// than in proportion to the input.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut magic = Reader::new(bytes);
        if magic.array()? != MAGIC {
            return Err(DecodeError::Magic);
        }
        let version = u16::from_le_bytes(magic.array()?);
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(DecodeError::Truncated)?;
        if crc32(content) != u32::from_le_bytes(*checksum) {
            return Err(DecodeError::Checksum);
        }
        let mut reader = Reader::new(content.get(6..).ok_or(DecodeError::Truncated)?);
        let (mut snapshot, count) = read_header(&mut reader)?;
        snapshot.nodes = read_nodes(&mut reader, count)?;
        match reader.left() {
            0 => snapshot.check().map_err(DecodeError::Nodes).map(|()| snapshot),
            more => Err(DecodeError::TrailingBytes(more)),
        }
    }
}

fn write_header<K: Key>(snapshot: &Snapshot<K>, out: &mut Vec<u8>) {
    let config = &snapshot.config;
    let (buffer_kind, buffer_bytes) = match config.buffer {
        Buffer::Auto => (0, 0),
        Buffer::None => (1, 0),
        Buffer::Bytes(bytes) => (2, bytes as u64),
        Buffer::Unlimited => (3, 0),
    };
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[K::DIMS as u8, K::DIM_BITS as u8, config.branching.factor() as u8, buffer_kind]);
    let numbers = [
        buffer_bytes,
        config.eps.to_bits(),
        config.merge_ratio.to_bits(),
        config.first_merge,
        config.max_memory.unwrap_or(0) as u64,
        snapshot.events,
        snapshot.eps_effective.to_bits(),
        snapshot.nodes_max,
        snapshot.nodes.len() as u64,
    ];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

/// The snapshot without its nodes, and how many there are.
fn read_header<K: Key>(reader: &mut Reader) -> Result<(Snapshot<K>, usize), DecodeError> {
    let [dims, bits, branching, buffer_kind] = reader.array()?;
    if (usize::from(dims), u32::from(bits)) != (K::DIMS, K::DIM_BITS) {
        return Err(DecodeError::KeyType { dims, bits });
    }
    let buffer_bytes = reader.size("buffer")?;
    let buffer = match (buffer_kind, buffer_bytes) {
        (0, 0) => Buffer::Auto,
        (1, 0) => Buffer::None,
        (2, bytes) => Buffer::Bytes(bytes),
        (3, 0) => Buffer::Unlimited,
        _ => return Err(DecodeError::Field("buffer")),
    };
    let config = Config {
        branching: Branching::try_from(u32::from(branching)).map_err(DecodeError::Config)?,
        eps: f64::from_bits(reader.u64()?),
        merge_ratio: f64::from_bits(reader.u64()?),
        first_merge: reader.u64()?,
        max_memory: Some(reader.size("max_memory")?).filter(|&bytes| bytes > 0),
        buffer,
    };
    config.validate().map_err(DecodeError::Config)?;
    let events = reader.u64()?;
    let eps_effective = f64::from_bits(reader.u64()?);
    if !(0.0..=1.0).contains(&eps_effective) {
        return Err(DecodeError::Field("eps_effective"));
    }
    let nodes_max = reader.u64()?;
    let count = reader.size("number of nodes")?;
    if nodes_max < count as u64 {
        return Err(DecodeError::Field("nodes_max"));
    }
    Ok((Snapshot { config, events, eps_effective, nodes_max, nodes: Vec::new() }, count))
}

fn read_nodes<K: Key>(reader: &mut Reader, count: usize) -> Result<Vec<Node<K>>, DecodeError> {
    // The count is only a claim: reserve for no more than the bytes can hold.
    if count > reader.left() / MIN_NODE_BYTES {
        return Err(DecodeError::Truncated);
    }
    let mut nodes = Vec::with_capacity(count);
    let mut before: Vec<u8> = Vec::new();
    for _ in 0..count {
        let free = u32::try_from(reader.number()?).ok().filter(|&free| free <= K::BITS);
        let free = free.ok_or(DecodeError::Field("free bits"))?;
        let kept = (K::BITS - free).div_ceil(8) as usize;
        let shared = usize::from(reader.array::<1>()?[0]);
        if shared > kept.min(before.len()) {
            return Err(DecodeError::Field("shared bytes"));
        }
        let mut code = before[..shared].to_vec();
        code.extend_from_slice(reader.take(kept - shared)?);
        code.resize(K::BITS as usize / 8, 0);
        // One tree, one spelling: as many bytes are shared as can be.
        if shared != shared_bytes(&before, &code).min(kept) {
            return Err(DecodeError::Field("shared bytes"));
        }
        let start = bytes_code::<K>(&code);
        let range = Range::aligned(start, free);
        if range.start() != start {
            return Err(DecodeError::Field("lower code"));
        }
        nodes.push(Node { range, own: reader.number()? });
        before = code;
    }
    Ok(nodes)
}

/// How many leading bytes are the same.
fn shared_bytes(before: &[u8], code: &[u8]) -> usize {
    before.iter().zip(code).take_while(|(a, b)| a == b).count()
}

/// A code as big-endian bytes, as many as the key has.
fn code_bytes<K: Key>(code: K::Code) -> Vec<u8> {
    (0..K::BITS / 8).rev().map(|byte| code.shr(byte * 8).low() as u8).collect()
}

fn bytes_code<K: Key>(bytes: &[u8]) -> K::Code {
    bytes.iter().fold(K::Code::ZERO, |code, &byte| code.shl(8).or(K::Code::spread(byte.into(), 1)))
}

/// LEB128: seven bits to a byte, lowest first.
fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
