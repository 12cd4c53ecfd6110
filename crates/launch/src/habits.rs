//! Programs that trace others, or themselves: Sonde must not be in their way, since a process has one tracer.
//!
//! What they import tells. LeakSanitizer, which is a part of AddressSanitizer, traces its own process when that ends, and makes it
//! fail if somebody else does. Debuggers and `strace` trace their children. Told from the file before anything runs: afterwards
//! is too late, and nothing but a stop at each system call would show it.

use object::elf;
use object::read::elf::{Dyn, FileHeader, SectionHeader, Sym};
use object::{Endianness, ReadCache};
use std::fs::File;
use std::path::Path;

/// What a program does with ptrace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// It looks for leaks, and traces itself for that.
    pub checks_leaks: bool,
    /// It traces other processes, perhaps.
    pub traces: bool,
}

/// What programs with a leak checker call or have, and the libraries that it may be in.
const LEAK_CHECKERS: [&[u8]; 4] = [b"__asan_init", b"__lsan_init", b"__hwasan_init", b"__lsan_do_leak_check"];
const LIBRARIES: [&[u8]; 5] =
    [b"libasan.so", b"liblsan.so", b"libhwasan.so", b"libclang_rt.asan", b"libclang_rt.lsan"];
/// Larger symbol tables are not read: only static programs have those.
const LARGEST: u64 = 16 << 20;

impl Habits {
    /// Of a program's file, as far as it tells, and of what is loaded into all of them.
    pub fn of(image: &Path) -> Habits {
        let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
        let preloaded = preloaded.as_encoded_bytes();
        let checks = LIBRARIES.iter().any(|name| preloaded.windows(name.len()).any(|part| part == *name));
        let habits = File::open(image).ok().and_then(read).unwrap_or_default();
        Habits { checks_leaks: habits.checks_leaks || checks, ..habits }
    }

    fn add_symbol(&mut self, name: &[u8]) {
        self.checks_leaks |= LEAK_CHECKERS.contains(&name);
        self.traces |= name == b"ptrace";
    }
}

/// The bytes of a string in a table.
fn string(table: &[u8], at: u32) -> &[u8] {
    let rest = table.get(at as usize..).unwrap_or_default();
    rest.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn read(file: File) -> Option<Habits> {
    let data = ReadCache::new(file);
    let header = elf::FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let strings = |section: &elf::SectionHeader64<Endianness>| {
        let index = object::SectionIndex(section.sh_link(endian) as usize);
        sections.section(index).and_then(|names| names.data(endian, &data)).unwrap_or_default()
    };
    let of_kind = |kind| sections.iter().find(|s| s.sh_type(endian) == kind && s.sh_size(endian) <= LARGEST);
    let mut habits = Habits::default();
    // Static programs have the second only, if they are not stripped.
    if let Some(section) = of_kind(elf::SHT_DYNSYM).or_else(|| of_kind(elf::SHT_SYMTAB)) {
        let names = strings(section);
        let symbols = section.data_as_array::<elf::Sym64<Endianness>, _>(endian, &data).unwrap_or_default();
        symbols.iter().for_each(|symbol| habits.add_symbol(string(names, symbol.st_name(endian))));
    }
    if let Some(section) = of_kind(elf::SHT_DYNAMIC) {
        let names = strings(section);
        let entries = section.data_as_array::<elf::Dyn64<Endianness>, _>(endian, &data).unwrap_or_default();
        let needed = entries.iter().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED);
        let mut needed = needed.map(|entry| string(names, entry.d_val(endian) as u32));
        habits.checks_leaks |= needed.any(|name| LIBRARIES.iter().any(|known| name.starts_with(known)));
    }
    Some(habits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_traces_and_a_shell_does_not() {
        // What nobody calls is not linked.
        assert!(crate::begin::ptrace(libc::PTRACE_CONT, i32::MAX - 7, 0, 0).is_err());
        let own = std::env::current_exe().unwrap();
        assert_eq!(Habits::of(&own), Habits { checks_leaks: false, traces: true });
        assert_eq!(Habits::of(Path::new("/bin/sh")), Habits::default());
        assert_eq!(Habits::of(Path::new("/dev/null")), Habits::default());
        assert_eq!(Habits::of(Path::new("/nowhere")), Habits::default());
    }
}
