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
/// Bits for a way: there are at most 64.
const WAY_BITS: u32 = 6;

/// A line that is held, and when it was used last; 0: never. Side by side: a hit looks at both.
#[derive(Clone, Copy)]
struct Held {
    line: u64,
    used: u64,
}

/// The lines that a level holds.
pub struct Recent {
    /// Sets one after another.
    held: Vec<Held>,
    /// By the low bits of a line: where it may be held.
    guesses: Vec<u32>,
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
            held: vec![Held { line: EMPTY, used: 0 }; lines],
            guesses: vec![0; guesses(geometry)],
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

    /// Uses a line, later than all before; false if it had to be brought in.
    #[inline]
    pub fn touch(&mut self, line: u64, now: u64) -> bool {
        self.hit(line, now) || self.search(line, now)
    }

    /// Uses a line if it is where it is guessed to be. The time is told and not kept here: loops have it in a register.
    #[inline(always)]
    pub fn hit(&mut self, line: u64, now: u64) -> bool {
        let last = self.guesses.len() - 1;
        let place = self.guesses[line as usize & last] as usize;
        match self.held.get_mut(place) {
            Some(held) if held.line == line => {
                held.used = now;
                true
            }
            _ => false,
        }
    }

    /// Uses a line that is not where it was guessed to be.
    #[inline(never)]
    pub fn search(&mut self, line: u64, now: u64) -> bool {
        let start = (line & self.mask) as usize * self.ways;
        let set = &self.held[start..start + self.ways];
        // Every way is looked at: where the line is cannot be predicted.
        let (mut found, mut oldest) = (0u64, u64::MAX);
        for (way, held) in (0..).zip(set) {
            found |= u64::from(held.line == line) << way;
            oldest = oldest.min(held.used << WAY_BITS | way);
        }
        let way = if found != 0 { found.trailing_zeros().into() } else { oldest & ((1 << WAY_BITS) - 1) };
        let place = start + way as usize;
        self.held[place] = Held { line, used: now };
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
        self.held.len() * 16 + self.guesses.len() * 4
    }
}

fn lines(geometry: Geometry) -> u64 {
    geometry.sets() * u64::from(geometry.ways)
}

fn guesses(geometry: Geometry) -> usize {
    (lines(geometry) * GUESSES).next_power_of_two().min(MOST_GUESSES) as usize
}
