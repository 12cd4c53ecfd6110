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
    /// The time, and in its lowest bits the way: so the least of a set says where it is.
    used: u64,
}

impl Held {
    #[inline(always)]
    fn new(line: u64, now: u64, way: u64) -> Held {
        Held { line, used: now << WAY_BITS | way }
    }

    #[inline(always)]
    fn way_of(used: u64) -> u64 {
        used & ((1 << WAY_BITS) - 1)
    }
}

/// When a line was used last, if a set holds it, and the earliest that any was. Every way is looked at: where the line is
/// cannot be predicted.
#[inline(always)]
fn look<'a>(set: impl IntoIterator<Item = &'a Held>, line: u64) -> (Option<u64>, u64) {
    let (mut found, mut oldest) = (u64::MAX, u64::MAX);
    for held in set {
        oldest = oldest.min(held.used);
        found = std::hint::select_unpredictable(held.line == line, held.used, found);
    }
    ((found != u64::MAX).then_some(found), oldest)
}

/// The lines that a level holds.
pub struct Recent {
    /// Sets one after another.
    held: Vec<Held>,
    /// By the low bits of a line: the way of its set that may hold it. A byte each: they are looked at all over the table.
    guesses: Vec<u8>,
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
            held: (0..lines).map(|place| Held::new(EMPTY, 0, (place % ways) as u64)).collect(),
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

    /// Where the set of a line begins.
    #[inline(always)]
    fn start(&self, line: u64) -> usize {
        (line & self.mask) as usize * self.ways
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
        let way = self.guesses[line as usize & last];
        let place = self.start(line) + usize::from(way);
        match self.held.get_mut(place) {
            Some(held) if held.line == line => {
                *held = Held::new(line, now, way.into());
                true
            }
            _ => false,
        }
    }

    /// Uses a line that is not where it was guessed to be.
    #[inline(never)]
    pub fn search(&mut self, line: u64, now: u64) -> bool {
        let start = self.start(line);
        let set = &mut self.held[start..start + self.ways];
        // Numbers of ways that are known beforehand take half the time.
        let (found, oldest) = match set.len() {
            8 => look(set.first_chunk::<8>().into_iter().flatten(), line),
            16 => look(set.first_chunk::<16>().into_iter().flatten(), line),
            _ => look(&*set, line),
        };
        let way = Held::way_of(found.unwrap_or(oldest));
        set[way as usize] = Held::new(line, now, way);
        let last = self.guesses.len() - 1;
        self.guesses[line as usize & last] = way as u8;
        found.is_some()
    }

    /// Bytes that such a level uses.
    pub fn bytes(geometry: Geometry) -> usize {
        lines(geometry) as usize * 16 + guesses(geometry)
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.held.len() * 16 + self.guesses.len()
    }
}

fn lines(geometry: Geometry) -> u64 {
    geometry.sets() * u64::from(geometry.ways)
}

fn guesses(geometry: Geometry) -> usize {
    (lines(geometry) * GUESSES).next_power_of_two().min(MOST_GUESSES) as usize
}
