//! Code by path: how often each way through a superblock was taken says all about its blocks and direct branches, so
//! that a pass costs one addition, and trees over code are made at the end.

use rustc_hash::FxHashMap;
use sonde_event::{Catalog, ExitKind, Path, Run, Superblock};
use sonde_place::{Place, Places};

/// The place of this superblock was not found yet. Regions begin at pages, so no superblock is moved by this.
const UNKNOWN: u64 = u64::MAX;

/// How often an exit was taken, and what that weighs.
#[derive(Clone, Copy, Default)]
struct Taken {
    passes: u64,
    weight: u64,
}

/// Passes by exit number, and where superblocks are.
pub(crate) struct Code {
    exits: Vec<Taken>,
    /// Place minus address, by superblock. Kept from when it first ran: later, something else may lie there.
    deltas: Vec<u64>,
    most: usize,
    /// Whether some superblock has no place.
    is_lost: bool,
    /// Weight of blocks whose passes are in no table, by place, or by the stretch they begin in where there are many.
    beyond: FxHashMap<(u64, u32), u64>,
}

/// Bytes of the stretches that blocks are counted by where there is no room for each.
const STRETCH: u32 = 256;
/// And where there is none for these.
const WIDE_STRETCH: u32 = 1 << 16;

/// A block with its weight in instructions.
pub(crate) struct Weighed {
    pub place: u64,
    pub bytes: u32,
    pub weight: u64,
}

impl Code {
    /// A table of at most so many exits.
    pub fn new(most: usize) -> Code {
        Code { exits: Vec::new(), deltas: Vec::new(), most, is_lost: false, beyond: FxHashMap::default() }
    }

    /// Counts a block that no exit in the table tells of.
    pub fn add_block(&mut self, place: u64, weight: u64) {
        let (room, stretch) = (self.most, |bytes: u32| (place & !u64::from(bytes - 1), bytes));
        let key = [(place, 1), stretch(STRETCH)].into_iter().zip([room / 4 * 3, room]);
        let key = key.filter(|(key, room)| self.beyond.len() < *room || self.beyond.contains_key(key));
        let key = key.map(|(key, _)| key).next().unwrap_or_else(|| stretch(WIDE_STRETCH));
        let known = self.beyond.entry(key).or_default();
        *known = known.saturating_add(weight);
    }

    /// Whether an exit has a number in the table.
    #[inline]
    pub fn has_room_for(&self, exit: u32) -> bool {
        (exit as usize) < self.most
    }

    /// Whether an exit was counted before, and the place of every superblock so far is known: then there is nothing to be
    /// found out about it.
    #[inline]
    pub fn knows(&self, exit: u32) -> bool {
        !self.is_lost && self.exits.get(exit as usize).is_some_and(|taken| taken.passes > 0)
    }

    /// Counts passes of the same weight by an exit that has a number in the table.
    #[inline]
    pub fn add(&mut self, exit: u32, passes: u64, weight: u64) {
        let exit = exit as usize;
        if exit >= self.exits.len() {
            self.exits.resize((exit + 1).next_power_of_two().min(self.most.max(exit + 1)), Taken::default());
        }
        let taken = &mut self.exits[exit];
        taken.passes += passes;
        taken.weight = taken.weight.saturating_add(passes.saturating_mul(weight));
    }

    /// What turns addresses of the superblock of a pass into places.
    #[inline]
    pub fn delta(&mut self, run: &Run<'_>, places: &mut Places) -> Option<u64> {
        self.delta_at(run.path.superblock, run.superblock.pc, places)
    }

    /// What turns addresses of a superblock into places.
    #[inline]
    pub fn delta_at(&mut self, superblock: u32, pc: u64, places: &mut Places) -> Option<u64> {
        match self.deltas.get(superblock as usize) {
            Some(&delta) if delta != UNKNOWN => Some(delta),
            _ => self.find_delta(superblock as usize, pc, places),
        }
    }

    #[cold]
    fn find_delta(&mut self, index: usize, pc: u64, places: &mut Places) -> Option<u64> {
        let Some(place) = places.find(pc) else {
            self.is_lost = true;
            return None;
        };
        let delta = place.0.wrapping_sub(pc);
        if index < self.most {
            if index >= self.deltas.len() {
                self.deltas.resize((index + 1).next_power_of_two(), UNKNOWN);
            }
            self.deltas[index] = delta;
        }
        Some(delta)
    }

    /// Bytes used.
    pub fn memory_bytes(&self) -> usize {
        self.exits.capacity() * size_of::<Taken>()
            + self.deltas.capacity() * 8
            + self.beyond.capacity() * (size_of::<((u64, u32), u64)>() + 1)
    }

    /// Every path that was taken, with what its superblock needs to be placed.
    fn taken<'a>(&'a self, catalog: &'a Catalog) -> impl Iterator<Item = (&'a Path, &'a Superblock, Taken)> {
        let taken = self.exits.iter().enumerate().filter(|(_, taken)| taken.passes > 0);
        taken.filter_map(|(exit, taken)| {
            let path = catalog.path(exit as u32)?;
            Some((path, catalog.superblock(path.superblock)?, *taken))
        })
    }

    /// The place of an address of a superblock, or of one that it jumps to. That lies in the same region, unless code was
    /// put together at run time.
    fn place(&self, path: &Path, superblock: &Superblock, pc: u64, places: &mut Places) -> u64 {
        let known = self.deltas.get(path.superblock as usize).filter(|delta| **delta != UNKNOWN);
        let slot = |delta: u64| Place(superblock.pc.wrapping_add(delta)).slot();
        let moved = known.map(|delta| (Place(pc.wrapping_add(*delta)), slot(*delta)));
        moved
            .filter(|(place, slot)| place.slot() == *slot)
            .map_or_else(|| places.place(pc).0, |(place, _)| place.0)
    }

    /// Every block executed, perhaps several times: a block can be part of several superblocks.
    pub fn blocks(&self, catalog: &Catalog, places: &mut Places, mut each: impl FnMut(Weighed)) {
        for (path, superblock, taken) in self.taken(catalog) {
            for block in &superblock.blocks[..path.blocks as usize] {
                let insns = u64::from(block.insns.min(path.insns.saturating_sub(block.first)));
                each(Weighed {
                    place: self.place(path, superblock, block.pc, places),
                    bytes: block.len,
                    weight: taken.weight.saturating_mul(insns),
                });
            }
        }
    }

    /// Blocks, or stretches of them, that are in no table, in order.
    pub fn blocks_beyond(&self) -> Vec<Weighed> {
        let all = self.beyond.iter();
        let mut all: Vec<Weighed> = all
            .map(|((place, bytes), weight)| Weighed { place: *place, bytes: *bytes, weight: *weight })
            .collect();
        all.sort_unstable_by_key(|block| (block.place, block.bytes));
        all
    }

    /// Every branch taken whose target is always the same, with its passes and their weight.
    pub fn edges(&self, catalog: &Catalog, places: &mut Places, mut each: impl FnMut([u64; 2], u64, u64)) {
        for (path, superblock, taken) in self.taken(catalog) {
            for [from, to] in direct_edges(path, superblock) {
                let place = |pc, places: &mut Places| self.place(path, superblock, pc, places);
                each([place(from, places), place(to, places)], taken.passes, taken.weight);
            }
        }
    }
}

/// The pc of the branch that ends a path, if the path ends by one.
pub(crate) fn branch_of_exit(path: &Path, superblock: &Superblock) -> Option<u64> {
    let branches = !matches!(path.kind, ExitKind::Syscall | ExitKind::Native | ExitKind::Fall);
    let last = superblock.insns.get(usize::from(path.insns).checked_sub(1)?)?;
    branches.then_some(last.pc)
}

/// The direct branches taken on a path: jumps that it follows, and its exit.
fn direct_edges<'a>(path: &'a Path, superblock: &'a Superblock) -> impl Iterator<Item = [u64; 2]> + 'a {
    let blocks = &superblock.blocks[..path.blocks as usize];
    let inner = blocks.windows(2).filter(|pair| pair[0].pc.wrapping_add(pair[0].len.into()) != pair[1].pc);
    let inner = inner.filter_map(|pair| {
        let last = usize::from(pair[0].first + pair[0].insns) - 1;
        Some([superblock.insns.get(last)?.pc, pair[1].pc])
    });
    let exit = branch_of_exit(path, superblock).filter(|_| path.target != 0);
    inner.chain(exit.map(|from| [from, path.target]))
}
