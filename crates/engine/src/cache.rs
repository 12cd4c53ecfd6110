//! The code cache: where copies lie, which pc each belongs to, and which jumps between them can be linked.
//!
//! Copies are only appended; when anything is full, or the program's code changed, everything is thrown away at a
//! moment when no thread runs in it. Where threads never leave by themselves, they are led out first by undoing all links.

use crate::filling::{Filling, Table};
use crate::whole::WholeTable;
use sonde_sys::memory::*;
use sonde_x64::asm::Code;
use sonde_x64::emit::Way;

/// One translated superblock.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Superblock {
    /// The program's pc.
    pub pc: u64,
    /// Where the copy's indirect entry lies.
    pub at: u64,
    /// Offset of the body.
    pub body: u32,
    /// Bytes of the copy.
    pub len: u32,
    /// Number of its first exit.
    pub first_exit: u32,
    /// Instructions.
    pub insns: u16,
    /// Exits.
    pub exits: u16,
    /// Instructions whose references are not recorded, a bit each ([`sonde_x64::plan::Plan::unrecorded`]).
    pub unrecorded: u64,
    /// Where its loads begin in the table of loads.
    pub first_load: u32,
    /// How many it has.
    pub loads: u16,
    /// Which version of the code: see [`RECORDING`].
    pub version: u8,
    /// Whether its pc has another copy by now, or is to get one.
    pub given_up: bool,
    /// Whether its indirect entries change flags ([`sonde_x64::emit::Emitter::quick_entry`]).
    pub quick_entry: bool,
    /// Whether it was known to begin behind a call.
    pub after_call: bool,
}

/// A load of a superblock that can be recorded, and whether it is.
#[derive(Clone, Copy, Default)]
pub struct WatchedLoad(u64);

impl WatchedLoad {
    /// The load at a pc of the program, which is below 2^63.
    pub fn new(pc: u64, recorded: bool) -> WatchedLoad {
        WatchedLoad(pc << 1 | u64::from(recorded))
    }

    fn pc(self) -> u64 {
        self.0 >> 1
    }

    fn is_recorded(self) -> bool {
        self.0 & 1 != 0
    }
}

/// The version that writes the log.
pub const RECORDING: u8 = 0;
/// The version of counter mode that only counts checks (paper 4 section 2).
pub const CHECKING: u8 = 1;

/// One exit of a superblock.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ExitInfo {
    /// The program's next pc, for direct exits.
    pub target: u64,
    /// Address of the rel32 to patch, or 0.
    pub link: u64,
    /// What that rel32 is as long as the exit is not linked: it leads to the engine.
    pub away: i32,
    /// Why, as the code of `ExitKind`.
    pub kind: u8,
}

impl ExitInfo {
    /// Changes the jump of an exit that has one, while other threads run it.
    fn lead(&self, rel: i32) {
        if self.link == 0 {
            return;
        }
        // SAFETY: the rel32 lies in our code, within eight aligned bytes ([`sonde_x64::asm::Code::align_for_patch`]), where a
        // store is seen whole. Not through an atomic type: those want four-byte alignment.
        unsafe {
            core::arch::asm!("mov dword ptr [{at}], {rel:e}", at = in(reg) self.link, rel = in(reg) rel)
        };
    }
}

/// Entries of the indirect-branch table: one per value of the low 16 bits of a pc.
pub const TABLE_ENTRIES: usize = 1 << 16;

/// Room for this many loads per superblock, where they are kept; on average there are fewer.
const LOADS_PER_SUPERBLOCK: usize = 8;

/// The cache and its indexes.
pub struct Cache {
    /// Start of the code.
    pub start: u64,
    /// End of the code.
    pub end: u64,
    /// Where the next copy goes.
    pub next: u64,
    pages: Filling,
    superblocks: Table<Superblock>,
    exits: Table<ExitInfo>,
    /// Where not everything is recorded: the loads of all superblocks, in their order.
    loads: Option<Table<WatchedLoad>>,
    /// Number of the first exit in `exits`; exit numbers are never used twice.
    exit_base: u32,
    /// Open addressing over superblock index + 1 by pc.
    index: *mut u32,
    index_len: usize,
    /// The jump tables of indirect branches, by version.
    pub tables: [*mut u64; 2],
    /// What the checking version uses instead, where it can be had.
    pub whole: Option<WholeTable>,
    /// Bytes before the first copy.
    reserved: u64,
    miss: u64,
    /// Whether all links are undone and nothing was added since.
    forgotten: bool,
}

impl Cache {
    /// Maps a cache of `bytes` bytes of code. `miss` is where indirect branches without a copy go; exits are numbered
    /// from `exit_base`. Loads are kept if what is recorded of them can change.
    pub fn new(bytes: usize, miss: u64, exit_base: u32, keep_loads: bool) -> Option<Cache> {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let all = PROT_READ | PROT_WRITE | PROT_EXEC;
        let start = mmap(0, bytes, all, flags, -1).ok()? as u64;
        let low = mmap(0, 2 * TABLE_ENTRIES * 8, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1).ok()?;
        if low + 2 * TABLE_ENTRIES * 8 > 1 << 31 {
            return None;
        }
        let count = (bytes / 256).next_power_of_two();
        let index = mmap(0, count * 8, PROT_READ | PROT_WRITE, flags, -1).ok()?;
        let mut cache = Cache {
            start,
            end: start + bytes as u64,
            next: start,
            pages: Filling::new(start, bytes as u64),
            superblocks: Table::new(count)?,
            loads: if keep_loads { Some(Table::new(count * LOADS_PER_SUPERBLOCK)?) } else { None },
            exits: Table::new(count * 4)?,
            exit_base,
            index: index as *mut u32,
            index_len: count * 2,
            tables: [low as *mut u64, (low + TABLE_ENTRIES * 8) as *mut u64],
            whole: None,
            reserved: 0,
            miss,
            forgotten: false,
        };
        cache.clear_table();
        Some(cache)
    }

    /// Lets the checking version use a table by the whole pc, if there is address space for it; its numbers take from the
    /// bytes of code. `stubs` has to lie at the begin of the code, and `missed` are its parts for what has no copy.
    pub fn use_whole_table(&mut self, code: &Code, missed: [u64; Way::COUNT]) {
        let bytes = (self.end - self.start) as usize;
        self.whole = WholeTable::new(self.superblocks.capacity, bytes, missed);
        if self.whole.is_some() {
            self.reserved = (code.bytes.len() as u64).next_multiple_of(64);
            self.pages.reach(self.start + self.reserved);
            // SAFETY: the cache is empty, and larger than that.
            unsafe {
                core::ptr::copy_nonoverlapping(code.bytes.as_ptr(), self.start as *mut u8, code.bytes.len())
            };
            self.next = self.start + self.reserved;
        }
    }

    fn clear_table(&mut self) {
        if let Some(whole) = &mut self.whole {
            whole.clear();
        }
        for i in 0..TABLE_ENTRIES {
            for table in self.tables {
                // SAFETY: the tables have that many entries each.
                unsafe { *table.add(i) = self.miss };
            }
        }
    }

    /// Throws everything away. No thread may be in the copy.
    pub fn clear(&mut self) {
        self.next = self.start + self.reserved;
        self.exit_base += self.exits.len as u32;
        self.superblocks.len = 0;
        self.exits.len = 0;
        if let Some(loads) = &mut self.loads {
            loads.len = 0;
        }
        // SAFETY: the index mapping is private and means nothing once all superblocks are gone.
        let _ = unsafe { discard(self.index as usize, self.index_len * 4) };
        self.clear_table();
    }

    /// Lets all threads come out, unless nothing was added since that was done last.
    pub fn lead_out(&mut self) {
        if !self.forgotten {
            self.forget();
        }
    }

    /// Forgets which pc has which copy and lets every copy lead to the engine. Threads may be in them: each comes out at
    /// the next exit of the superblock that it is in.
    pub fn forget(&mut self) {
        self.forgotten = true;
        for exit in (0..self.exits.len).filter_map(|i| self.exits.get(i)) {
            exit.lead(exit.away);
        }
        // SAFETY: the index mapping is private; an empty index only means that nothing is found.
        let _ = unsafe { discard(self.index as usize, self.index_len * 4) };
        self.clear_table();
    }

    /// Number that the next exit will get.
    pub fn next_exit(&self) -> u32 {
        self.exit_base + self.exits.len as u32
    }

    /// Whether there is room for a copy of `bytes` bytes with `exits` exits and `loads` loads.
    pub fn has_room(&self, bytes: usize, exits: usize, loads: usize) -> bool {
        let numbers = self.whole.as_ref().map_or(0, WholeTable::bytes);
        self.next + bytes as u64 + numbers + 64 <= self.end
            && self.superblocks.len < self.superblocks.capacity / 2 * 2 - 1
            && self.superblocks.len * 2 < self.index_len
            && self.exits.len + exits <= self.exits.capacity
            && self.loads.as_ref().is_none_or(|table| table.len + loads <= table.capacity)
            && self.next_exit() < 0xe000_0000
    }

    /// Where the search for a pc begins. Code of the same 64 KiB has its places side by side, in order: scattered ones
    /// would touch a page of the index for nearly every superblock of a small program.
    fn place(&self, pc: u64, version: u8) -> usize {
        let region = (pc >> 16 << 1 | u64::from(version)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        (region + ((pc & 0xffff) >> 3)) as usize & (self.index_len - 1)
    }

    /// The superblock of a pc.
    pub fn find(&self, pc: u64, version: u8) -> Option<Superblock> {
        let mut i = self.place(pc, version);
        loop {
            // SAFETY: the place is masked to the index, which is never full.
            match unsafe { *self.index.add(i) } {
                0 => return None,
                n => {
                    let sb = self.superblocks.get(n as usize - 1)?;
                    // What was given up keeps its place: others may lie behind it.
                    if sb.pc == pc && sb.version == version && !sb.given_up {
                        return Some(sb);
                    }
                }
            }
            i = (i + 1) & (self.index_len - 1);
        }
    }

    /// The superblock whose copy holds an address.
    pub fn at_address(&self, address: u64) -> Option<Superblock> {
        let sb = self.superblocks.get(self.index_of(address)?)?;
        if address < sb.at + u64::from(sb.len) { Some(sb) } else { None }
    }

    /// The index of the last superblock whose copy begins at or before an address.
    fn index_of(&self, address: u64) -> Option<usize> {
        let (mut low, mut high) = (0, self.superblocks.len);
        while low < high {
            let middle = (low + high) / 2;
            if self.superblocks.get(middle)?.at <= address { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    /// An exit by its number.
    pub fn exit(&self, number: u32) -> Option<ExitInfo> {
        self.exits.get(number.checked_sub(self.exit_base)? as usize)
    }

    /// Adds a superblock with its code and exits; the caller checked that there is room.
    pub fn add(
        &mut self,
        mut sb: Superblock,
        code: &[u8],
        exits: impl Iterator<Item = ExitInfo>,
        loads: impl Iterator<Item = WatchedLoad>,
        ways: [usize; Way::COUNT],
    ) -> Superblock {
        self.forgotten = false;
        sb.at = self.next;
        sb.len = code.len() as u32;
        self.pages.reach(self.next + code.len() as u64);
        // SAFETY: `has_room` saw that the code fits; nobody runs here before the superblock is in the index.
        unsafe { core::ptr::copy_nonoverlapping(code.as_ptr(), self.next as *mut u8, code.len()) };
        self.next = (self.next + code.len() as u64).next_multiple_of(16);
        for exit in exits {
            self.exits.push(exit);
        }
        if let Some(table) = &mut self.loads {
            sb.first_load = table.len as u32;
            sb.loads = loads.map(|load| u16::from(table.push(load))).sum();
        }
        self.superblocks.push(sb);
        let mut i = self.place(sb.pc, sb.version);
        // SAFETY: places are masked, and the index is never full.
        unsafe {
            while *self.index.add(i) != 0 {
                i = (i + 1) & (self.index_len - 1);
            }
            *self.index.add(i) = self.superblocks.len as u32;
        }
        if let Some(whole) = self.whole.as_mut().filter(|_| sb.version == CHECKING) {
            whole.enter(self.superblocks.len - 1, ways.map(|way| sb.at + way as u64));
        }
        self.remember_indirect(&sb);
        sb
    }

    /// Gives up the copies that record a load that is not wanted, or do not record one that is; returns how many. Threads
    /// may be in them, and leave at the next exit: their records stay readable, since exits are never numbered again.
    pub fn give_up(&mut self, wanted: &dyn Fn(u64) -> bool) -> usize {
        let mut count = 0;
        for i in 0..self.superblocks.len {
            let Some(mut sb) = self.superblocks.get(i) else { break };
            if sb.given_up || self.is_as_wanted(&sb, wanted) {
                continue;
            }
            sb.given_up = true;
            self.superblocks.set(i, sb);
            count += 1;
            // SAFETY: masked index; other threads read the word whole.
            unsafe {
                let entry = self.tables[sb.version as usize & 1].add(sb.pc as usize & (TABLE_ENTRIES - 1));
                if *entry == sb.at {
                    entry.write_volatile(self.miss);
                }
            }
        }
        if count > 0 {
            self.unlink_missing();
        }
        count
    }

    fn is_as_wanted(&self, sb: &Superblock, wanted: &dyn Fn(u64) -> bool) -> bool {
        let Some(table) = &self.loads else { return true };
        let mut loads = (0..usize::from(sb.loads)).filter_map(|i| table.get(sb.first_load as usize + i));
        loads.all(|load| load.is_recorded() == wanted(load.pc()))
    }

    /// Lets the exits whose target has no copy any more ask the engine. That undoes more than it must where versions
    /// differ, which costs a visit to the engine and nothing else.
    fn unlink_missing(&self) {
        for exit in (0..self.exits.len).filter_map(|i| self.exits.get(i)).filter(|e| e.link != 0) {
            if self.find(exit.target, RECORDING).is_none() {
                exit.lead(exit.away);
            }
        }
    }

    /// Makes the table point at this superblock again (its place may have been taken by another pc since).
    pub fn remember_indirect(&mut self, sb: &Superblock) {
        if sb.version == CHECKING && self.whole.is_some() {
            let index = self.index_of(sb.at);
            if let (Some(whole), Some(index)) = (&mut self.whole, index) {
                whole.lead(sb.pc, index);
            }
            return;
        }
        let table = self.tables[sb.version as usize & 1];
        // SAFETY: masked index; the store is a single aligned word that other threads read whole.
        unsafe { table.add(sb.pc as usize & (TABLE_ENTRIES - 1)).write_volatile(sb.at) };
    }

    /// Lets the jump of an exit lead straight to a superblock's body.
    pub fn link(&self, exit: &ExitInfo, to: &Superblock) {
        let target = to.at + u64::from(to.body);
        exit.lead(target.wrapping_sub(exit.link + 4) as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISS: u64 = 0x1234;
    const AWAY: i32 = 0x77;

    /// A superblock at `pc` with one exit to `target`, whose jump lies at the begin of its code, and these loads.
    fn add(cache: &mut Cache, pc: u64, target: u64, loads: &[(u64, bool)]) -> Superblock {
        let sb = Superblock { pc, first_exit: cache.next_exit(), exits: 1, ..Superblock::default() };
        let exit = ExitInfo { target, link: cache.next, away: AWAY, kind: 1 };
        let loads = loads.iter().map(|(pc, recorded)| WatchedLoad::new(*pc, *recorded));
        cache.add(sb, &[0; 16], [exit].into_iter(), loads, [0; Way::COUNT])
    }

    fn jump(cache: &Cache, sb: &Superblock) -> i32 {
        let exit = cache.exit(sb.first_exit).expect("the exit is there");
        // SAFETY: the link lies in the cache.
        unsafe { (exit.link as *const i32).read_unaligned() }
    }

    fn table_entry(cache: &Cache, pc: u64) -> u64 {
        // SAFETY: masked index.
        unsafe { *cache.tables[0].add(pc as usize & (TABLE_ENTRIES - 1)) }
    }

    #[test]
    fn only_copies_that_record_wrongly_are_given_up() {
        let mut cache = Cache::new(1 << 20, MISS, 7, true).expect("memory can be had");
        let kept = add(&mut cache, 0x1000, 0x2000, &[(0x1000, true), (0x1004, false)]);
        let too_much = add(&mut cache, 0x2000, 0x1000, &[(0x2000, true)]);
        let none = add(&mut cache, 0x3000, 0x2000, &[]);
        for (from, to) in [(&kept, &too_much), (&too_much, &kept), (&none, &too_much)] {
            cache.link(&cache.exit(from.first_exit).expect("the exit is there"), to);
        }
        assert!([&kept, &too_much, &none].iter().all(|sb| ![0, AWAY].contains(&jump(&cache, sb))));
        assert_eq!(cache.give_up(&|pc| pc == 0x1000), 1);
        assert!(cache.find(0x1000, RECORDING).is_some() && cache.find(0x3000, RECORDING).is_some());
        assert!(cache.find(0x2000, RECORDING).is_none());
        // Nothing leads to it; what it leads to stays linked, and it can still be told by address and exit.
        assert_eq!((table_entry(&cache, 0x2000), table_entry(&cache, 0x1000)), (MISS, kept.at));
        assert_eq!((jump(&cache, &kept), jump(&cache, &none)), (AWAY, AWAY));
        assert!(![0, AWAY].contains(&jump(&cache, &too_much)));
        assert_eq!(cache.at_address(too_much.at).map(|sb| sb.pc), Some(0x2000));
        assert_eq!(cache.give_up(&|pc| pc == 0x1000), 0, "once is enough");
        // Its pc gets another copy, which is found.
        let again = add(&mut cache, 0x2000, 0x1000, &[(0x2000, false)]);
        assert_eq!(cache.find(0x2000, RECORDING).map(|sb| sb.at), Some(again.at));
        assert_eq!(table_entry(&cache, 0x2000), again.at);
        // And is given up when the load is wanted again.
        assert_eq!(cache.give_up(&|pc| pc == 0x1000 || pc == 0x2000), 1);
        assert!(cache.find(0x2000, RECORDING).is_none());
    }

    #[test]
    fn forgotten_copies_do_not_come_back() {
        let mut cache = Cache::new(1 << 20, MISS, 0, true).expect("memory can be had");
        let old = add(&mut cache, 0x1000, 0x1000, &[(0x1000, true)]);
        cache.forget();
        let other = add(&mut cache, 0x2000, 0x1000, &[(0x2000, true)]);
        assert_eq!(cache.give_up(&|_| false), 2);
        assert!(cache.find(old.pc, RECORDING).is_none() && cache.find(other.pc, RECORDING).is_none());
        assert_eq!((table_entry(&cache, 0x1000), table_entry(&cache, 0x2000)), (MISS, MISS));
        cache.clear();
        assert_eq!(cache.give_up(&|_| true), 0);
    }

    #[test]
    fn where_everything_is_recorded_nothing_is_given_up() {
        let mut cache = Cache::new(1 << 20, MISS, 0, false).expect("memory can be had");
        add(&mut cache, 0x1000, 0x1000, &[(0x1000, true)]);
        assert_eq!(cache.give_up(&|_| false), 0);
    }
}
