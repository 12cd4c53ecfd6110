//! One level: sets of lines, of which the one that was used least recently goes.
//!
//! Each line has a place and the time of its last use. Where a line lies is guessed from where it was found last, and the
//! guess is checked: a hit is a comparison and a store. Rejected: sets in the order of their use, which mispredicts for
//! every other reference how far a line has to move; comparing all ways of a set each time.

use crate::config::Geometry;

/// No line: line numbers have at most 61 bits.
const EMPTY: u64 = u64::MAX;
/// Guesses for each line that the level holds, and most of them.
const GUESSES: u64 = 4;
const MOST_GUESSES: u64 = 1 << 16;
/// Bits of the time of a use that hold the way: there are at most 64, and the oldest use of a set then tells which it is.
const WAY_BITS: u32 = 6;

/// The lines that a level holds.
pub struct Recent {
    /// Sets one after another.
    lines: Vec<u64>,
    /// When each was used last, and its way.
    used: Vec<u64>,
    /// By the low bits of a line: where it may be held.
    guesses: Vec<u32>,
    /// Uses so far.
    now: u64,
    ways: usize,
    mask: u64,
    shift: u32,
}

impl Recent {
    /// An empty level.
    pub fn new(geometry: Geometry) -> Recent {
        let ways = geometry.ways as usize;
        let lines = lines(geometry) as usize;
        Recent {
            lines: vec![EMPTY; lines],
            used: (0..lines).map(|place| (place % ways) as u64).collect(),
            guesses: vec![0; guesses(geometry)],
            now: 0,
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

    /// Uses a line; false if it had to be brought in.
    #[inline(always)]
    pub fn touch(&mut self, line: u64) -> bool {
        self.now += 1;
        let last = self.guesses.len() - 1;
        let place = self.guesses[line as usize & last] as usize;
        if self.lines.get(place) == Some(&line) {
            let used = &mut self.used[place];
            *used = self.now << WAY_BITS | *used & ((1 << WAY_BITS) - 1);
            return true;
        }
        self.search(line)
    }

    /// The same where the guess was wrong.
    #[inline(never)]
    fn search(&mut self, line: u64) -> bool {
        let start = (line & self.mask) as usize * self.ways;
        let (lines, used) = (&self.lines[start..start + self.ways], &self.used[start..start + self.ways]);
        // Every way is looked at: where the line is cannot be predicted.
        let found =
            lines.iter().enumerate().fold(0u64, |found, (way, held)| found | u64::from(*held == line) << way);
        let oldest = used.iter().fold(u64::MAX, |oldest, used| oldest.min(*used)) & ((1 << WAY_BITS) - 1);
        let way = if found != 0 { u64::from(found.trailing_zeros()) } else { oldest };
        let place = start + way as usize;
        self.lines[place] = line;
        self.used[place] = self.now << WAY_BITS | way;
        let last = self.guesses.len() - 1;
        self.guesses[line as usize & last] = place as u32;
        found != 0
    }

    /// Bytes that such a level uses.
    pub fn bytes(geometry: Geometry) -> usize {
        lines(geometry) as usize * 16 + guesses(geometry) * 4
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        (self.lines.len() + self.used.len()) * 8 + self.guesses.len() * 4
    }
}

fn lines(geometry: Geometry) -> u64 {
    geometry.sets() * u64::from(geometry.ways)
}

fn guesses(geometry: Geometry) -> usize {
    (lines(geometry) * GUESSES).next_power_of_two().min(MOST_GUESSES) as usize
}
