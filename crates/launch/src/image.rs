//! The probe's ELF image: what has to be mapped where.

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::OnceLock;

/// The probe, as built into this program.
pub static PROBE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.so"));

/// The probe laid out for an address: bytes, and which parts get which protection.
pub struct Image {
    /// Bytes of the whole image, page-aligned.
    pub bytes: Vec<u8>,
    /// (offset, length, protection) of each segment, page-aligned.
    pub segments: Vec<(usize, usize, i32)>,
    /// Offset of the start function.
    pub start: usize,
    /// Relocations to apply: place and addend.
    relocations: Vec<(usize, u64)>,
}

impl Image {
    /// Reads the probe. It is our own file: anything unexpected is a fault of the build.
    pub fn probe() -> &'static Image {
        static PARSED: OnceLock<Image> = OnceLock::new();
        PARSED.get_or_init(Image::parse)
    }

    fn parse() -> Image {
        let file = ElfFile64::<Endianness>::parse(PROBE).expect("the probe is an ELF file");
        let endian = file.endian();
        let mut end = 0;
        let mut segments = Vec::new();
        for p in file.elf_program_headers().iter().filter(|p| p.p_type(endian) == elf::PT_LOAD) {
            let from = p.p_vaddr(endian) as usize & !4095;
            let to = (p.p_vaddr(endian) + p.p_memsz(endian)).next_multiple_of(4096) as usize;
            let flag = |f: elf::ProgramFlags, prot| if (p.p_flags(endian) & f).0 != 0 { prot } else { 0 };
            let prot = flag(elf::PF_R, libc::PROT_READ)
                | flag(elf::PF_W, libc::PROT_WRITE)
                | flag(elf::PF_X, libc::PROT_EXEC);
            segments.push((from, to - from, prot));
            end = end.max(to);
        }
        let mut bytes = vec![0; end];
        for p in file.elf_program_headers().iter().filter(|p| p.p_type(endian) == elf::PT_LOAD) {
            let data = p.data(endian, PROBE).expect("segments lie in the file");
            let at = p.p_vaddr(endian) as usize;
            bytes[at..at + data.len()].copy_from_slice(data);
        }
        let start = file.dynamic_symbols().find(|s| s.name() == Ok("sonde_probe_start"));
        let start = start.expect("the probe exports its start").address() as usize;
        let mut relocations = Vec::new();
        for (place, r) in file.dynamic_relocations().into_iter().flatten() {
            let relative = object::RelocationFlags::Elf { r_type: elf::R_X86_64_RELATIVE };
            assert_eq!(r.flags(), relative, "the probe needs no other library");
            relocations.push((place as usize, r.addend() as u64));
        }
        Image { bytes, segments, start, relocations }
    }

    /// The bytes for a load at `base`.
    pub fn at(&self, base: u64) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for (place, addend) in &self.relocations {
            bytes[*place..*place + 8].copy_from_slice(&(base + addend).to_le_bytes());
        }
        bytes
    }
}

/// Bytes from the start of a file that nearly always hold its program headers and notes. Programs can be large, and are
/// not read as a whole for that.
const HEAD: u64 = 1 << 16;

fn head_of(file: &File, most: u64) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut from_start = file;
    from_start.rewind()?;
    from_start.take(most).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether an ELF program asks for a dynamic loader; an error says what is wrong with it.
pub fn is_dynamic(path: &Path) -> io::Result<Result<bool, String>> {
    let file = File::open(path)?;
    match has_interpreter(&head_of(&file, HEAD)?) {
        // Tools that change programs put the headers behind everything else.
        Err(_) => Ok(has_interpreter(&head_of(&file, u64::MAX)?)),
        found => Ok(found),
    }
}

fn has_interpreter(data: &[u8]) -> Result<bool, String> {
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(|e| e.to_string())?;
    let endian = header.endian().map_err(|e| e.to_string())?;
    let programs = header.program_headers(endian, data).map_err(|e| e.to_string())?;
    Ok(programs.iter().any(|p| p.p_type(endian) == elf::PT_INTERP))
}

/// Largest file that is read for its build-id: what one can map is not always small (devices, huge data files).
const LARGEST_READ: u64 = 1 << 20;

/// The build-id of a file as the process sees it; empty if it has none or cannot be read.
pub fn build_id(pid: i32, name: &str) -> Vec<u8> {
    let seen_by_it = format!("/proc/{pid}/root{name}");
    let Ok(file) = File::open(seen_by_it).or_else(|_| File::open(name)) else {
        return Vec::new();
    };
    if !file.metadata().is_ok_and(|m| m.is_file()) {
        return Vec::new();
    }
    // Notes stand near the start of the file, mostly right behind the program headers.
    let note_in = |most: u64| head_of(&file, most).ok().and_then(|head| note_of(&head));
    note_in(HEAD).or_else(|| note_in(LARGEST_READ)).unwrap_or_default()
}

fn note_of(data: &[u8]) -> Option<Vec<u8>> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    for program in header.program_headers(endian, data).ok()? {
        let Ok(Some(mut notes)) = program.notes(endian, data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                return Some(note.desc().to_vec());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_can_be_placed_anywhere() {
        let image = Image::probe();
        assert!(
            image
                .segments
                .iter()
                .any(|s| s.2 & libc::PROT_EXEC != 0 && (s.0..s.0 + s.1).contains(&image.start))
        );
        assert!(image.segments.iter().all(|s| s.2 & libc::PROT_WRITE == 0 || s.2 & libc::PROT_EXEC == 0));
        let (a, b) = (image.at(0x10000), image.at(0x20000));
        assert_eq!(a.len(), b.len());
        assert_ne!(a, b);
    }
}
