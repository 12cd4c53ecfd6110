//! The table of indirect branches by the whole pc, for the checking copy of counter mode ([`sonde_x64::emit::Whole`]).
//!
//! A number for each low half of a pc takes 16 GiB of address space, of which only what belongs to executable mappings can be
//! touched at all: a program that locks all its memory does not get the rest, and a jump to where there is no code faults on
//! the way. Where the address space cannot be had (a limit on it, something else below 18 GiB, a program that wants it for
//! itself), there is no such table.

use crate::filling::Table;
use sonde_sys::memory::*;
use sonde_x64::emit::Way;

/// Bytes of a number.
const NUMBER: u64 = 4;
/// Bytes that numbers for all low halves take.
const SPAN: u64 = NUMBER << 32;
/// Where they begin: as high as an instruction can name it, to leave the first 2 GiB to the program.
const NUMBERS: u64 = 0x7ff0_0000;
const PAGE: u64 = 4096;

/// What is known of a page of numbers.
const CLOSED: u8 = 0;
const OPEN: u8 = 1;
const TOUCHED: u8 = 2;

/// Number of what has no copy, and of that which is known to lie behind a call.
const NONE: u32 = 0;
const AFTER_CALL: u32 = 1;

/// The number of the superblock with this index, by which its entry points are found.
fn number(index: usize) -> u32 {
    index as u32 + 2
}

/// The table.
pub struct WholeTable {
    /// Where the entry points lie, by way and number.
    pub entries: [*mut u64; Way::COUNT],
    /// A byte for each page of numbers: [`CLOSED`], [`OPEN`] or [`TOUCHED`].
    pages: *mut u8,
    /// The pages that hold numbers, and how many may.
    touched: Table<u32>,
}

impl WholeTable {
    /// Address of the numbers.
    pub const NUMBERS: u32 = NUMBERS as u32;

    /// A table for this many superblocks, whose numbers take at most `bytes`. `missed` are the
    /// entry points of what has no copy.
    pub fn new(superblocks: usize, bytes: usize, missed: [u64; Way::COUNT]) -> Option<WholeTable> {
        if wants_the_place(c"/proc/self/exe") { None } else { WholeTable::make(superblocks, bytes, missed) }
    }

    fn make(superblocks: usize, bytes: usize, missed: [u64; Way::COUNT]) -> Option<WholeTable> {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let each = number(superblocks) as usize * 8;
        let room = each * Way::COUNT;
        let entries = mmap(0, room, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1).ok()?;
        let numbers = mmap(NUMBERS as usize, SPAN as usize, 0, flags | MAP_FIXED_NOREPLACE, -1).ok();
        let pages = mmap(0, (SPAN / PAGE) as usize, PROT_READ | PROT_WRITE, flags, -1).ok();
        if entries + room > 1 << 31 || numbers != Some(NUMBERS as usize) || pages.is_none() {
            for (at, len) in
                [(Some(entries), room), (numbers, SPAN as usize), (pages, (SPAN / PAGE) as usize)]
            {
                // SAFETY: just mapped, and used by nobody.
                let _ = at.map(|at| unsafe { munmap(at, len) });
            }
            return None;
        }
        // Code lies scattered in it: a large page would be for little of it.
        let _ = prefer_small_pages(NUMBERS as usize, SPAN as usize);
        let entries = core::array::from_fn(|way| (entries + way * each) as *mut u64);
        let mut table =
            WholeTable { entries, pages: pages? as *mut u8, touched: Table::new(bytes / PAGE as usize)? };
        table.set_entries(NONE, missed);
        table.set_entries(AFTER_CALL, missed);
        Some(table)
    }

    /// Lets the code between two addresses have numbers.
    pub fn open(&mut self, start: u64, end: u64) {
        let len = ((end - start) * NUMBER).min(SPAN);
        let from = (start & 0xffff_ffff) * NUMBER;
        let first = len.min(SPAN - from);
        for (from, len) in [(from, first), (0, len - first)] {
            let (from, to) = (from & !(PAGE - 1), (from + len).next_multiple_of(PAGE));
            if len == 0 || (from / PAGE..to / PAGE).all(|page| self.page(page) != CLOSED) {
                continue;
            }
            // SAFETY: the pages are ours; that they could not be touched before is relied on by nobody.
            let opened =
                unsafe { mprotect((NUMBERS + from) as usize, (to - from) as usize, PROT_READ | PROT_WRITE) };
            for page in from / PAGE..to / PAGE {
                if opened.is_ok() && self.page(page) == CLOSED {
                    self.set_page(page, OPEN);
                }
            }
        }
    }

    fn page(&self, page: u64) -> u8 {
        // SAFETY: there is a byte for each page of the span.
        unsafe { *self.pages.add((page % (SPAN / PAGE)) as usize) }
    }

    fn set_page(&self, page: u64, state: u8) {
        // SAFETY: as above.
        unsafe { *self.pages.add((page % (SPAN / PAGE)) as usize) = state };
    }

    /// Bytes that the numbers take, with one more page that the next one may need and one for what comes behind a call.
    pub fn bytes(&self) -> u64 {
        (self.touched.len as u64 + 2) * PAGE
    }

    /// Tells the entry points of the superblock with this index.
    pub fn enter(&mut self, index: usize, ways: [u64; Way::COUNT]) {
        self.set_entries(number(index), ways);
    }

    fn set_entries(&mut self, number: u32, ways: [u64; Way::COUNT]) {
        for (table, at) in self.entries.into_iter().zip(ways) {
            // SAFETY: the tables were made for that many superblocks. Volatile, so that it comes before the number is told.
            unsafe { table.add(number as usize).write_volatile(at) };
        }
    }

    /// Leads branches to `pc` to the superblock with this index.
    pub fn lead(&mut self, pc: u64, index: usize) {
        self.set(pc, number(index));
    }

    /// Remembers that returns come to `pc`, if it has no copy.
    pub fn expect_return(&mut self, pc: u64) {
        if self.get(pc) == NONE {
            self.set(pc, AFTER_CALL);
        }
    }

    /// Whether returns are expected at `pc`, which has no copy yet.
    pub fn is_after_call(&self, pc: u64) -> bool {
        self.get(pc) == AFTER_CALL
    }

    fn get(&self, pc: u64) -> u32 {
        let offset = (pc & 0xffff_ffff) * NUMBER;
        if self.page(offset / PAGE) != TOUCHED {
            return NONE;
        }
        // SAFETY: the page is open.
        unsafe { *((NUMBERS + offset) as *const u32) }
    }

    fn set(&mut self, pc: u64, number: u32) {
        let offset = (pc & 0xffff_ffff) * NUMBER;
        match self.page(offset / PAGE) {
            // The kernel did not let us: branches to there fault, and are led on by that.
            CLOSED => return,
            OPEN if !self.touched.push((offset / PAGE) as u32) => return,
            OPEN => self.set_page(offset / PAGE, TOUCHED),
            _ => {}
        }
        // SAFETY: the page is open; other threads read the aligned word whole.
        unsafe { ((NUMBERS + offset) as *mut u32).write_volatile(number) };
    }

    /// Takes all numbers back. Threads may be looking: they find 0.
    pub fn clear(&mut self) {
        // SAFETY: these pages are private, and nobody needs what is in them.
        let discarded = unsafe { discard(NUMBERS as usize, SPAN as usize) }.is_ok();
        for page in (0..self.touched.len).filter_map(|i| self.touched.get(i)) {
            if !discarded {
                // A program that locked its memory keeps these pages.
                // SAFETY: the page is open, and holds 1,024 numbers.
                unsafe { core::ptr::write_bytes((NUMBERS + u64::from(page) * PAGE) as *mut u32, 0, 1024) };
            }
            self.set_page(u64::from(page), OPEN);
        }
        self.touched.len = 0;
    }
}

/// What a program built with AddressSanitizer calls when it begins. Its shadow memory has to lie where the numbers would, and
/// it ends if anything is there.
const SANITIZER: &[u8] = b"__asan_init\0";
/// How much of a file is looked at. The names of what it calls lie near its begin.
const NAMES_END: u64 = 4 << 20;

/// Whether a program keeps something of its own where the numbers would lie.
fn wants_the_place(program: &core::ffi::CStr) -> bool {
    let Ok(file) = File::open(program) else { return false };
    let (mut part, mut at) = ([0u8; 4096], 0);
    while at < NAMES_END {
        let got = match file.read_at(&mut part, at) {
            Ok(got) if got >= SANITIZER.len() => got,
            _ => return false,
        };
        let begins = |i: &usize| part[*i] == SANITIZER[0] && part[*i..got].starts_with(SANITIZER);
        if (0..got).any(|i| begins(&i)) {
            return true;
        }
        // A name may lie across the end.
        at += (got - (SANITIZER.len() - 1)) as u64;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test for all: there is one place for the numbers of a process.
    #[test]
    fn numbers_lead_to_entries_until_they_are_taken_back() {
        let missed = [1, 2, 3];
        // Not `new`: the name that it looks for is in this program.
        let mut table = WholeTable::make(100, 1 << 20, missed).expect("there is room below 18 GiB");
        assert!(WholeTable::make(100, 1 << 20, missed).is_none(), "not twice");
        let entry = |table: &WholeTable, pc: u64, way: Way| {
            // SAFETY: both tables are mapped there.
            unsafe { *table.entries[way as usize].add(table.get(pc) as usize) }
        };
        // The second mapping goes on behind the last low half.
        let (low, wrapping) = (0x7f00_0040_1000, 0x55ff_ffff_f000);
        table.open(low, low + 0x3000);
        table.open(wrapping, wrapping + 0x2000);
        for (i, pc) in [low, low + 0x2fff, wrapping, wrapping + 0x1fff].into_iter().enumerate() {
            assert_eq!(entry(&table, pc, Way::Plain), 1);
            table.expect_return(pc);
            assert!(table.is_after_call(pc));
            assert_eq!(entry(&table, pc, Way::Return), 3);
            let at = 1000 * (i as u64 + 1);
            table.enter(i, [at, at + 1, at + 2]);
            table.lead(pc, i);
            table.expect_return(pc);
            assert!(!table.is_after_call(pc), "it has a copy");
            let found = [Way::Plain, Way::Checked, Way::Return].map(|way| entry(&table, pc, way));
            assert_eq!(found, [at, at + 1, at + 2]);
        }
        assert_eq!(table.touched.len, 4);
        // What belongs to no mapping stays shut.
        table.lead(low + 0x10_0000, 0);
        assert_eq!((table.touched.len, table.get(low + 0x10_0000)), (4, NONE));
        table.clear();
        assert_eq!((table.touched.len, entry(&table, low, Way::Checked)), (0, 2));
        table.lead(low, 0);
        assert_eq!(entry(&table, low, Way::Plain), 1000);
    }

    #[test]
    fn no_more_numbers_than_there_is_room_for() {
        let mut pages = [OPEN; 4];
        let mut touched = Table::new(1).expect("memory can be had");
        assert!(touched.push(3));
        let mut table =
            WholeTable { entries: [core::ptr::null_mut(); Way::COUNT], pages: pages.as_mut_ptr(), touched };
        table.lead(16, 0);
        assert_eq!((pages[0], table.bytes()), (OPEN, 3 * PAGE));
    }

    #[test]
    fn an_ordinary_program_leaves_the_place_to_us() {
        assert!(!wants_the_place(c"/bin/sh") && !wants_the_place(c"/nowhere"));
    }
}
