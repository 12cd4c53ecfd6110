//! One level: sets of lines, of which the one that was used least recently goes.
//!
//! Each line has a place and the time of its last use. Where a line lies is guessed from where it was found last, and the
//! guess is checked: a hit is a comparison and a store. Rejected: sets in the order of their use, which mispredicts for
//! every other reference how far a line has to move; comparing all ways of a set each time.
//!
//! A level can be [forgotten](Recent::forget). What it holds then is not known until so many lines of a set were used that
//! they fill it: a line that is not among those is surely not there.

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

/// What became of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The line was there.
    Hit,
    /// It had to be brought in.
    Miss,
    /// Nobody knows: it was not used since all was forgotten, and its set has room for lines of before.
    Unknown,
}

/// The lines that a level holds.
pub struct Recent {
    /// Sets one after another.
    held: Vec<Held>,
    /// By the low bits of a line: the way of its set that may hold it. A byte each: they are looked at all over the table.
    guesses: Vec<u8>,
    /// Places that hold a line, in the order in which they got their first one.
    filled: Vec<u32>,
    /// Whether a place without a line may hold one of before.
    forgotten: bool,
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
            filled: Vec::with_capacity(lines),
            forgotten: false,
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

    /// Uses a line, later than all before.
    #[inline]
    pub fn touch(&mut self, line: u64, now: u64) -> Use {
        if self.hit(line, now) { Use::Hit } else { self.search(line, now) }
    }

    /// Something unknown happened to every line: all that is known is what is used from now on.
    pub fn forget(&mut self) {
        self.forgotten = true;
        let ways = self.ways;
        for place in self.filled.drain(..) {
            let place = place as usize;
            self.held[place] = Held::new(EMPTY, 0, (place % ways) as u64);
        }
    }

    /// When a line was used last, if it is held; and when the oldest of its set was, if lines that were used fill the set.
    pub fn times(&self, line: u64) -> (Option<u64>, Option<u64>) {
        let start = self.start(line);
        let (found, oldest) = look(&self.held[start..start + self.ways], line);
        let oldest = oldest >> WAY_BITS;
        (found.map(|used| used >> WAY_BITS), (oldest > 0).then_some(oldest))
    }

    /// The number of the set of a line, and how many there are.
    pub fn set(&self, line: u64) -> (usize, usize) {
        ((line & self.mask) as usize, self.mask as usize + 1)
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
    pub fn search(&mut self, line: u64, now: u64) -> Use {
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
        let has_room = oldest >> WAY_BITS == 0;
        if found.is_some() {
            return Use::Hit;
        }
        if has_room {
            self.filled.push((start + way as usize) as u32);
        }
        if has_room && self.forgotten { Use::Unknown } else { Use::Miss }
    }

    /// Bytes that such a level uses.
    pub fn bytes(geometry: Geometry) -> usize {
        lines(geometry) as usize * (16 + 4) + guesses(geometry)
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.held.len() * 16 + self.filled.capacity() * 4 + self.guesses.len()
    }
}

fn lines(geometry: Geometry) -> u64 {
    geometry.sets() * u64::from(geometry.ways)
}

fn guesses(geometry: Geometry) -> usize {
    (lines(geometry) * GUESSES).next_power_of_two().min(MOST_GUESSES) as usize
}
