//! Changes the code of a program that stands still at its entry.

use super::bell::Bell;
use super::changes::{Changes, Code, Stubs};
use super::{LAYOUT, entry, room};
use crate::error::LaunchError;
use crate::fewer_checks::Modules;
use crate::place::find_syscall;
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use crate::stops::{Care, is_ours};
use sonde_checks::{BELL, InPlace, RINGS_AT, Scheme};
use sonde_event::maps::Mapping;
use sonde_wire::in_place as wire;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What was done to the program's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InPlaceFacts {
    /// Files whose code was changed.
    pub modules: usize,
    /// Places that count checks now: branches that lead through a stub, and instructions that were moved into one.
    pub placed: usize,
    /// Entries, back-edges and jumps that should have one, and could not get it.
    pub missed: usize,
    /// Functions that were left alone because their code is not understood.
    pub opaque: usize,
    /// Bytes of stubs.
    pub stub_bytes: u64,
    /// What was not changed: the file, and why.
    pub left: Vec<String>,
    /// Files with code, whether they were changed or not.
    pub known: Vec<String>,
}

/// A file that is about to be changed.
struct Candidate {
    mapping: Mapping,
    /// First and last address of all its mappings.
    span: (u64, u64),
    file: File,
    /// What is added to the file's addresses.
    bias: u64,
    plan: InPlace,
}

/// What a change came to.
struct Done {
    start: u64,
    end: u64,
    original: u64,
    stubs: u64,
    stubs_end: u64,
    moved: Vec<u64>,
    hashes: Vec<u64>,
}

/// The process, while it stands still.
struct Site<'t> {
    tracee: &'t Tracee,
    gate: u64,
    mappings: Vec<Mapping>,
    facts: InPlaceFacts,
}

/// Changes all files of a process, whose only thread stands at the program's entry.
pub fn apply(
    pid: i32,
    scheme: Scheme,
    shared: &SharedMemory,
    modules: &mut Modules,
) -> Result<Changes, LaunchError> {
    if fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1) {
        return Err(LaunchError::NotInPlace(
            "its libraries start threads before it comes to its entry".to_owned(),
        ));
    }
    let tracee = Tracee::new(pid)?;
    let gate = find_syscall(&tracee)?;
    let mut site = Site { tracee: &tracee, gate, mappings: mappings(pid), facts: InPlaceFacts::default() };
    // All are looked at before any is changed, and before anything is done to the program: that takes long.
    let candidates = site.candidates(scheme, modules)?;
    is_ours(pid, Care::Checks);
    let bell = Bell::hang(&tracee, gate)?;
    let mut room = shared.regions().in_place.len as usize / 8 - wire::words(0, 0, 0);
    let (mut done, mut stubs) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let name = candidate.mapping.name.clone();
        let words = wire::words(1, candidate.plan.moved.len(), candidate.pages()) - wire::words(0, 0, 0);
        if words > room {
            site.facts.left.push(format!("{name}: no room for its table; raise --probe-memory"));
            continue;
        }
        match site.change(&candidate, bell.at) {
            Ok(one) => {
                room -= words;
                site.facts.add(&candidate.plan);
                let code = Code { start: one.start, len: one.end - one.start, original: one.original };
                stubs.push(Stubs::new(one.stubs, one.stubs_end, code, &one.moved, RINGS_AT));
                done.push(one);
            }
            Err(why) => site.facts.left.push(format!("{name}: {}", in_words(why))),
        }
    }
    let table: Vec<wire::Module<'_>> = done.iter().map(Done::as_module).collect();
    shared.write_in_place(&table);
    Ok(Changes::new(bell, gate, stubs, site.facts, shared.control()))
}

/// What is mapped in a process.
pub fn mappings(pid: i32) -> Vec<Mapping> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(Mapping::parse).collect()
}

/// What went wrong, without what it means for a program as a whole.
fn in_words(error: LaunchError) -> String {
    match error {
        LaunchError::Place { what, error } => format!("{what}: {error}"),
        other => other.to_string(),
    }
}

impl InPlaceFacts {
    /// Of these mappings, those of code that came later: it counts no checks.
    pub fn came_later(&mut self, mappings: &[Mapping]) {
        for mapping in mappings.iter().filter(|m| m.is_file() && m.is_executable()) {
            if !self.known.contains(&mapping.name) {
                self.known.push(mapping.name.clone());
                self.left.push(format!("{}: not there when code was changed", mapping.name));
            }
        }
    }

    fn add(&mut self, plan: &InPlace) {
        self.modules += 1;
        self.placed += plan.placed;
        self.missed += plan.missed;
        self.opaque += plan.opaque;
        self.stub_bytes += plan.stubs.len() as u64;
    }
}

impl Done {
    fn as_module(&self) -> wire::Module<'_> {
        wire::Module {
            start: self.start,
            end: self.end,
            original: self.original,
            stubs: self.stubs,
            stubs_end: self.stubs_end,
            moved: &self.moved,
            hashes: &self.hashes,
        }
    }
}

impl Candidate {
    fn pages(&self) -> usize {
        ((self.mapping.end - self.mapping.start) / wire::PAGE) as usize
    }

    /// The bytes of the mapping, as the file has them.
    fn bytes(&self) -> Result<Vec<u8>, LaunchError> {
        let mut bytes = vec![0; (self.mapping.end - self.mapping.start) as usize];
        let mut read = 0;
        while let Ok(n @ 1..) = self.file.read_at(&mut bytes[read..], self.mapping.offset + read as u64) {
            read += n;
        }
        Ok(bytes)
    }
}

impl Site<'_> {
    /// Private executable mappings of files, but for the dynamic loader: it is what changes code itself.
    fn executable_files(&mut self) -> Vec<Mapping> {
        let loader = entry::loader(self.tracee.pid);
        let loader = self.mappings.iter().find(|m| Some(m.start) == loader).map(|m| m.name.as_str());
        let is = |m: &&Mapping| m.is_file() && m.permissions == "r-xp" && Some(m.name.as_str()) != loader;
        let files: Vec<Mapping> = self.mappings.iter().filter(is).cloned().collect();
        self.facts.known = files.iter().map(|m| m.name.clone()).chain(loader.map(str::to_owned)).collect();
        files
    }

    /// Analyses all files.
    fn candidates(&mut self, scheme: Scheme, modules: &mut Modules) -> Result<Vec<Candidate>, LaunchError> {
        let mut all = Vec::new();
        for mapping in self.executable_files() {
            let name = mapping.name.clone();
            match self.candidate(mapping, scheme, modules) {
                Ok(candidate) if candidate.plan.uses_gs => {
                    return Err(LaunchError::NotInPlace(format!(
                        "{name} uses the gs segment, where checks would be counted"
                    )));
                }
                Ok(candidate) => all.push(candidate),
                Err(why) => self.facts.left.push(format!("{name}: {why}")),
            }
        }
        Ok(all)
    }

    /// Analyses a file; says why it cannot be changed.
    fn candidate(
        &self,
        mapping: Mapping,
        scheme: Scheme,
        modules: &mut Modules,
    ) -> Result<Candidate, String> {
        let path = Path::new(&mapping.name);
        if self.mappings.iter().filter(|m| m.name == mapping.name && m.is_executable()).count() > 1 {
            return Err("it has several segments of code".to_owned());
        }
        let file = File::open(path).map_err(|error| error.to_string())?;
        let module = modules.open(path)?;
        let bias = bias(&self.mappings, &mapping, &module.segments)
            .ok_or_else(|| "its segments are not mapped as the file says".to_owned())?;
        let all = self.mappings.iter().filter(|m| m.name == mapping.name);
        let span =
            all.fold((mapping.start, mapping.end), |(low, high), m| (low.min(m.start), high.max(m.end)));
        let plan = InPlace::new(path, &module, scheme, LAYOUT).map_err(|error| error.to_string())?;
        Ok(Candidate { mapping, span, file, bias, plan })
    }

    /// Places stubs and the original beside the code, and changes it.
    fn change(&self, one: &Candidate, bell: u64) -> Result<Done, LaunchError> {
        let bytes = one.bytes()?;
        let mut changed = bytes.clone();
        let bytes_of_stubs = one.plan.stubs.len() as u64;
        let len = bytes_of_stubs.next_multiple_of(room::unit(bytes_of_stubs));
        let stubs = self.place_stubs(one, len, bell)?;
        let dirty = edit(one, stubs, &mut changed)
            .ok_or_else(|| LaunchError::NotInPlace("its code is not where it was analysed".to_owned()))?;
        self.compare(one, &bytes, &dirty)?;
        let original = self.map_original(one)?;
        let start = one.mapping.start;
        for page in dirty {
            let range = page * wire::PAGE as usize..(page + 1) * wire::PAGE as usize;
            self.tracee.write(start + range.start as u64, &changed[range])?;
        }
        let inside = |pc: u64| pc.wrapping_add(one.bias).wrapping_sub(start);
        let mut moved: Vec<u64> =
            one.plan.moved.iter().map(|(pc, to)| inside(*pc) << 32 | u64::from(*to)).collect();
        moved.sort_unstable();
        let hashes = changed.chunks_exact(wire::PAGE as usize).map(wire::hash).collect();
        Ok(Done { start, end: one.mapping.end, original, stubs, stubs_end: stubs + len, moved, hashes })
    }

    fn place_stubs(&self, one: &Candidate, len: u64, bell: u64) -> Result<u64, LaunchError> {
        let refused = |why: &str| LaunchError::NotInPlace(why.to_owned());
        // There are more by now: those of ours.
        let at = room::beside(&mappings(self.tracee.pid), one.span.0, one.span.1, len)
            .ok_or_else(|| refused("no room for stubs beside it"))?;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as u64;
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        let got = self.tracee.syscall(self.gate, libc::SYS_mmap, [at, len, rights, flags, u64::MAX, 0])?;
        if got != at {
            return Err(refused("no room for stubs beside it"));
        }
        if room::unit(len) > wire::PAGE {
            // Stubs are jumped to from everywhere, and take more of the processor's tables of pages than code does.
            let _ = self.tracee.syscall(
                self.gate,
                libc::SYS_madvise,
                [at, len, libc::MADV_HUGEPAGE as u64, 0, 0, 0],
            );
        }
        let mut stubs = one.plan.stubs.clone();
        let by = at.wrapping_sub(one.bias) as u32;
        for field in &one.plan.relative {
            let field = &mut stubs[*field as usize..][..4];
            let value = u32::from_le_bytes([field[0], field[1], field[2], field[3]]);
            field.copy_from_slice(&value.wrapping_sub(by).to_le_bytes());
        }
        stubs[BELL..BELL + 8].copy_from_slice(&bell.to_le_bytes());
        self.tracee.write(at, &stubs)?;
        Ok(at)
    }

    /// The code must be what the file says: a library with relocations in its code, or one that was changed already, is
    /// left alone.
    fn compare(&self, one: &Candidate, bytes: &[u8], pages: &[usize]) -> Result<(), LaunchError> {
        let mut there = [0; wire::PAGE as usize];
        for page in pages {
            let at = page * wire::PAGE as usize;
            self.tracee.read(one.mapping.start + at as u64, &mut there)?;
            if there[..] != bytes[at..at + there.len()] {
                return Err(LaunchError::NotInPlace("its code in memory is not that of the file".to_owned()));
            }
        }
        Ok(())
    }

    /// Maps the file's code once more, for who wants to know what it was.
    fn map_original(&self, one: &Candidate) -> Result<u64, LaunchError> {
        let call = |nr: i64, args| self.tracee.syscall(self.gate, nr, args);
        let path = format!("/proc/{}/fd/{}\0", std::process::id(), one.file.as_raw_fd());
        let at = (self.tracee.registers()?.rsp - 1024) & !15;
        self.tracee.write(at, path.as_bytes())?;
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let fd = call(libc::SYS_openat, [libc::AT_FDCWD as i64 as u64, at, flags, 0, 0, 0])?;
        let len = one.mapping.end - one.mapping.start;
        let (rights, private) = (libc::PROT_READ as u64, libc::MAP_PRIVATE as u64);
        let original = call(libc::SYS_mmap, [0, len, rights, private, fd, one.mapping.offset]);
        call(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?;
        original
    }
}

/// Makes the changes in the bytes of a mapping; says in which pages. None if a branch is not where one should be.
fn edit(one: &Candidate, stubs: u64, bytes: &mut [u8]) -> Option<Vec<usize>> {
    let mut dirty = Vec::new();
    for edit in &one.plan.edits {
        let field = edit.field.wrapping_add(one.bias);
        let at = field.wrapping_sub(one.mapping.start) as usize;
        let first = at.checked_sub(usize::from(edit.jump))?;
        let is_branch = |before: &[u8]| matches!(before, [_, 0xe8 | 0xe9] | [0x0f, 0x80..=0x8f]);
        if !edit.jump && !bytes.get(at.checked_sub(2)?..at).is_some_and(is_branch) {
            return None;
        }
        let Some(place) = bytes.get_mut(first..at + 4) else { continue };
        let value = stubs.wrapping_add(u64::from(edit.to)).wrapping_sub(field + 4) as u32;
        if edit.jump {
            place[0] = 0xe9;
        }
        let field = place.len() - 4;
        place[field..].copy_from_slice(&value.to_le_bytes());
        for byte in [first, at + 3] {
            let page = byte / wire::PAGE as usize;
            if dirty.last() != Some(&page) {
                dirty.push(page);
            }
        }
    }
    dirty.sort_unstable();
    dirty.dedup();
    Some(dirty)
}

/// What is added to the addresses of a file whose code is this mapping. It is the same for all its segments, and told by the
/// one that the file begins with: others share pages of the file, so that an offset does not say which it is.
fn bias(mappings: &[Mapping], mapping: &Mapping, segments: &[(u64, u64, u64)]) -> Option<u64> {
    let page = |at: u64| at & !(wire::PAGE - 1);
    let head = mappings.iter().find(|m| m.name == mapping.name && m.offset == 0)?;
    let (first, _, _) = segments.iter().find(|(_, offset, _)| *offset == 0)?;
    let bias = head.start.wrapping_sub(page(*first));
    let is_here = |(address, offset, _): &&(u64, u64, u64)| {
        page(*offset) == mapping.offset && page(*address).wrapping_add(bias) == mapping.start
    };
    segments.iter().find(is_here).map(|_| bias)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `lld` lays files out: code begins in the middle of a page that the segment before it ends in, and is mapped twice.
    #[test]
    fn addresses_are_those_of_the_segment_that_is_mapped() {
        let segments = [(0, 0, 0x11bb0), (0x12bc0, 0x11bc0, 0x5_0000), (0x63c00, 0x61c00, 0x1000)];
        let at = |start: u64, len: u64, offset| Mapping {
            start,
            end: start + len,
            offset,
            name: "/x".into(),
            ..Mapping::default()
        };
        let base = 0x7f00_0000_0000;
        let all =
            [at(base, 0x12000, 0), at(base + 0x12000, 0x51000, 0x11000), at(base + 0x63000, 0x2000, 0x61000)];
        assert_eq!(bias(&all, &all[1], &segments), Some(base));
        assert_eq!(
            bias(&all, &at(base + 0x11000, 0x51000, 0x11000), &segments),
            None,
            "not where it should be"
        );
        assert_eq!(bias(&all[1..], &all[1], &segments), None, "without its begin");
    }
}
