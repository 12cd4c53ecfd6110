//! Code that Sonde changed in the program itself, so that checks are counted there: copies are made from what it was, and
//! only while it is what Sonde made of it.
//!
//! A changed page is no longer the file's, so that the kernel cannot tell whether the program changed it, too. A program that
//! makes a part of its code writable is seen all the same, since the kernel keeps that part as a mapping of its own from then
//! on. For all else (the whole mapping made writable, writes through `/proc/self/mem`) pages that copies were made from are
//! hashed at the begin of a burst, as often as that takes a fiftieth of the time.

use sonde_sys::memory::{MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap};
use sonde_wire::in_place::{self, Module, PAGE};

/// What was changed.
pub struct InPlace {
    /// See [`sonde_wire::in_place`]; empty until Sonde wrote it, and where nothing is changed.
    table: &'static [u64],
    /// Pages that copies were made from, one bit each, in the order of the table.
    used: &'static mut [u64],
    /// When pages were last hashed, and what that took, in ticks.
    looked: u64,
    took: u64,
}

/// The time between two looks at all pages, in what one takes.
const LOOKS_APART: u64 = 50;

/// Bytes of code as they were, or why there are none.
pub enum Original {
    /// The code is not changed.
    Same,
    /// It is, and can be read here.
    At(u64),
    /// Somebody else changed it, too.
    Unknown,
}

impl InPlace {
    /// Nothing is changed.
    pub const fn none() -> InPlace {
        InPlace { table: &[], used: &mut [], looked: 0, took: 0 }
    }

    /// With a table that Sonde writes, which has at least a word for each page. None if memory cannot be had.
    pub fn new(table: &'static [u64]) -> Option<InPlace> {
        if table.is_empty() {
            return Some(InPlace::none());
        }
        let words = table.len().div_ceil(64);
        let at = mmap(0, words * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1).ok()?;
        // SAFETY: the mapping is fresh, zeroed, large enough, and never unmapped.
        let used = unsafe { core::slice::from_raw_parts_mut(at as *mut u64, words) };
        Some(InPlace { table, used, looked: 0, took: 0 })
    }

    /// The module that holds `pc`, and how many pages come before it in the table.
    fn find(&self, pc: u64) -> Option<(Module<'static>, usize)> {
        let mut before = 0;
        for module in in_place::modules(self.table) {
            if (module.start..module.end).contains(&pc) {
                return Some((module, before));
            }
            before += module.hashes.len();
        }
        None
    }

    /// Where an instruction of the program, which is mapped, runs natively. Other code may have come to lie there since.
    pub fn runs_at(&self, pc: u64) -> u64 {
        let Some((module, _)) = self.find(pc) else { return pc };
        match module.runs_at(pc) {
            at if at != pc && is_as_made(&module, ((pc - module.start) / PAGE) as usize) => at,
            _ => pc,
        }
    }

    /// Whether the mapping that holds `pc` was changed.
    pub fn holds(&self, pc: u64) -> bool {
        self.find(pc).is_some()
    }

    /// Where code can be read as it was. Its pages count as used from now on.
    pub fn original(&mut self, pc: u64, len: u64) -> Original {
        let Some((module, before)) = self.find(pc) else { return Original::Same };
        for page in (pc - module.start) / PAGE..=(pc - module.start + len - 1) / PAGE {
            let index = before + page as usize;
            let Some(bits) = self.used.get_mut(index / 64) else { return Original::Unknown };
            if *bits >> (index % 64) & 1 == 0 {
                if !is_as_made(&module, page as usize) {
                    return Original::Unknown;
                }
                *bits |= 1 << (index % 64);
            }
        }
        Original::At(pc - module.start + module.original)
    }

    /// The first address of a module of which pages that copies were made from are not as Sonde made them, if it is time to
    /// look; `clock` gives ticks.
    pub fn changed(&mut self, clock: fn() -> u64) -> Option<u64> {
        let now = clock();
        if now.wrapping_sub(self.looked) < self.took.saturating_mul(LOOKS_APART) {
            return None;
        }
        let changed = self.first_changed();
        (self.looked, self.took) = (now, clock().wrapping_sub(now));
        changed
    }

    fn first_changed(&self) -> Option<u64> {
        let mut before = 0;
        for module in in_place::modules(self.table) {
            let used = |page: &usize| {
                let index = before + page;
                self.used.get(index / 64).is_some_and(|bits| bits >> (index % 64) & 1 != 0)
            };
            if (0..module.hashes.len()).filter(used).any(|page| !is_as_made(&module, page)) {
                return Some(module.start);
            }
            before += module.hashes.len();
        }
        None
    }

    /// No copies are left.
    pub fn forget_copies(&mut self) {
        self.used.fill(0);
    }
}

fn is_as_made(module: &Module<'_>, page: usize) -> bool {
    let Some(expected) = module.hashes.get(page) else { return false };
    let at = module.start + page as u64 * PAGE;
    // SAFETY: the mapping list says that the mapping is there and readable; it was checked at the begin of the burst.
    let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, PAGE as usize) };
    in_place::hash(bytes) == *expected
}
