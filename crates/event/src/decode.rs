//! From logged words to the stream.

use crate::catalog::{Catalog, Path};
use crate::error::StreamError;
use crate::found::Found;
use crate::passes::Passes;
use crate::reader::{Begin, End, Kernel, Reader, Run, Signal, Syscall};
use sonde_wire::marker::{self, Cause, Kind};
use sonde_x64::plan::Detail;
use std::collections::HashMap;

/// What could not be read, so that nothing is lost silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Buffers that were given up in the middle.
    pub buffers: u64,
    /// Words in them that were not read.
    pub words: u64,
}

/// Decodes log buffers with the help of the descriptions that came with them.
pub struct Decoder {
    catalog: Catalog,
    lost: Lost,
    /// Each thread's fs base at the end of its last buffer.
    fs_bases: HashMap<i32, u64>,
    /// Passes that are told of next.
    found: Found,
}

/// Most passes that are told of together, and most references that they make: enough for readers that sort them, few enough
/// to stay in the cache.
const TOGETHER: usize = 1 << 13;
const REFERENCES: usize = 1 << 13;

/// State of the thread whose buffer is read.
struct Cursor {
    tid: i32,
    fs_base: u64,
}

impl Decoder {
    /// A decoder for a stream recorded with this detail.
    pub fn new(detail: Detail) -> Decoder {
        Decoder {
            catalog: Catalog::new(detail),
            lost: Lost::default(),
            fs_bases: HashMap::new(),
            found: Found::default(),
        }
    }

    /// The superblocks so far.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What could not be read so far.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Takes one description.
    pub fn describe(&mut self, words: &[u64]) -> Result<(), StreamError> {
        self.catalog.add(words)
    }

    /// Reads one buffer of thread `tid`. On an error, what came before it was delivered and the rest is counted as
    /// lost.
    pub fn log<R: Reader + ?Sized>(
        &mut self,
        tid: i32,
        words: &[u64],
        reader: &mut R,
    ) -> Result<(), StreamError> {
        let fs_base = self.fs_bases.get(&tid).copied().unwrap_or(0);
        let mut cursor = Cursor { tid, fs_base };
        let mut at = 0;
        while at < words.len() {
            let next = if words[at] as u32 >= marker::FIRST {
                self.marker(&mut cursor, words, at, reader)
            } else {
                let (end, outcome) = self.passes(&cursor, words, at, reader);
                at = end;
                outcome.map(|()| end)
            };
            match next {
                Ok(next) => at = next,
                Err(error) => {
                    self.lost.buffers += 1;
                    self.lost.words += (words.len() - at) as u64;
                    return Err(error);
                }
            }
        }
        self.fs_bases.insert(cursor.tid, cursor.fs_base);
        Ok(())
    }

    /// Tells of passes from `at` on; where they end, and what is wrong there.
    fn passes<R: Reader + ?Sized>(
        &mut self,
        cursor: &Cursor,
        words: &[u64],
        at: usize,
        reader: &mut R,
    ) -> (usize, Result<(), StreamError>) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let (end, outcome) = self.find_passes(words, at, &mut found);
        if !found.list.is_empty() {
            reader.passes(&Passes {
                catalog: &self.catalog,
                words,
                list: &found.list,
                taken: &found.taken,
                tid: cursor.tid,
                fs_base: cursor.fs_base,
                next_pc: self.pc_at(words, end),
            });
        }
        self.found = found;
        (end, outcome)
    }

    /// Where passes begin, from `at` to the next marker, until there are enough.
    #[inline]
    fn find_passes(
        &self,
        words: &[u64],
        mut at: usize,
        found: &mut Found,
    ) -> (usize, Result<(), StreamError>) {
        let mut references = 0;
        while let Some(&word) = words.get(at).filter(|_| found.list.len() < TOGETHER) {
            let header = word as u32;
            if header >= marker::FIRST {
                break;
            }
            let exit = header.wrapping_sub(1);
            let size = self.catalog.size(exit);
            if size.words == 0 {
                return (at, Err(StreamError::UnknownExit { at, exit }));
            }
            let end = at + usize::from(size.words);
            if end > words.len() {
                return (at, Err(cut_off(words, at, size.words)));
            }
            references += usize::from(size.refs);
            if references > REFERENCES && !found.list.is_empty() {
                break;
            }
            found.push(exit, at as u32);
            at = end;
        }
        (at, Ok(()))
    }

    /// The pc that the record at `at` starts with, if it is there.
    fn pc_at(&self, words: &[u64], at: usize) -> Option<u64> {
        let header = *words.get(at)? as u32;
        match marker::parse(header) {
            Some((Kind::End, _)) => words.get(at + 3).copied(),
            Some((Kind::Partial, n)) => {
                let info = words.get(at + n as usize - 1)?;
                Some(self.catalog.superblock_of_exit((info >> 32) as u32)?.pc)
            }
            Some(_) => None,
            None => Some(self.catalog.superblock_of_exit(header.wrapping_sub(1))?.pc),
        }
    }

    fn marker<R: Reader + ?Sized>(
        &self,
        cursor: &mut Cursor,
        words: &[u64],
        at: usize,
        reader: &mut R,
    ) -> Result<usize, StreamError> {
        let header = words[at] as u32;
        let (kind, len) = marker::parse(header).ok_or(StreamError::UnknownMarker { at, header })?;
        let end = at + len as usize;
        let body = words.get(at + 1..end).ok_or(cut_off(words, at, len))?;
        let short = || cut_off(words, at, len);
        match kind {
            Kind::Begin => {
                let [tid, time, fs_base, pc] = *body else { return Err(short()) };
                *cursor = Cursor { tid: tid as i32, fs_base };
                let flag = |flag: u64, kernel: Kernel| (tid & flag != 0).then_some(kernel);
                let kernel = flag(marker::BEHIND_CALL, Kernel::Call);
                let kernel = kernel.or_else(|| flag(marker::IN_FAULT, Kernel::Fault));
                reader.begin(&Begin { tid: cursor.tid, time, pc, kernel });
            }
            Kind::End => {
                let [time, cause, pc] = *body else { return Err(short()) };
                let cause = Cause::ALL.get(cause as usize).copied().unwrap_or(Cause::Stop);
                reader.end(&End { tid: cursor.tid, time, cause, pc });
            }
            Kind::Pace => {
                let [period_ns] = *body else { return Err(short()) };
                reader.pace(cursor.tid, period_ns);
            }
            Kind::FsBase => {
                let [base] = *body else { return Err(short()) };
                cursor.fs_base = base;
            }
            Kind::Partial => self.partial(cursor, &words[at..end], at, reader)?,
            Kind::Syscall => {
                let [number, result, pc] = *body else { return Err(short()) };
                reader.syscall(&Syscall { tid: cursor.tid, number, result, pc });
            }
            Kind::Signal => {
                let [signal, pc] = *body else { return Err(short()) };
                reader.signal(&Signal { tid: cursor.tid, signal: signal as i32, pc });
            }
        }
        Ok(end)
    }

    fn partial<R: Reader + ?Sized>(
        &self,
        cursor: &Cursor,
        record: &[u64],
        at: usize,
        reader: &mut R,
    ) -> Result<(), StreamError> {
        let info = record.last().copied().unwrap_or(0);
        let (exit, done) = ((info >> 32) as u32, info as u16);
        let unknown = StreamError::UnknownExit { at, exit };
        let path = self.catalog.path(exit).ok_or(unknown.clone())?;
        let superblock = self.catalog.superblock(path.superblock).ok_or(unknown)?;
        let done = done.min(superblock.insns.len() as u16);
        let refs = superblock.refs.iter().take_while(|r| r.insn < done).count();
        let path = Path {
            insns: done,
            blocks: superblock.blocks.iter().filter(|b| b.first < done).count() as u16,
            words: record.len() as u16,
            kind: sonde_x64::plan::ExitKind::Native,
            target: superblock.insns.get(done as usize).map_or(0, |i| i.pc),
            ..*path
        }
        .counting(&superblock.refs[..refs]);
        reader.run(&Run {
            superblock,
            path: &path,
            words: record,
            tid: cursor.tid,
            fs_base: cursor.fs_base,
            next_pc: None,
        });
        Ok(())
    }
}

fn cut_off(words: &[u64], at: usize, need: u16) -> StreamError {
    StreamError::CutOff { at, need: need as usize, have: words.len() - at }
}
