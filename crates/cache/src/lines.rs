//! One level: sets of lines, the most recently used first.

use crate::config::Geometry;

/// No line: line numbers have at most 61 bits.
const EMPTY: u64 = u64::MAX;

/// The lines that a level holds.
pub struct Lines {
    /// Sets one after another; within a set the order is that of use, which is all that replacement needs.
    lines: Vec<u64>,
    ways: usize,
    mask: u64,
    shift: u32,
}

impl Lines {
    /// An empty level.
    pub fn new(geometry: Geometry) -> Lines {
        let ways = geometry.ways as usize;
        Lines {
            lines: vec![EMPTY; geometry.sets() as usize * ways],
            ways,
            mask: geometry.sets() - 1,
            shift: geometry.line.trailing_zeros(),
        }
    }

    /// The number of the line that holds an address.
    #[inline(always)]
    pub fn line(&self, address: u64) -> u64 {
        address >> self.shift
    }

    /// The first address of a line.
    #[inline(always)]
    pub fn address(&self, line: u64) -> u64 {
        line << self.shift
    }

    /// Whether the line is the one used last in its set: then nothing changes by using it again.
    #[inline(always)]
    pub fn is_newest(&self, line: u64) -> bool {
        self.lines[(line & self.mask) as usize * self.ways] == line
    }

    /// Uses a line; false if it had to be brought in.
    #[inline]
    pub fn touch(&mut self, line: u64) -> bool {
        let start = (line & self.mask) as usize * self.ways;
        // Each line moves one place back until the one in use is met, mostly near the front.
        let mut moving = line;
        for held in &mut self.lines[start..start + self.ways] {
            moving = std::mem::replace(held, moving);
            if moving == line {
                return true;
            }
        }
        false
    }

    /// Bytes that such a level uses.
    pub fn bytes(geometry: Geometry) -> usize {
        geometry.sets() as usize * geometry.ways as usize * 8
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.lines.len() * 8
    }
}
