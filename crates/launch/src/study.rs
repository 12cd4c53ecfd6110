//! One process with a probe inside, as its reader sees it: shared memory, decoder, mappings, and what was counted.

use crate::children::Children;
use crate::serve::{Outlets, Totals};
use crate::shared::SharedMemory;
use crate::stacks;
use crate::watch::{Clock, Watch};
use sonde_event::maps::Mapping;
use sonde_event::{Decoder, Detail, StreamError};
use sonde_wire::control::state;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use sonde_wire::slot::POOL_BYTES;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// A process that is recorded.
pub(crate) struct Study {
    pub pid: i32,
    pub shared: Arc<SharedMemory>,
    pub watch: Watch,
    pub decoder: Decoder,
    scratch: Vec<u64>,
    error: Option<StreamError>,
    log_bytes: u64,
    descriptions: u64,
}

/// What is known of a run besides what was read.
#[derive(Default)]
pub(crate) struct Spent {
    pub cpu: Duration,
    pub system: Duration,
    pub children: Children,
    pub uncovered: u64,
    pub let_go: u64,
}

impl Study {
    /// Nothing read yet.
    pub fn new(pid: i32, shared: Arc<SharedMemory>, detail: Detail) -> Study {
        Study {
            pid,
            shared,
            watch: Watch::new(pid),
            decoder: Decoder::new(detail),
            scratch: Vec::new(),
            error: None,
            log_bytes: 0,
            descriptions: 0,
        }
    }

    /// Reads what is there, of full buffers the oldest. Returns whether there was one.
    pub fn read(&mut self, out: &mut Outlets<'_>) -> bool {
        let busy = self.read_oldest(out);
        self.read_descriptions(out);
        busy
    }

    /// Superblocks described so far.
    pub fn descriptions(&self) -> u64 {
        self.descriptions
    }

    /// Reads what is there once nobody writes any more: also the buffers that threads were still filling.
    pub fn read_rest(&mut self, out: &mut Outlets<'_>) {
        while self.read_oldest(out) {}
        for i in 0..self.shared.regions().count as usize {
            if self.shared.control().buffers[i].state.load(Acquire) == state::OWNED {
                self.read_buffer(i, out);
            }
        }
    }

    /// The probe's memory is not the program's; where it is, is known once it started.
    fn leave_out_ours(&mut self) {
        let control = self.shared.control();
        let pool = control.pool.load(Relaxed);
        let ours = [
            (control.probe_start.load(Relaxed), control.probe_end.load(Relaxed)),
            (control.cache_start.load(Relaxed), control.cache_end.load(Relaxed)),
            (pool, if pool == 0 { 0 } else { pool.saturating_add(POOL_BYTES as u64) }),
        ];
        let beside = self.shared.beside_code();
        self.watch.leave_out(ours.into_iter().chain([self.shared.there()]).chain(beside));
    }

    /// Looks at the mappings and tells what is new.
    pub fn look_at_mappings(&mut self, out: &mut Outlets<'_>) {
        tell(&self.look(), out);
    }

    /// Looks at the mappings; the caller tells what is new.
    pub fn look(&mut self) -> Vec<Mapping> {
        self.leave_out_ours();
        self.watch.look(Instant::now())
    }

    /// What it came to.
    pub fn conclude(self, clock: &Clock, spent: Spent) -> (Totals, Decoder) {
        let totals = Totals {
            counters: self.shared.control().counters.iter().map(|c| c.load(Relaxed)).collect(),
            lost: self.decoder.lost(),
            error: self.error,
            cpu: spent.cpu,
            system: spent.system,
            children: spent.children,
            wall: clock.elapsed(),
            uncovered: spent.uncovered,
            let_go: spent.let_go,
            log_bytes: self.log_bytes,
            descriptions: self.descriptions,
            ticks_per_second: clock.ticks_per_second(),
            started: self.shared.control().ready.load(Relaxed) != 0,
            became: self.watch.became().map(Path::to_owned),
            mappings: self.watch.into_mappings(),
        };
        (totals, self.decoder)
    }

    /// Reads new descriptions.
    fn read_descriptions(&mut self, out: &mut Outlets<'_>) {
        let ring = self.shared.regions().descriptors;
        let control = self.shared.control();
        let end = control.described.load(Acquire);
        let mut at = control.descriptions_read.load(Relaxed);
        let mut unmapped = false;
        while at < end {
            let place = at % ring.len;
            self.shared.copy_words(ring.start + place, 1, &mut self.scratch);
            let bytes = u64::from(self.scratch[0] as u32);
            if bytes == 0 {
                at += ring.len - place;
                continue;
            }
            if !bytes.is_multiple_of(8) || place + bytes > ring.len || at + bytes > end {
                let what = "its length is impossible";
                self.error.get_or_insert(StreamError::BadDescription { index: 0, what });
                at = end;
                break;
            }
            self.shared.copy_words(ring.start + place, bytes as usize / 8, &mut self.scratch);
            unmapped |= self.description(out);
            at += bytes;
        }
        self.shared.control().descriptions_read.store(at, Release);
        if unmapped {
            self.look_at_mappings(out);
        }
    }

    /// Passes the description in `scratch` on. Returns whether its code lies in no mapping known so far.
    fn description(&mut self, out: &mut Outlets<'_>) -> bool {
        self.descriptions += 1;
        if let Some(tap) = &mut out.tap {
            tap.description(&self.scratch);
        }
        if out.reader.is_some()
            && let Err(error) = self.decoder.describe(&self.scratch)
        {
            self.error.get_or_insert(error);
        }
        let head: Option<&[u64; HEAD_WORDS]> = self.scratch.first_chunk();
        head.is_some_and(|head| !self.watch.knows_code(Head::decode(head).pc))
    }

    /// Reads the buffer that has been full for longest. Returns whether there was one.
    fn read_oldest(&mut self, out: &mut Outlets<'_>) -> bool {
        let buffers = &self.shared.control().buffers[..self.shared.regions().count as usize];
        let full = buffers.iter().enumerate().filter(|(_, b)| b.state.load(Acquire) == state::FULL);
        let Some(i) = full.min_by_key(|(_, b)| b.order.load(Relaxed)).map(|(i, _)| i) else { return false };
        self.read_buffer(i, out);
        let control = self.shared.control();
        control.buffers[i].state.store(state::FREE, Release);
        control.free_signal.fetch_add(1, AcqRel);
        // SAFETY: FUTEX_WAKE = 1 only uses the address as a name.
        unsafe { libc::syscall(libc::SYS_futex, control.free_signal.as_ptr(), 1, i32::MAX, 0, 0, 0) };
        true
    }

    fn read_buffer(&mut self, i: usize, out: &mut Outlets<'_>) {
        self.read_descriptions(out);
        self.leave_out_ours();
        let buffer = &self.shared.control().buffers[i];
        let tid = buffer.tid.load(Relaxed);
        let regions = self.shared.regions();
        let used = buffer.used.load(Acquire).min(regions.buffer_len());
        self.log_bytes += used;
        let words = self.shared.words(regions.buffer(i as u64), used as usize / 8);
        tell(&self.watch.before_reading(tid, words), out);
        let last = stacks::is_last(words);
        if let Some(tap) = &mut out.tap {
            tap.log(tid, words);
        }
        if let Some(reader) = &mut out.reader
            && let Err(error) = self.decoder.log(tid, words, *reader)
        {
            self.error.get_or_insert(error);
        }
        if let Some(reader) = out.reader.as_mut().filter(|_| self.shared.takes_masks())
            && let Some(loads) = reader.unwatched()
        {
            self.shared.leave_out(&loads);
        }
        let wanted = out.reader.as_ref().is_some_and(|reader| reader.wants_mappings());
        // A program that ends waits until this buffer is free, then its mappings are gone.
        if wanted && (last || self.watch.is_worth_a_look(Instant::now())) {
            self.look_at_mappings(out);
        }
    }
}

/// Tells of mappings.
pub(crate) fn tell(news: &[Mapping], out: &mut Outlets<'_>) {
    for mapping in news {
        if let Some(tap) = &mut out.tap {
            tap.mapping(mapping);
        }
        if let Some(reader) = &mut out.reader {
            reader.mapping(mapping);
        }
    }
}
