//! Which code may be copied: mapped from a file (or the vdso), executable, not writable, and not changed since.
//!
//! Between bursts the program runs natively, so it can unmap, remap and patch code without our seeing it. Before a
//! burst uses the cache, the list of executable mappings is read again and compared, and the pages that copies were
//! made from are checked to be still those of the file (a page of a private mapping that was written becomes
//! anonymous). Rejected: write-protecting (changes the program), trusting the C library's loader lists (static
//! programs, raw mmap).

use crate::in_place::InPlace;
use core::ffi::CStr;
use sonde_sys::memory::File;

/// One executable mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// End address.
    pub end: u64,
    /// Place in the file of the first address.
    pub offset: u64,
    /// Whether copies may be kept.
    pub cacheable: bool,
    /// Whether it is mapped from a file, so that its pages can be checked.
    pub file: bool,
    /// Which version of which file it is, as a hash.
    pub identity: u64,
    /// Lowest and highest address that copies were made from; empty if low > high.
    pub low: u64,
    /// See `low`.
    pub high: u64,
}

/// Most executable mappings kept; code beyond them runs natively (and is counted when met).
pub const MAX_RANGES: usize = 1024;

/// The executable mappings.
pub struct CodeMap {
    ranges: [Range; MAX_RANGES],
    count: usize,
    hash: u64,
    last: usize,
    /// Where the copies lie, which the program never jumps to by itself.
    pub ours: (u64, u64),
    /// What Sonde itself changed.
    pub in_place: InPlace,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Everything is as it was.
    Same,
    /// Something changed; copies must be thrown away.
    Changed,
}

const MAPS: &CStr = c"/proc/thread-self/maps";
const PAGEMAP: &CStr = c"/proc/thread-self/pagemap";

impl CodeMap {
    /// An empty map.
    #[expect(clippy::new_without_default, reason = "a const fn, for a place of its own")]
    pub const fn new() -> CodeMap {
        let none = Range {
            start: 0,
            end: 0,
            offset: 0,
            cacheable: false,
            file: false,
            identity: 0,
            low: u64::MAX,
            high: 0,
        };
        CodeMap {
            ranges: [none; MAX_RANGES],
            count: 0,
            hash: 0,
            last: 0,
            ours: (0, 0),
            in_place: InPlace::none(),
        }
    }

    /// The range that holds `pc`.
    pub fn find(&mut self, pc: u64) -> Option<&mut Range> {
        let hit = |r: &Range| r.start <= pc && pc < r.end;
        if !hit(&self.ranges[self.last % MAX_RANGES]) {
            self.last = self.ranges[..self.count].iter().position(hit)?;
        }
        self.ranges.get_mut(self.last)
    }

    /// Reads the mappings again; a changed list replaces the old one.
    pub fn refresh(&mut self) -> Check {
        let (hash, same_files) = self.look_again();
        if hash != self.hash || hash == 0 || !same_files {
            self.reload();
            self.hash = hash;
            return Check::Changed;
        }
        let mut check = Check::Same;
        for r in &mut self.ranges[..self.count] {
            if r.low <= r.high && r.file && !self.in_place.holds(r.start) && pages_changed(r) {
                r.cacheable = false;
                check = Check::Changed;
            }
        }
        if let Some(start) = self.in_place.changed(sonde_sys::time::tsc) {
            self.find(start).into_iter().for_each(|range| range.cacheable = false);
            self.in_place.forget_copies();
            check = Check::Changed;
        }
        check
    }

    /// Whether copies were made from code between two addresses.
    pub fn overlaps(&self, from: u64, to: u64) -> bool {
        self.ranges[..self.count].iter().any(|r| r.low <= r.high && r.low < to && from <= r.high)
    }

    /// Whether any of an area is executable.
    pub fn holds_any(&self, from: u64, to: u64) -> bool {
        self.ranges[..self.count].iter().any(|r| r.start < to && from < r.end)
    }

    /// The executable mappings of the program.
    pub fn of_program(&self) -> impl Iterator<Item = &Range> {
        let ours = self.ours;
        self.ranges[..self.count].iter().filter(move |r| r.end <= ours.0 || ours.1 <= r.start)
    }

    /// Whether other executable code has an address with the same low half as `pc`.
    pub fn has_double(&self, pc: u64) -> bool {
        let low = |at: u64| at & 0xffff_ffff;
        self.of_program()
            .any(|r| !(r.start..r.end).contains(&pc) && low(pc.wrapping_sub(r.start)) < r.end - r.start)
    }

    /// Whether two executable mappings have addresses with equal low halves.
    pub fn has_doubles(&self) -> bool {
        // The begin of one of the two lies in the other.
        self.of_program().any(|r| r.end - r.start > 1 << 32 || self.has_double(r.start))
    }

    /// A hash of all executable mappings (0 if there are none to read), and whether the files that copies were made from
    /// are still the same: a new file can come to lie at the old address under the old name and inode number.
    fn look_again(&mut self) -> (u64, bool) {
        let (mut hash, mut same) = (0u64, true);
        let ranges = &self.ranges[..self.count];
        Lines::open().each(|line| {
            let executable =
                line.iter().position(|b| *b == b' ').is_some_and(|p| line.get(p + 3) == Some(&b'x'));
            if !executable {
                return;
            }
            for b in line {
                hash = (hash ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3).rotate_left(5) | 1;
            }
            let start = hex(line).map(|h| h.0);
            let copied = ranges.iter().find(|r| Some(r.start) == start && r.low <= r.high && r.file);
            if let Some(range) = copied {
                same &= identity(line) == Some(range.identity);
            }
        });
        (hash, same)
    }

    /// Forgets which parts copies were made from, after they were thrown away.
    pub fn forget_copies(&mut self) {
        for r in &mut self.ranges[..self.count] {
            (r.low, r.high) = (u64::MAX, 0);
        }
        self.in_place.forget_copies();
    }

    fn reload(&mut self) {
        self.count = 0;
        self.last = 0;
        let (ranges, count) = (&mut self.ranges, &mut self.count);
        Lines::open().each(|line| {
            if let (Some(range), true) = (parse(line), *count < MAX_RANGES) {
                ranges[*count] = range;
                *count += 1;
            }
        });
    }
}

/// Parses one line of the maps file; only executable mappings give a range.
fn parse(line: &[u8]) -> Option<Range> {
    let (start, rest) = hex(line)?;
    let (end, rest) = hex(rest.strip_prefix(b"-")?)?;
    let perms = rest.strip_prefix(b" ")?.get(..4)?;
    if perms[2] != b'x' {
        return None;
    }
    let mut fields = rest[1..].split(|b| *b == b' ').filter(|f| !f.is_empty()).skip(1);
    let offset = fields.next().and_then(hex).map_or(0, |h| h.0);
    let mut fields = fields.skip(1);
    let inode = fields.next().unwrap_or(b"0");
    let vdso = fields.next() == Some(b"[vdso]");
    let file = inode != b"0";
    // Shared mappings can be written through another one; files that are gone cannot be told apart.
    let identity = if file && perms[3] == b'p' { identity(line) } else { None };
    let cacheable = perms[1] != b'w' && (identity.is_some() || vdso);
    Some(Range {
        start,
        end,
        offset,
        cacheable,
        file,
        identity: identity.unwrap_or(0),
        low: u64::MAX,
        high: 0,
    })
}

/// A hash of which version of which file a line of the maps file names. None if there is no such file (any more).
fn identity(line: &[u8]) -> Option<u64> {
    let from = line.iter().position(|b| *b == b'/')?;
    let path = &line[from..];
    let mut name = [0u8; 4096];
    name.get_mut(..path.len())?.copy_from_slice(path);
    let name = core::ffi::CStr::from_bytes_until_nul(&name).ok()?;
    let identity = sonde_sys::memory::file_identity(name).ok()?;
    Some(sonde_wire::checks::identity(&identity))
}

fn hex(s: &[u8]) -> Option<(u64, &[u8])> {
    let digits = s.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    if digits == 0 || digits > 16 {
        return None;
    }
    let value = s[..digits].iter().fold(0u64, |v, b| v << 4 | (*b as char).to_digit(16).unwrap_or(0) as u64);
    Some((value, &s[digits..]))
}

/// Whether a page between `low` and `high` is present but no longer the file's.
fn pages_changed(r: &Range) -> bool {
    const PRESENT: u64 = 1 << 63;
    const FILE: u64 = 1 << 61;
    let Ok(file) = File::open(PAGEMAP) else { return true };
    let (mut page, last) = (r.low >> 12, r.high >> 12);
    let mut entries = [0u8; 4096];
    while page <= last {
        let want = ((last - page + 1) as usize * 8).min(entries.len());
        let Ok(got) = file.read_at(&mut entries[..want], page * 8) else { return true };
        if got < 8 {
            return true;
        }
        for entry in entries[..got].chunks_exact(8) {
            let e = u64::from_le_bytes([
                entry[0], entry[1], entry[2], entry[3], entry[4], entry[5], entry[6], entry[7],
            ]);
            if e & PRESENT != 0 && e & FILE == 0 {
                return true;
            }
        }
        page += got as u64 / 8;
    }
    false
}

/// Reads the maps file line by line through a small buffer.
struct Lines {
    file: Option<File>,
}

impl Lines {
    fn open() -> Lines {
        Lines { file: File::open(MAPS).ok() }
    }

    fn each(&mut self, mut f: impl FnMut(&[u8])) {
        let Some(file) = &self.file else { return };
        let mut buf = [0u8; 8192];
        let mut kept = 0;
        loop {
            let got = match file.read(&mut buf[kept..]) {
                Ok(n) if n > 0 => n,
                _ => break,
            };
            let end = kept + got;
            let mut start = 0;
            while let Some(n) = buf[start..end].iter().position(|b| *b == b'\n') {
                f(&buf[start..start + n]);
                start += n + 1;
            }
            buf.copy_within(start..end, 0);
            kept = end - start;
            if kept == buf.len() {
                kept = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unwritable_file_and_vdso_code_is_cacheable() {
        let line = b"7f0000001000-7f0000005000 r-xp 00001000 fe:00 1234                       /bin/sh";
        let r = parse(line).unwrap();
        assert_eq!((r.start, r.end, r.cacheable, r.file), (0x7f00_0000_1000, 0x7f00_0000_5000, true, true));
        assert_eq!(r.offset, 0x1000);
        assert!(!parse(b"7f0000001000-7f0000005000 rwxp 00001000 fe:00 1234 /bin/sh").unwrap().cacheable);
        assert!(!parse(b"7f0000001000-7f0000005000 r-xp 00000000 00:00 0").unwrap().cacheable);
        assert!(parse(b"7ffc0000-7ffd0000 r-xp 00000000 00:00 0                  [vdso]").unwrap().cacheable);
        assert!(parse(b"7f0000001000-7f0000005000 r--p 00000000 fe:00 1234 /x").is_none());
        assert!(parse(b"garbage").is_none());
    }

    #[test]
    fn equal_low_halves_are_found() {
        let mut map = alloc::boxed::Box::new(CodeMap::new());
        let mut put = |ranges: &[(u64, u64)]| {
            for (i, (start, end)) in ranges.iter().enumerate() {
                map.ranges[i] = Range { start: *start, end: *end, ..Range::default() };
            }
            map.count = ranges.len();
            (map.has_doubles(), map.has_double(ranges[0].0), map.has_double(ranges[0].1 - 1))
        };
        let one = (0x5500_0000_1000, 0x5500_0000_3000);
        assert_eq!(put(&[one]), (false, false, false));
        assert_eq!(put(&[one, (0x7f00_0000_3000, 0x7f00_0000_5000)]), (false, false, false));
        assert_eq!(put(&[one, (0x7f00_0000_2fff, 0x7f00_0000_5000)]), (true, false, true));
        assert_eq!(put(&[one, (0x7f00_0000_0000, 0x7f00_0000_1001)]), (true, true, false));
        // One goes on behind the last low half.
        assert_eq!(put(&[one, (0x7eff_ffff_f000, 0x7f00_0000_2000)]), (true, true, false));
        let large = (0x6000_0000_0000, 0x6002_0000_0000);
        assert_eq!(put(&[one, large]), (true, true, true));
        map.ours = large;
        assert!(!map.has_doubles() && !map.has_double(one.0));
    }

    #[test]
    fn own_mappings_are_found_and_do_not_change_by_themselves() {
        let mut map = alloc::boxed::Box::new(CodeMap::new());
        assert_eq!(map.refresh(), Check::Changed);
        let here = own_mappings_are_found_and_do_not_change_by_themselves as *const () as u64;
        let range = map.find(here).expect("this test's code is mapped");
        assert!(range.cacheable && range.file);
        (range.low, range.high) = (here, here);
        assert_eq!(map.refresh(), Check::Same);
    }
}
