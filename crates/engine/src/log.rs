//! The log of a thread: which shared buffer it writes to, and markers between the superblock records.

use crate::state::Engine;
use crate::thread::Thread;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::time::Duration;
use sonde_wire::Counter;
use sonde_wire::control::state;
use sonde_wire::marker::{self, Kind};
use sonde_x64::plan::MAX_RECORD_WORDS;

/// Room that must be left in a buffer when a burst begins.
const ROOM: u64 = 32 << 10;

impl Engine {
    /// Address of buffer `i`.
    pub fn buffer_at(&self, i: i32) -> u64 {
        self.shared as u64 + self.control().regions.buffer(i as u64)
    }

    /// Whether an address lies in the guard of the thread's buffer.
    pub fn in_guard(&self, thread: &Thread, at: u64) -> bool {
        if thread.buffer < 0 {
            return false;
        }
        let regions = &self.control().regions;
        let guard = self.buffer_at(thread.buffer) + regions.buffer_len();
        at >= guard && at < guard + sonde_wire::control::GUARD
    }

    /// Gives the thread a buffer with room for a burst. False if there is none.
    pub fn prepare_log(&self, thread: &mut Thread, wait: bool) -> bool {
        if thread.buffer >= 0 {
            let end = self.buffer_at(thread.buffer) + self.control().regions.buffer_len();
            if thread.log + ROOM < end {
                return true;
            }
            self.submit(thread);
        }
        self.acquire(thread, wait)
    }

    /// Hands the thread's buffer to the reader, with all records before `thread.log`.
    pub fn submit(&self, thread: &mut Thread) {
        let Some(buffer) = self.control().buffers.get(thread.buffer as usize) else { return };
        let used = thread.log.saturating_sub(self.buffer_at(thread.buffer));
        buffer.used.store(used, Relaxed);
        buffer.order.store(self.control().order.fetch_add(1, Relaxed), Relaxed);
        buffer.state.store(state::FULL, Release);
        self.control().count(Counter::LogBytes, used);
        thread.buffer = -1;
        self.control().full_signal.fetch_add(1, AcqRel);
        sonde_sys::process::futex_wake(&self.control().full_signal);
    }

    /// The program ends, or replaces itself: waits until the reader has read what was handed in. It then looks at what the addresses lie in, which
    /// is gone once the program is.
    pub fn await_reader(&self) {
        // A reader that is stuck must not keep the program for ever: 5 s.
        for _ in 0..250 {
            let seen = self.control().free_signal.load(Acquire);
            if !self.buffers().iter().any(|b| b.state.load(Acquire) == state::FULL) {
                return;
            }
            sonde_sys::process::futex_wait(&self.control().free_signal, seen, Duration::from_millis(20));
            if !sonde_sys::process::process_exists(self.control().config.sonde) {
                return;
            }
        }
    }

    /// Publishes how far the thread has written, so that the reader finds it whatever happens to the thread.
    pub fn publish(&self, thread: &Thread) {
        if let Some(buffer) = self.control().buffers.get(thread.buffer as usize) {
            buffer.used.store(thread.log.saturating_sub(self.buffer_at(thread.buffer)), Release);
        }
    }

    /// Takes a free buffer; with `wait`, as long as the reader lives.
    pub fn acquire(&self, thread: &mut Thread, wait: bool) -> bool {
        let mut waited = false;
        loop {
            let seen = self.control().free_signal.load(Acquire);
            if let Some(i) = self.take_free(thread) {
                thread.buffer = i;
                thread.log = self.buffer_at(i);
                return true;
            }
            if !wait || self.control().stop.load(Relaxed) != 0 {
                return false;
            }
            if !waited {
                self.control().count(Counter::Waits, 1);
                waited = true;
            }
            sonde_sys::process::futex_wait(&self.control().free_signal, seen, Duration::from_millis(20));
            if !sonde_sys::process::process_exists(self.control().config.sonde) {
                self.control().stop.store(1, Relaxed);
                return false;
            }
        }
    }

    /// Threads that sleep in system calls keep their buffers, so that with more threads than buffers the ones that run
    /// would wait for ever. So a thread hands its own in before a system call while less than a quarter is free.
    pub fn hand_in_if_scarce(&self, thread: &mut Thread) {
        let buffers = self.buffers();
        let free = buffers.iter().filter(|b| b.state.load(Relaxed) == state::FREE).count();
        if thread.buffer >= 0 && free * 4 < buffers.len() {
            self.submit(thread);
        }
    }

    /// Whether the thread has a buffer (again, if it handed its own in). False if none can be had any more.
    pub fn has_buffer(&self, thread: &mut Thread) -> bool {
        thread.buffer >= 0 || self.acquire(thread, true)
    }

    fn buffers(&self) -> &[sonde_wire::Buffer] {
        let count = (self.control().regions.count as usize).min(self.control().buffers.len());
        &self.control().buffers[..count]
    }

    fn take_free(&self, thread: &Thread) -> Option<i32> {
        for (i, buffer) in self.buffers().iter().enumerate() {
            if buffer.state.load(Relaxed) == state::FREE
                && buffer.state.compare_exchange(state::FREE, state::OWNED, AcqRel, Relaxed).is_ok()
            {
                buffer.tid.store(thread.tid.load(Relaxed), Relaxed);
                buffer.used.store(0, Release);
                return Some(i as i32);
            }
        }
        None
    }

    /// Writes a marker. The log must have a buffer; a full one is exchanged first. False if it could not be written.
    pub fn mark(&self, thread: &mut Thread, kind: Kind, words: &[u64], wait: bool) -> bool {
        if thread.buffer < 0 {
            return false;
        }
        let end = self.buffer_at(thread.buffer) + self.control().regions.buffer_len();
        if thread.log + 8 * (words.len() as u64 + 1 + MAX_RECORD_WORDS as u64) > end {
            self.submit(thread);
            if !self.acquire(thread, wait) {
                return false;
            }
        }
        let at = thread.log as *mut u64;
        // SAFETY: the log has room for the marker, as just checked, and this thread owns the buffer.
        unsafe {
            *at = u64::from(marker::header(kind, words.len() as u16 + 1));
            for (i, w) in words.iter().enumerate() {
                *at.add(i + 1) = *w;
            }
        }
        thread.log += 8 * (words.len() as u64 + 1);
        self.publish(thread);
        true
    }
}
