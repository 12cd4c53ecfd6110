//! What lay where in the program: a union over time of its mappings, to give addresses a name.

use std::fmt;

/// One mapping, as `/proc/PID/maps` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Permissions, such as `r-xp`.
    pub permissions: String,
    /// The file, `[heap]`, `[stack]` and the like, or nothing for anonymous memory.
    pub name: String,
    /// The file's build-id, if it has one.
    pub build_id: Vec<u8>,
}

impl Mapping {
    /// Reads a line of `/proc/PID/maps`.
    pub fn parse(line: &str) -> Option<Mapping> {
        let (range, rest) = line.split_once(' ')?;
        let (permissions, rest) = rest.split_once(' ')?;
        let (offset, rest) = rest.split_once(' ')?;
        let (_device, rest) = rest.split_once(' ')?;
        let name = rest.split_once(' ').map_or("", |(_inode, name)| name.trim_start());
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some(Mapping {
            start: hex(start)?,
            end: hex(end)?,
            offset: hex(offset)?,
            permissions: permissions.to_owned(),
            name: name.to_owned(),
            build_id: Vec::new(),
        })
    }

    /// Whether it is mapped from a file.
    pub fn is_file(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Whether code can be run from it.
    pub fn is_executable(&self) -> bool {
        self.permissions.contains('x')
    }

    /// Whether an address lies in it.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether `newer` is the same mapping, perhaps grown or shrunk (the heap, the stack).
    fn is_same_as(&self, newer: &Mapping) -> bool {
        let place = self.start == newer.start || self.end == newer.end;
        place
            && self.offset == newer.offset
            && self.permissions == newer.permissions
            && self.name == newer.name
    }
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() { "anonymous" } else { &self.name };
        write!(f, "{:012x}-{:012x} {} {:8x} {name}", self.start, self.end, self.permissions, self.offset)
    }
}

/// Most mappings kept. Programs that map and unmap without end would grow this for ever.
pub const MAX_MAPPINGS: usize = 1 << 16;

/// All mappings seen, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Mappings {
    seen: Vec<Mapping>,
    left_out: u64,
}

impl Mappings {
    /// Adds one; a mapping that only grew takes the place of the older one. Returns it as it is now, if that is news.
    pub fn add(&mut self, mapping: Mapping) -> Option<&mut Mapping> {
        // The newest are the likeliest to be told again: programs that map a lot do so at their end of the list.
        let known = self.seen.iter().rposition(|m| m.is_same_as(&mapping));
        match known {
            Some(index) => {
                let known = &mut self.seen[index];
                let grown = mapping.start < known.start || mapping.end > known.end;
                known.start = known.start.min(mapping.start);
                known.end = known.end.max(mapping.end);
                grown.then_some(known)
            }
            None if self.seen.len() < MAX_MAPPINGS => {
                self.seen.push(mapping);
                self.seen.last_mut()
            }
            None => {
                self.left_out += 1;
                None
            }
        }
    }

    /// The mapping that an address lay in; the newest, if there were several.
    pub fn find(&self, address: u64) -> Option<&Mapping> {
        self.seen.iter().rev().find(|m| m.contains(address))
    }

    /// All of them, oldest first.
    pub fn all(&self) -> &[Mapping] {
        &self.seen
    }

    /// Mappings that were not kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds all lines; returns how many there were before.
    fn observe(maps: &mut Mappings, text: &str) -> usize {
        let before = maps.all().len();
        for mapping in text.lines().filter_map(Mapping::parse) {
            maps.add(mapping);
        }
        before
    }

    const TEXT: &str = "\
55d000000000-55d000002000 r-xp 00001000 fe:01 131 /opt/my program (deleted)
55d000100000-55d000121000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn lines_are_read() {
        let mut maps = Mappings::default();
        assert_eq!(observe(&mut maps, TEXT), 0);
        assert_eq!(maps.all().len(), 3);
        let code = maps.find(0x55d0_0000_1fff).unwrap();
        assert_eq!((code.name.as_str(), code.offset), ("/opt/my program (deleted)", 0x1000));
        assert!(code.is_executable() && code.is_file());
        assert_eq!(maps.find(0x7f00_0000_0000).unwrap().name, "");
        assert!(maps.find(0x55d0_0000_2000).is_none());
    }

    #[test]
    fn mappings_stay_after_they_are_gone_and_newer_ones_win() {
        let mut maps = Mappings::default();
        observe(&mut maps, TEXT);
        let first = observe(&mut maps, "55d000000000-55d000001000 r-xp 00000000 fe:01 9 /lib/b.so\n");
        assert_eq!(maps.all().len() - first, 1);
        assert_eq!(maps.find(0x55d0_0000_0000).unwrap().name, "/lib/b.so");
        assert_eq!(maps.find(0x55d0_0000_1000).unwrap().name, "/opt/my program (deleted)");
    }

    #[test]
    fn the_heap_grows_in_place() {
        let mut maps = Mappings::default();
        observe(&mut maps, TEXT);
        let first = observe(&mut maps, "55d000100000-55d000200000 rw-p 00000000 00:00 0 [heap]\n");
        assert_eq!(maps.all().len(), first);
        assert_eq!(maps.find(0x55d0_001f_ffff).unwrap().name, "[heap]");
    }

    #[test]
    fn nonsense_is_passed_over() {
        for text in ["", "\n\n", "zz", "1-2", "1-2 r", "x-y r-xp 0 0 0", "1-2 r-xp 0 0"] {
            let mut maps = Mappings::default();
            observe(&mut maps, text);
            assert!(maps.all().is_empty(), "{text:?}");
        }
    }
}
