//! A region and an offset in one number.

/// Bits of the offset: user addresses have 47, so that an address of an unknown region fits as it is.
pub const OFFSET_BITS: u32 = 48;

/// A place: the number of a region above [`OFFSET_BITS`] bits of offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

impl Place {
    /// The region and the offset; bits that do not fit are cut off.
    pub fn new(slot: u16, offset: u64) -> Place {
        Place(u64::from(slot) << OFFSET_BITS | offset & ((1 << OFFSET_BITS) - 1))
    }

    /// An address that lies in no known region.
    pub fn unknown(address: u64) -> Place {
        Place::new(0, address)
    }

    /// The number of the region.
    pub fn slot(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// The offset in the region.
    pub fn offset(self) -> u64 {
        self.0 & ((1 << OFFSET_BITS) - 1)
    }
}
