//! Reads what the probe logs until the program is gone.

use crate::session::Session;
use sonde_event::{Lost, Reader, StreamError};
use sonde_wire::Counter;
use sonde_wire::control::state;
use std::collections::HashMap;
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
    /// CPU time of the program (user and system).
    pub cpu: Duration,
    /// Wall time.
    pub wall: Duration,
    /// Threads that the trigger could not be put on.
    pub uncovered: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
}

impl Totals {
    /// One of the probe's counters.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }
}

/// Reading state of a session.
#[derive(Default)]
pub struct Reading {
    fs_bases: HashMap<i32, u64>,
    scratch: Vec<u64>,
    error: Option<StreamError>,
    log_bytes: u64,
}

impl Session {
    /// Feeds the stream to `reader` until the program ends. `tick` is called about every 100 ms with the session, for
    /// progress and adaptation.
    pub fn serve(mut self, reader: &mut dyn Reader, tick: &mut dyn FnMut(&mut Session)) -> (Exit, Totals) {
        let mut reading = Reading::default();
        let mut next_tick = Instant::now() + Duration::from_millis(100);
        let exit = loop {
            let seen = self.shared.control().full_signal.load(Acquire);
            let busy = self.drain(&mut reading, reader);
            if let Some(exit) = self.poll_exit() {
                break exit;
            }
            let now = Instant::now();
            if let Some(threads) = &mut self.threads {
                threads.scan(now);
            }
            if now >= next_tick {
                tick(&mut self);
                next_tick = now + Duration::from_millis(100);
            }
            if !busy {
                self.wait(seen);
            }
        };
        self.drain(&mut reading, reader);
        self.drain_rest(&mut reading, reader);
        let totals = Totals {
            counters: self.shared.control().counters.iter().map(|c| c.load(Relaxed)).collect(),
            lost: self.decoder.lost(),
            error: reading.error,
            cpu: self.cpu,
            wall: self.started.elapsed(),
            uncovered: self.threads.as_ref().map_or(0, |t| t.uncovered),
            log_bytes: reading.log_bytes,
        };
        (exit, totals)
    }

    /// Waits for a full buffer, the end of the program, or a little while.
    fn wait(&self, seen: u32) {
        let limit = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let word = self.shared.control().full_signal.as_ptr();
        // SAFETY: the word and the time are valid; FUTEX_WAIT = 0 on shared memory.
        unsafe { libc::syscall(libc::SYS_futex, word, 0, seen, &raw const limit, 0, 0) };
    }

    /// Reads new descriptions.
    fn read_descriptions(&mut self, reading: &mut Reading) {
        let control = self.shared.control();
        let ring = self.shared.regions().descriptors;
        let end = control.described.load(Acquire);
        let mut at = control.descriptions_read.load(Relaxed);
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
            if let Err(error) = self.decoder.describe(&reading.scratch) {
                reading.error.get_or_insert(error);
            }
            at += bytes;
        }
        control.descriptions_read.store(at, Release);
    }

    /// Reads all full buffers, oldest first. Returns whether there was one.
    fn drain(&mut self, reading: &mut Reading, reader: &mut dyn Reader) -> bool {
        let mut any = false;
        loop {
            let buffers = &self.shared.control().buffers[..self.shared.regions().count as usize];
            let full = buffers.iter().enumerate().filter(|(_, b)| b.state.load(Acquire) == state::FULL);
            let Some(i) = full.min_by_key(|(_, b)| b.order.load(Relaxed)).map(|(i, _)| i) else { break };
            self.read_buffer(i, reading, reader);
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
    fn drain_rest(&mut self, reading: &mut Reading, reader: &mut dyn Reader) {
        for i in 0..self.shared.regions().count as usize {
            if self.shared.control().buffers[i].state.load(Acquire) == state::OWNED {
                self.read_buffer(i, reading, reader);
            }
        }
    }

    fn read_buffer(&mut self, i: usize, reading: &mut Reading, reader: &mut dyn Reader) {
        self.read_descriptions(reading);
        let buffer = &self.shared.control().buffers[i];
        let tid = buffer.tid.load(Relaxed);
        let regions = self.shared.regions();
        let used = buffer.used.load(Acquire).min(regions.buffer_len());
        reading.log_bytes += used;
        let words = self.shared.words(regions.buffer(i as u64), used as usize / 8);
        let fs_base = reading.fs_bases.get(&tid).copied().unwrap_or(0);
        match self.decoder.log(tid, fs_base, words, reader) {
            Ok(base) => {
                reading.fs_bases.insert(tid, base);
            }
            Err(error) => {
                reading.error.get_or_insert(error);
            }
        }
    }

    /// Whether the program has ended, and how.
    fn poll_exit(&mut self) -> Option<Exit> {
        let mut status = 0;
        // SAFETY: plain data written by the kernel.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers lead to locals.
        let pid = unsafe { libc::wait4(self.pid, &mut status, libc::WNOHANG, &mut usage) };
        if pid != self.pid {
            return None;
        }
        let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
        self.cpu = time(usage.ru_utime) + time(usage.ru_stime);
        Some(if libc::WIFSIGNALED(status) {
            Exit::Signal(libc::WTERMSIG(status))
        } else {
            Exit::Status(libc::WEXITSTATUS(status))
        })
    }
}
