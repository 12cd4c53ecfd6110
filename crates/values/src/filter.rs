//! What is wanted of the stream, as plain data that a recorder can apply at the source (section 3.2, figure 3): the
//! less is wanted, the less a program is slowed down.

use crate::error::{ValuesError, within};
use crate::hash::{FUNCTIONS, hash};
use sonde_wire::unwatched;

/// Decides by pc whether a load is to be recorded.
pub trait SourceFilter {
    /// Whether the load at this pc is wanted.
    fn wants(&self, pc: u64) -> bool;
    /// Changes whenever an answer may have changed; never 0. Who asks can keep answers, per superblock say, until then.
    fn version(&self) -> u64;
    /// Whether nothing at all is wanted.
    fn closed(&self) -> bool {
        false
    }
}

/// The first pc filter: one of 2^n parts of the program, n being the ones in the mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Which hash function.
    pub function: u8,
    /// Bits of the hash that are looked at.
    pub mask: u32,
    /// What they have to be.
    pub matches: u32,
}

/// No part is smaller than a 2^16th of the program.
const MOST_BITS: u32 = 16;

impl Partition {
    /// The whole program.
    pub fn whole(function: u8) -> Partition {
        Partition { function, mask: 0, matches: 0 }
    }

    /// Whether a pc is in this part.
    #[inline]
    pub fn holds(&self, pc: u64) -> bool {
        self.mask == 0 || hash(pc, self.function) & self.mask == self.matches
    }

    /// The part of twice the size that holds this one; the whole program has none above it.
    pub fn parent(&self) -> Partition {
        let mask = self.mask >> 1;
        Partition { mask, matches: self.matches & mask, ..*self }
    }

    /// Whether all of another part is in this one.
    pub fn contains(&self, other: &Partition) -> bool {
        self.function == other.function
            && other.mask & self.mask == self.mask
            && other.matches & self.mask == self.matches
    }

    /// Two or four parts of this part; none if it is too small for that.
    pub fn split(&self, by_four: bool) -> Vec<Partition> {
        let (bits, more) = (self.mask.count_ones(), if by_four { 2 } else { 1 });
        if bits + more > MOST_BITS {
            return Vec::new();
        }
        let mask = self.mask << more | ((1 << more) - 1);
        (0..1 << more).map(|part| Partition { mask, matches: self.matches | part << bits, ..*self }).collect()
    }
}

/// The second pc filter: a bit per hash of a pc. Instructions that share a bit are masked together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTable {
    function: u8,
    bits: Vec<u64>,
    set: u64,
}

impl BitTable {
    /// A table of 2^`log2` bits, none set.
    pub fn new(log2: u32) -> Result<BitTable, ValuesError> {
        within("log2 of the bits of the mask", f64::from(log2), 6.0, 30.0)?;
        Ok(BitTable { function: 1, bits: vec![0; 1 << (log2 - 6)], set: 0 })
    }

    #[inline]
    fn place(&self, pc: u64) -> (usize, u64) {
        unwatched::place(pc, self.function, self.bits.len())
    }

    /// Whether a pc is masked.
    #[inline]
    pub fn is_set(&self, pc: u64) -> bool {
        let (word, bit) = self.place(pc);
        self.bits[word] & bit != 0
    }

    /// Masks a pc; whether its bit was not set before.
    pub fn set(&mut self, pc: u64) -> bool {
        let (word, bit) = self.place(pc);
        let new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        self.set += u64::from(new);
        new
    }

    /// Unmasks everything and goes on to the next hash function, so that other instructions share bits.
    pub fn clear(&mut self) {
        self.bits.fill(0);
        self.set = 0;
        self.function = (self.function + 1) % FUNCTIONS;
    }

    /// Bits that are set.
    pub fn count(&self) -> u64 {
        self.set
    }

    /// Which hash function is in use.
    pub fn function(&self) -> u8 {
        self.function
    }

    /// The bits, in words.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bits.capacity() * 8
    }
}

/// Both filters together, as the slots steer them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcFilters {
    pub(crate) partition: Partition,
    pub(crate) masked: BitTable,
    pub(crate) closed: bool,
    /// While there is a glance: this part is wanted, masked or not.
    pub(crate) glance: Option<Partition>,
    pub(crate) version: u64,
}

impl PcFilters {
    /// Everything is wanted.
    pub fn new(mask_log2: u32) -> Result<PcFilters, ValuesError> {
        let masked = BitTable::new(mask_log2)?;
        Ok(PcFilters { partition: Partition::whole(0), masked, closed: false, glance: None, version: 1 })
    }

    /// The part of the program that is wanted now.
    pub fn partition(&self) -> Partition {
        self.partition
    }

    /// The instructions that are not wanted any more.
    pub fn masked(&self) -> &BitTable {
        &self.masked
    }
}

impl SourceFilter for PcFilters {
    #[inline]
    fn wants(&self, pc: u64) -> bool {
        match self.glance {
            Some(part) => part.holds(pc),
            None => !self.closed && self.partition.holds(pc) && !self.masked.is_set(pc),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn closed(&self) -> bool {
        self.closed && self.glance.is_none()
    }
}

/// The same without a table to share: what a recorder is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMask {
    /// The part that is wanted.
    pub partition: Partition,
    /// Loads of it that are not wanted, ascending.
    pub masked: Vec<u64>,
    /// Whether nothing is wanted at all.
    pub closed: bool,
    /// Which version of the filters this is.
    pub version: u64,
}

impl SourceFilter for SourceMask {
    fn wants(&self, pc: u64) -> bool {
        !self.closed && self.partition.holds(pc) && self.masked.binary_search(&pc).is_err()
    }

    fn version(&self) -> u64 {
        self.version.max(1)
    }

    fn closed(&self) -> bool {
        self.closed
    }
}

/// Recorded loads over a stretch of the stream: how the filters close as the profile converges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Loads executed since the beginning, at the end of the stretch.
    pub loads: u64,
    /// Loads executed in the stretch that were recorded with their value; the others were masked at the source.
    pub logged: u64,
    /// Loads executed in the stretch that were recorded and passed the filters.
    pub recorded: u64,
    /// Superblock passes in the stretch.
    pub passes: u64,
    /// Of them, those with nothing wanted: nothing of them need have been recorded.
    pub skipped: u64,
}

/// Most stretches kept.
pub const STRETCHES: usize = 64;

/// Recorded loads per stretch, in bounded memory: when there are too many stretches, two become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCurve {
    stretch: u64,
    done: Vec<Recorded>,
    open: Recorded,
    next: u64,
}

impl RecordedCurve {
    /// A curve with a point about every `stretch` loads, until they get too many.
    pub fn new(stretch: u64) -> RecordedCurve {
        let stretch = stretch.max(1);
        RecordedCurve { stretch, done: Vec::new(), open: Recorded::default(), next: stretch }
    }

    /// A pass with so many loads, of which so many were in the stream, and of those so many passed the filters.
    #[inline]
    pub fn pass(&mut self, loads: u64, logged: u64, recorded: u64) {
        let open = &mut self.open;
        open.loads += loads;
        open.logged += logged;
        open.recorded += recorded;
        open.passes += 1;
        open.skipped += u64::from(recorded == 0);
        if open.loads >= self.next {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        let loads = self.open.loads;
        self.done.push(std::mem::replace(&mut self.open, Recorded { loads, ..Recorded::default() }));
        if self.done.len() >= STRETCHES {
            self.stretch *= 2;
            self.done = self.done.chunks(2).map(|pair| join(pair[0], pair.get(1).copied())).collect();
        }
        self.next = loads + self.stretch;
    }

    /// The points so far.
    pub fn points(&self) -> Vec<Recorded> {
        let open = (self.open.passes > 0).then_some(self.open);
        self.done.iter().copied().chain(open).collect()
    }
}

fn join(a: Recorded, b: Option<Recorded>) -> Recorded {
    b.map_or(a, |b| Recorded {
        loads: b.loads,
        logged: a.logged + b.logged,
        recorded: a.recorded + b.recorded,
        passes: a.passes + b.passes,
        skipped: a.skipped + b.skipped,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_what_was_split_and_do_not_overlap() {
        let whole = Partition::whole(0);
        let quarters = whole.split(true);
        assert_eq!(
            quarters.iter().map(|p| (p.mask, p.matches)).collect::<Vec<_>>(),
            [(3, 0), (3, 1), (3, 2), (3, 3)]
        );
        let halves = quarters[2].split(false);
        assert_eq!(halves.iter().map(|p| (p.mask, p.matches)).collect::<Vec<_>>(), [(7, 2), (7, 6)]);
        for pc in (0..4000u64).map(|i| 0x5000 + 3 * i) {
            assert_eq!(quarters.iter().filter(|p| p.holds(pc)).count(), 1);
            assert_eq!(halves.iter().filter(|p| p.holds(pc)).count(), usize::from(quarters[2].holds(pc)));
        }
    }

    #[test]
    fn parents_hold_their_parts() {
        let whole = Partition::whole(0);
        let parts: Vec<Partition> = whole.split(true).iter().flat_map(|p| p.split(false)).collect();
        for part in &parts {
            let parent = part.parent();
            let children = parts.iter().filter(|p| parent.contains(p)).count();
            assert_eq!(children, 2, "{part:?}");
            assert!(parent.contains(part) && !part.contains(&parent) && whole.contains(&parent));
        }
        assert_eq!(whole.parent(), whole);
    }

    #[test]
    fn splitting_ends() {
        let mut part = Partition::whole(0);
        let mut splits = 0;
        while let Some(first) = part.split(false).first() {
            part = *first;
            splits += 1;
        }
        assert_eq!(splits, MOST_BITS);
    }

    #[test]
    fn masked_pcs_are_not_wanted_until_all_are_cleared() {
        let mut filters = PcFilters::new(10).unwrap();
        assert!(filters.wants(0x40));
        assert!(filters.masked.set(0x40));
        assert!(!filters.masked.set(0x40));
        assert!(!filters.wants(0x40));
        assert_eq!(filters.masked().count(), 1);
        filters.masked.clear();
        assert!(filters.wants(0x40));
    }

    #[test]
    fn the_next_hash_function_parts_those_that_shared_a_bit() {
        let mut table = BitTable::new(6).unwrap();
        table.set(0);
        let shared: Vec<u64> = (1..2000).filter(|pc| table.is_set(*pc)).collect();
        assert!(shared.len() > 10, "one bit of 64");
        table.clear();
        table.set(0);
        let still = shared.iter().filter(|pc| table.is_set(**pc)).count();
        assert!(still * 5 < shared.len(), "{still} of {}", shared.len());
    }

    #[test]
    fn curves_keep_their_sums_when_stretches_are_joined() {
        let mut curve = RecordedCurve::new(10);
        for i in 0..10_000u64 {
            curve.pass(3, 2, i % 2);
        }
        let points = curve.points();
        assert!(points.len() <= STRETCHES && points.len() >= STRETCHES / 2);
        assert_eq!(points.last().unwrap().loads, 30_000);
        assert_eq!(points.iter().map(|p| p.logged).sum::<u64>(), 20_000);
        assert_eq!(points.iter().map(|p| p.recorded).sum::<u64>(), 5_000);
        assert_eq!(points.iter().map(|p| p.skipped).sum::<u64>(), 5_000);
        assert!(points.windows(2).all(|p| p[0].loads < p[1].loads));
    }
}
