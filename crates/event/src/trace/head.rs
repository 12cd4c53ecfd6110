//! Heads of the file and of chunks, as bytes.

/// First bytes of a trace file.
pub const FILE_MAGIC: [u8; 8] = *b"SONDETRC";
/// Version of the format that this crate writes and reads.
pub const VERSION: u32 = 1;
/// Bytes of the file's head.
pub const FILE_HEAD: usize = 16;
/// First bytes of a chunk.
pub const CHUNK_MAGIC: [u8; 4] = *b"CHNK";
/// Bytes of a chunk's head.
pub const CHUNK_HEAD: usize = 36;
/// Most bytes of a chunk, unpacked. A log buffer of the probe is a chunk; they are much smaller.
pub const MAX_PLAIN: usize = 16 << 20;
/// Most bytes of a chunk as stored: what does not shrink is stored as it is.
pub const MAX_STORED: usize = MAX_PLAIN;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// What was recorded and how, as JSON.
    Meta = 1,
    /// Mappings of the program, as lines.
    Mappings = 2,
    /// Superblock descriptions.
    Descriptions = 3,
    /// Log of one thread.
    Log = 4,
    /// Totals, as JSON. The last chunk of a complete file.
    End = 5,
}

impl Kind {
    fn from_code(code: u8) -> Option<Kind> {
        [Kind::Meta, Kind::Mappings, Kind::Descriptions, Kind::Log, Kind::End]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }
}

/// How a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Packing {
    /// As it is.
    None = 0,
    /// A zstd frame.
    Zstd = 1,
}

/// Head of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub packing: Packing,
    pub stream: u32,
    pub number: u32,
    pub tid: i32,
    pub stored: u32,
    pub plain: u32,
    pub checksum: u32,
}

/// Whether these are the first bytes of a trace of some version.
pub fn begins_as_trace(head: &[u8]) -> bool {
    head.starts_with(&FILE_MAGIC)
}

/// The file's head.
pub fn file_head() -> [u8; FILE_HEAD] {
    let mut head = [0; FILE_HEAD];
    head[..8].copy_from_slice(&FILE_MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head
}

impl Head {
    /// As bytes.
    pub fn encode(&self) -> [u8; CHUNK_HEAD] {
        let mut bytes = [0; CHUNK_HEAD];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = self.packing as u8;
        let words =
            [self.stream, self.number, self.tid.cast_unsigned(), self.stored, self.plain, self.checksum];
        for (place, word) in bytes[8..32].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let own = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// From bytes; `None` if this is no head of a chunk, or not one that makes sense.
    pub fn decode(bytes: &[u8; CHUNK_HEAD]) -> Option<Head> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..4] != CHUNK_MAGIC || crc32fast::hash(&bytes[..32]) != word(32) {
            return None;
        }
        let head = Head {
            kind: Kind::from_code(bytes[4])?,
            packing: match bytes[5] {
                0 => Packing::None,
                1 => Packing::Zstd,
                _ => return None,
            },
            stream: word(8),
            number: word(12),
            tid: word(16).cast_signed(),
            stored: word(20),
            plain: word(24),
            checksum: word(28),
        };
        let fits = head.stored as usize <= MAX_STORED && head.plain as usize <= MAX_PLAIN;
        let equal = head.packing == Packing::Zstd || head.stored == head.plain;
        (fits && equal).then_some(head)
    }
}
