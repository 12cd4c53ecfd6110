//! What goes from the reader of the stream to the trees: references with all that any tree wants to know of them, many
//! at a time.

use sonde_event::PlainKind;

/// References in a full batch: what is under way stays in the second-level cache.
pub(crate) const BATCH: usize = 1 << 12;

/// One reference, or a part of a repeated one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// Place of the instruction.
    pub pc: u64,
    /// Address of the data; its place once it is found.
    pub data: u64,
    /// Low 8 bytes of the value, if [`Event::VALUE`].
    pub value: u64,
    /// Bytes touched.
    pub size: u32,
    /// How often it counts.
    pub times: u16,
    /// What holds of it.
    pub flags: u16,
}

impl Event {
    /// A load, not a store.
    pub const LOAD: u16 = PlainKind::LOAD;
    /// The value is known.
    pub const VALUE: u16 = PlainKind::VALUE;
    /// The value has more than 8 bytes, and some that are not in `value` are not zero.
    pub const MORE: u16 = 4;
    /// It counts more than once.
    pub const REPEATED: u16 = 8;
    /// It has an address.
    pub const ADDRESS: u16 = 16;

    /// Whether all these flags hold.
    #[inline(always)]
    pub fn is(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
}

/// Events of the same weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Of each event.
    pub weight: u64,
    /// References in the order in which they were made, as far as that is known.
    pub events: Vec<Event>,
    /// Branches whose target is known only when they are taken: places from and to.
    pub edges: Vec<[u64; 2]>,
    /// Blocks that are not counted by path: place and instructions executed.
    pub blocks: Vec<(u64, u64)>,
}

impl Batch {
    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.edges.is_empty() && self.blocks.is_empty()
    }

    /// Whether it is time to hand it on.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.events.len() >= BATCH || self.edges.len() >= BATCH || self.blocks.len() >= BATCH
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.events.capacity() * size_of::<Event>() + (self.edges.capacity() + self.blocks.capacity()) * 16
    }

    /// Empties it; its memory stays.
    pub fn clear(&mut self) {
        self.events.clear();
        self.edges.clear();
        self.blocks.clear();
    }
}
