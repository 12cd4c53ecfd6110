//! Reads what the probe logs until the program is gone.

use crate::children::{self, Children, Ended};
use crate::session::Session;
use crate::signals;
use crate::stops::News;
use crate::watch::Watch;
use sonde_event::maps::{Mapping, Mappings};
use sonde_event::{Decoder, Lost, Reader, StreamError};
use sonde_wire::Counter;
use sonde_wire::control::state;
use sonde_wire::descriptor::{HEAD_WORDS, Head};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
}

/// What a run came to, besides what the reader saw.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The probe's counters.
    pub counters: Vec<u64>,
    /// Log words that could not be read.
    pub lost: Lost,
    /// The first error met in the log, if any.
    pub error: Option<StreamError>,
    /// CPU time of the program (user and system), without its children.
    pub cpu: Duration,
    /// Its child processes.
    pub children: Children,
    /// Wall time.
    pub wall: Duration,
    /// Threads that the trigger could not be put on.
    pub uncovered: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Superblocks described.
    pub descriptions: u64,
    /// What lay where in the program.
    pub mappings: Mappings,
    /// The program that it replaced itself by (exec), if that was seen.
    pub became: Option<PathBuf>,
    /// Time-stamp ticks in a second.
    pub ticks_per_second: f64,
}

impl Totals {
    /// One of the probe's counters.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }
}

/// A session that is over.
pub struct Served {
    /// How the program ended.
    pub exit: Exit,
    /// What it came to.
    pub totals: Totals,
    /// The decoder, with the catalog of all code seen (empty if nobody read the stream).
    pub decoder: Decoder,
}

/// Sees what the probe wrote before anybody makes sense of it: a trace file is one.
pub trait Tap {
    /// A superblock was described.
    fn description(&mut self, words: &[u64]);
    /// A thread filled (a part of) a buffer; all it refers to was described before.
    fn log(&mut self, tid: i32, words: &[u64]);
    /// Something was mapped in the program.
    fn mapping(&mut self, mapping: &Mapping);
}

/// Where the stream goes. What nobody wants is not decoded.
#[derive(Default)]
pub struct Outlets<'a> {
    /// Gets the decoded stream.
    pub reader: Option<&'a mut dyn Reader>,
    /// Gets the raw one.
    pub tap: Option<&'a mut dyn Tap>,
}

/// Reading state of a session.
struct Reading<'a> {
    outlets: Outlets<'a>,
    scratch: Vec<u64>,
    error: Option<StreamError>,
    log_bytes: u64,
    descriptions: u64,
}

/// Time between two ticks.
const TICK: Duration = Duration::from_millis(100);

impl Reading<'_> {
    /// Passes the description in `scratch` on. Returns whether its code lies in no mapping known so far.
    fn description(&mut self, decoder: &mut Decoder, watch: &Watch) -> bool {
        self.descriptions += 1;
        if let Some(tap) = &mut self.outlets.tap {
            tap.description(&self.scratch);
        }
        if self.outlets.reader.is_some()
            && let Err(error) = decoder.describe(&self.scratch)
        {
            self.error.get_or_insert(error);
        }
        let head: Option<&[u64; HEAD_WORDS]> = self.scratch.first_chunk();
        head.is_some_and(|head| !watch.knows_code(Head::decode(head).pc))
    }
}

impl Session {
    /// Feeds the stream to the outlets until the program ends. `tick` is called about every 100 ms with the session,
    /// for progress and adaptation.
    pub fn serve(mut self, outlets: Outlets<'_>, tick: &mut dyn FnMut(&mut Session)) -> Served {
        let mut reading =
            Reading { outlets, scratch: Vec::new(), error: None, log_bytes: 0, descriptions: 0 };
        let mut next_tick = Instant::now() + TICK;
        self.look_at_mappings(&mut reading);
        let exit = loop {
            let seen = self.shared.control().full_signal.load(Acquire);
            let busy = self.drain(&mut reading);
            self.read_descriptions(&mut reading);
            match self.poll() {
                Poll::Running => {}
                Poll::Ended(exit) => break exit,
                Poll::Replaced => {
                    self.drain(&mut reading);
                    self.drain_rest(&mut reading);
                    self.place_again();
                }
            }
            let now = Instant::now();
            if let Some(threads) = &mut self.threads {
                threads.scan(now);
            }
            if self.watch.is_due(now) {
                self.look_at_mappings(&mut reading);
            }
            if now >= next_tick {
                tick(&mut self);
                next_tick = now + TICK;
            }
            if !busy {
                self.wait(seen);
            }
        };
        self.drain(&mut reading);
        self.drain_rest(&mut reading);
        let totals = Totals {
            counters: self.shared.control().counters.iter().map(|c| c.load(Relaxed)).collect(),
            lost: self.decoder.lost(),
            error: reading.error,
            cpu: self.cpu,
            children: self.children(),
            wall: self.clock.elapsed(),
            uncovered: self.threads.as_ref().map_or(0, |t| t.uncovered),
            log_bytes: reading.log_bytes,
            descriptions: reading.descriptions,
            ticks_per_second: self.clock.ticks_per_second(),
            became: self.watch.became().map(Path::to_owned),
            mappings: self.watch.into_mappings(),
        };
        Served { exit, totals, decoder: self.decoder }
    }

    /// Looks at the program's mappings and tells what is new.
    fn look_at_mappings(&mut self, reading: &mut Reading<'_>) {
        for mapping in &self.watch.look(Instant::now()) {
            if let Some(tap) = &mut reading.outlets.tap {
                tap.mapping(mapping);
            }
            if let Some(reader) = &mut reading.outlets.reader {
                reader.mapping(mapping);
            }
        }
    }

    /// Waits for a full buffer, the end of the program, or a little while.
    fn wait(&self, seen: u32) {
        let patience = self.stops.as_ref().map_or(Duration::from_millis(2), |s| s.patience());
        let limit = libc::timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let word = self.shared.control().full_signal.as_ptr();
        // SAFETY: the word and the time are valid; FUTEX_WAIT = 0 on shared memory.
        unsafe { libc::syscall(libc::SYS_futex, word, 0, seen, &raw const limit, 0, 0) };
    }

    /// Reads new descriptions.
    fn read_descriptions(&mut self, reading: &mut Reading<'_>) {
        let ring = self.shared.regions().descriptors;
        let control = self.shared.control();
        let end = control.described.load(Acquire);
        let mut at = control.descriptions_read.load(Relaxed);
        let mut unmapped = false;
        while at < end {
            let place = at % ring.len;
            self.shared.copy_words(ring.start + place, 1, &mut reading.scratch);
            let bytes = u64::from(reading.scratch[0] as u32);
            if bytes == 0 {
                at += ring.len - place;
                continue;
            }
            if !bytes.is_multiple_of(8) || place + bytes > ring.len || at + bytes > end {
                reading.error.get_or_insert(StreamError::BadDescription {
                    index: 0,
                    what: "its length is impossible",
                });
                at = end;
                break;
            }
            self.shared.copy_words(ring.start + place, bytes as usize / 8, &mut reading.scratch);
            unmapped |= reading.description(&mut self.decoder, &self.watch);
            at += bytes;
        }
        control.descriptions_read.store(at, Release);
        if unmapped {
            self.look_at_mappings(reading);
        }
    }

    /// Reads all full buffers, oldest first. Returns whether there was one.
    fn drain(&mut self, reading: &mut Reading<'_>) -> bool {
        let mut any = false;
        loop {
            let buffers = &self.shared.control().buffers[..self.shared.regions().count as usize];
            let full = buffers.iter().enumerate().filter(|(_, b)| b.state.load(Acquire) == state::FULL);
            let Some(i) = full.min_by_key(|(_, b)| b.order.load(Relaxed)).map(|(i, _)| i) else { break };
            self.read_buffer(i, reading);
            let control = self.shared.control();
            control.buffers[i].state.store(state::FREE, Release);
            control.free_signal.fetch_add(1, AcqRel);
            // SAFETY: FUTEX_WAKE = 1 only uses the address as a name.
            unsafe { libc::syscall(libc::SYS_futex, control.free_signal.as_ptr(), 1, i32::MAX, 0, 0, 0) };
            any = true;
        }
        any
    }

    /// After the end: buffers that threads were still filling.
    fn drain_rest(&mut self, reading: &mut Reading<'_>) {
        for i in 0..self.shared.regions().count as usize {
            if self.shared.control().buffers[i].state.load(Acquire) == state::OWNED {
                self.read_buffer(i, reading);
            }
        }
    }

    fn read_buffer(&mut self, i: usize, reading: &mut Reading<'_>) {
        self.read_descriptions(reading);
        let buffer = &self.shared.control().buffers[i];
        let tid = buffer.tid.load(Relaxed);
        let regions = self.shared.regions();
        let used = buffer.used.load(Acquire).min(regions.buffer_len());
        reading.log_bytes += used;
        let words = self.shared.words(regions.buffer(i as u64), used as usize / 8);
        if let Some(tap) = &mut reading.outlets.tap {
            tap.log(tid, words);
        }
        if let Some(reader) = &mut reading.outlets.reader
            && let Err(error) = self.decoder.log(tid, words, *reader)
        {
            reading.error.get_or_insert(error);
        }
        let wanted = reading.outlets.reader.as_ref().is_some_and(|reader| reader.wants_mappings());
        if wanted && self.watch.is_worth_a_look(Instant::now()) {
            self.look_at_mappings(reading);
        }
    }

    /// What became of the program meanwhile.
    fn poll(&mut self) -> Poll {
        if let Some(stops) = &mut self.stops {
            return match stops.serve(&self.shared) {
                None => Poll::Running,
                Some(News::Ended(ended)) => Poll::Ended(self.ended(ended)),
                Some(News::Stopped(signal)) => {
                    signals::stop_like(self.pid, signal);
                    Poll::Running
                }
                Some(News::Replaced) => Poll::Replaced,
            };
        }
        match children::next_report(self.pid, libc::WSTOPPED) {
            None => Poll::Running,
            Some((_, true)) => {
                children::take_end(self.pid).map_or(Poll::Running, |ended| Poll::Ended(self.ended(ended)))
            }
            Some((_, false)) => {
                let mut status = 0;
                // SAFETY: the status is written to a local.
                unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG | libc::WUNTRACED) };
                if libc::WIFSTOPPED(status) {
                    signals::stop_like(self.pid, libc::WSTOPSIG(status));
                }
                Poll::Running
            }
        }
    }

    fn ended(&mut self, ended: Ended) -> Exit {
        self.cpu = ended.own;
        self.children_cpu = ended.children;
        exit_of(ended.status)
    }

    /// Counted by the tracer, by the probe, or by looking; see the module that looks.
    fn children(&self) -> Children {
        let inside = self.shared.control().counter(Counter::Children);
        let reported = self.stops.as_ref().map_or(0, |s| s.children);
        let seen = self.threads.as_ref().map_or(0, |t| t.children.count());
        // Some there were, if there is time that only children can have taken.
        let some = u64::from(self.children_cpu > Duration::ZERO);
        let count = (inside + reported + seen).max(some);
        let is_lower_bound = count > 0 && self.threads.is_some();
        Children { count, is_lower_bound, cpu: self.children_cpu }
    }
}

/// What a look at the program found.
enum Poll {
    Running,
    Ended(Exit),
    Replaced,
}

fn exit_of(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Status(libc::WEXITSTATUS(status))
    }
}
