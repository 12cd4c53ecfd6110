//! Finds room for stubs beside a module: they reach each other by distances of 32 bits.

use sonde_event::maps::Mapping;

/// As far as everything of a module may be from everything of its stubs.
const REACH: u64 = (1 << 31) - (1 << 20);
/// What is left free between stubs and the mapping above: a stack or heap may want to grow a little.
const APART: u64 = 64 << 10;
/// Bytes of a large page.
const LARGE_PAGE: u64 = 2 << 20;
/// Below this nothing can be mapped.
const LOWEST: u64 = 64 << 10;

/// An address for `len` bytes within reach of `start..end`: below it if there is room, because the heap grows above
/// programs, else as high as possible.
pub fn beside(mappings: &[Mapping], start: u64, end: u64, len: u64) -> Option<u64> {
    let unit = unit(len);
    let len = len.next_multiple_of(unit) + unit + APART;
    let (low, high) = (end.saturating_sub(REACH).max(LOWEST), start.saturating_add(REACH));
    let mut gaps = Vec::new();
    let mut from = low;
    for mapping in mappings {
        gaps.push((from, mapping.start.min(high)));
        from = from.max(mapping.end);
    }
    gaps.push((from, high));
    let fits = |(from, to): &&(u64, u64)| *to > *from && to - from >= len;
    let below = gaps.iter().filter(|gap| gap.1 <= start).rev().find(fits);
    let found = below.or_else(|| gaps.iter().rev().find(fits))?;
    Some((found.1 - len).next_multiple_of(unit))
}

/// What addresses and lengths of so many bytes are multiples of: large pages, if it is worth it.
pub fn unit(len: u64) -> u64 {
    if len >= LARGE_PAGE / 2 { LARGE_PAGE } else { 4096 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping { start, end, ..Mapping::default() }
    }

    #[test]
    fn below_if_there_is_room_else_as_high_as_possible() {
        let all = [mapping(0x40_0000, 0x60_0000), mapping(0x7000_0000_0000, 0x7000_0010_0000)];
        assert_eq!(beside(&all, 0x40_0000, 0x60_0000, 0x1000), Some(0x40_0000 - 0x2000 - APART));
        let high = beside(&all, 0x40_0000, 0x60_0000, 0x100_0000).unwrap();
        assert!(high > 0x7000_0000 && high + 0x100_0000 < 0x40_0000 + (1 << 31), "{high:x}");
        let library = beside(&all, 0x7000_0000_0000, 0x7000_0010_0000, 0x5000).unwrap();
        assert_eq!(library, 0x7000_0000_0000 - 0x6000 - APART);
        // Neighbours.
        let all =
            [mapping(0x10_0000, 0x20_0000), mapping(0x20_0000, 0x30_0000), mapping(0x30_0000, 0x9000_0000)];
        let at = beside(&all, 0x20_0000, 0x30_0000, 0x1000).unwrap();
        assert!(at + 0x1000 <= 0x10_0000, "{at:x}");
        assert_eq!(beside(&[mapping(0, u64::MAX)], 0x20_0000, 0x30_0000, 1), None);
    }
}
