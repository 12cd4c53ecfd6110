//! The wide top: 4096 slots in one step, placed where nearly all events fall.
//!
//! Three lines deep, but one access: real streams share a prefix (code addresses, heap addresses, small numbers), and a
//! uniform one never needs more than these slots at eps = 1 %.

use crate::code::Code;

#[derive(Clone, Debug)]
pub(super) struct Top<C> {
    /// Level of the slots.
    pub level: u32,
    /// Free bits of the whole top: the slots' and the twelve of the digit.
    pub bits: u32,
    /// The first code.
    pub start: C,
    /// Events of the slot that refers to the top.
    pub parked: u64,
    pub slots: Box<[u32; 1 << 12]>,
    /// Large counts, once there is one.
    wides: Option<Box<[u64]>>,
}

impl<C: Code> Top<C> {
    /// Bits of the digit: a multiple of both line widths, 3 and 4.
    pub const BITS: u32 = 12;
    pub const MASK: u32 = (1 << Self::BITS) - 1;

    /// The most bytes a top takes.
    pub const BYTES_MAX: usize = size_of::<Self>() + ((size_of::<u32>() + size_of::<u64>()) << Self::BITS);

    pub fn new(code: C, level: u32, step: u32) -> Self {
        let bits = level * step + Self::BITS;
        let slots =
            vec![0; 1 << Self::BITS].into_boxed_slice().try_into().expect("as many slots as asked for");
        Top { level, bits, start: code.shr(bits).shl(bits), parked: 0, slots, wides: None }
    }

    #[inline(always)]
    pub fn covers(&self, code: C) -> bool {
        code.xor(self.start).shr(self.bits) == C::ZERO
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.slots) + self.wides.as_ref().map_or(0, |w| size_of_val(&**w))
    }

    pub fn has_wides(&self) -> bool {
        self.wides.is_some()
    }

    pub fn wide(&self, digit: u32) -> u64 {
        self.wides.as_ref().map_or(0, |wides| wides[digit as usize])
    }

    pub fn set_wide(&mut self, digit: u32, count: u64) {
        if count == 0 && self.wides.is_none() {
            return;
        }
        let wides = self.wides.get_or_insert_with(|| vec![0; 1 << Self::BITS].into_boxed_slice());
        wides[digit as usize] = count;
    }
}
