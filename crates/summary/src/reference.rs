//! From a reference of the stream to events.

use crate::batch::Event;
use sonde_event::{Access, Ref};

/// Repeated string instructions count once for each line of this size that they touch: about what the widest moves of a
/// program would count for the same work. One event per repetition (a byte each in `rep movsb`) would let a single copy
/// outweigh everything around it.
const LINE: u64 = 64;
/// Most events of one instruction; longer ones get events that count several times, up to the first 1 GiB.
const MOST_EVENTS: u64 = 256;
/// A value of 4 or 8 bytes is narrow if it needs fewer than this many bits besides its sign (Brooks and Martonosi 1999,
/// whom the paper follows, detect leading zeros and ones). Operands of 1 and 2 bytes are narrow by declaration, which
/// tells nothing; wider ones hold several numbers.
const NARROW_BITS: u32 = 16;

/// What a reference is, its address and value aside; `more` tells whether a value of more than 8 bytes has something
/// outside the lowest 8.
#[inline(always)]
pub(crate) fn flags(r: &Ref, more: impl FnOnce() -> bool) -> u16 {
    let mut flags = if r.access == Access::Load { Event::LOAD } else { 0 };
    flags |= if r.address.is_some() { Event::ADDRESS } else { 0 };
    if r.value.is_some() {
        flags |= Event::VALUE;
        flags |= if r.size > 8 && more() { Event::MORE } else { 0 };
    }
    flags
}

/// Whether a value of so many bytes is narrow.
#[inline(always)]
pub(crate) fn is_narrow(value: u64, size: u32) -> bool {
    // A value of 4 bytes is looked at in the upper half.
    let up = if size == 4 { 32 } else { 0 };
    // -32768 and 32767 take 15 bits and the sign.
    let above = ((value << up) as i64) >> (NARROW_BITS - 1 + up);
    (size == 4 || size == 8) & (above.wrapping_add(1) as u64 <= 1)
}

/// The events of a repeated string instruction, by the lines that it touches. Values are not known: a record has the
/// first at most.
pub(crate) fn repeated(r: &Ref, pc: u64, mut push: impl FnMut(Event)) {
    let Some(address) = r.address else { return };
    let bytes = r.count.saturating_mul(u64::from(r.size.max(1)));
    if bytes == 0 {
        return;
    }
    let first = address / LINE;
    let lines = (address.saturating_add(bytes - 1) / LINE) - first + 1;
    let each = lines.div_ceil(MOST_EVENTS).min(u64::from(u16::MAX));
    let load = if r.access == Access::Load { Event::LOAD } else { 0 };
    for step in 0..lines.div_ceil(each).min(MOST_EVENTS) {
        let times = each.min(lines - step * each);
        let from = address.max((first + step * each) * LINE);
        push(Event {
            pc,
            data: from,
            value: 0,
            size: (times * LINE) as u32,
            times: times as u16,
            flags: load | Event::ADDRESS | Event::REPEATED,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(address: u64, size: u16, count: u64) -> Ref {
        Ref {
            pc: 0,
            access: Access::Store,
            size,
            recorded: true,
            address: Some(address),
            value: None,
            count,
            atomic: false,
            conditional: false,
        }
    }

    fn events(r: &Ref) -> Vec<(u64, u16)> {
        let mut all = Vec::new();
        repeated(r, 0, |event| all.push((event.data, event.times)));
        all
    }

    #[test]
    fn a_repeated_move_counts_lines() {
        assert_eq!(events(&reference(0x1010, 1, 100)), [(0x1010, 1), (0x1040, 1)]);
        assert_eq!(events(&reference(0x1000, 8, 8)), [(0x1000, 1)]);
        assert_eq!(events(&reference(0x1000, 8, 0)), []);
        let long = events(&reference(0, 1, 1 << 20));
        assert_eq!(long.len(), 256);
        assert_eq!(long.iter().map(|e| u64::from(e.1)).sum::<u64>(), (1 << 20) / 64);
        assert!(events(&reference(1 << 40, 8, u64::MAX)).len() <= 256, "a damaged log can claim anything");
        assert!(events(&reference(u64::MAX - 5, 8, u64::MAX)).len() <= 256);
    }

    #[test]
    fn narrow_values_fit_15_bits_and_a_sign() {
        for (value, size, narrow) in [
            (0u64, 4, true),
            (0x7fff, 8, true),
            (0x8000, 8, false),
            (u64::MAX, 8, true),
            (0xffff_8000, 4, true),
            (0xffff_7fff, 4, false),
            (0xffff_8000, 8, false),
            (1, 2, false),
            (1, 1, false),
            (1, 16, false),
            (i64::MIN as u64, 8, false),
        ] {
            assert_eq!(is_narrow(value, size), narrow, "{value:#x} of {size} bytes");
        }
    }
}
