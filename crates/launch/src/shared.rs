//! The memory shared with the probe, from our side.

use crate::error::{LaunchError, own};
use crate::options::{Options, Policy};
use sonde_event::Detail;
use sonde_wire::control::{self, MAX_BUFFERS, policy};
use sonde_wire::{Config, Control, Regions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// A file in memory, mapped here, to be mapped into the program too.
pub struct SharedMemory {
    fd: OwnedFd,
    at: *mut u8,
    len: usize,
    regions: Regions,
}

// SAFETY: the mapping is only reached through atomics and copies; it lives as long as this value.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

/// Bytes of one log buffer.
const BUFFER_BYTES: u64 = 1 << 20;

/// How a memory limit is divided: (code cache, descriptors, number of buffers). Half goes to the code cache and its
/// indexes, an eighth to descriptions, the rest to buffers.
fn divide(limit: u64) -> (u64, u64, u64) {
    // The cache's indexes take about as much again in the worst case (small superblocks).
    let cache = (limit / 4).clamp(1 << 20, 512 << 20);
    let descriptors = (limit / 8).clamp(256 << 10, 64 << 20);
    let buffers = (limit / 4 / BUFFER_BYTES).clamp(2, MAX_BUFFERS as u64);
    (cache, descriptors, buffers)
}

impl SharedMemory {
    /// Makes and configures the shared memory.
    pub fn new(options: &Options, trigger: u32, signal: i32) -> Result<SharedMemory, LaunchError> {
        let (cache_bytes, descriptors, buffers) = divide(options.max_memory);
        let regions = Regions::new(descriptors, buffers, BUFFER_BYTES);
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"sonde".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(own("memfd_create"));
        }
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let len = regions.file_len() as usize;
        // SAFETY: plain system calls on our own descriptor.
        let at = unsafe {
            if libc::ftruncate(fd.as_raw_fd(), len as i64) != 0 {
                return Err(own("ftruncate"));
            }
            let both = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), len, both, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(own("mmap"));
        }
        let shared = SharedMemory { fd, at: at.cast(), len, regions };
        shared.configure(options, trigger, signal, cache_bytes);
        Ok(shared)
    }

    fn configure(&self, options: &Options, trigger: u32, signal: i32, cache_bytes: u64) {
        let (policy, period_ns, burst_checks, gap_checks) = match options.policy {
            Policy::Bursts { period, checks } => (policy::BURSTS, period.as_nanos() as u64, checks, 0),
            Policy::Always => (policy::ALWAYS, 0, 0, 0),
            Policy::Counter { gap, checks } => (policy::COUNTER, 0, checks, gap),
        };
        let detail = match options.detail {
            Detail::Blocks => 0,
            Detail::Addresses => 1,
            Detail::Values => 2,
        };
        let config = Config {
            policy,
            detail,
            burst_checks,
            gap_checks,
            trigger,
            signal,
            period_ns,
            jitter: options.random_gap.min(1000),
            sonde: std::process::id() as i32,
            cache_bytes,
            seed: options.seed,
        };
        let control = self.at.cast::<Control>();
        // SAFETY: the mapping is large enough, zeroed, and not shared with anybody yet.
        unsafe {
            (*control).config = config;
            (*control).regions = self.regions;
        }
        self.control().magic.store(control::MAGIC, Ordering::Release);
    }

    /// The control page.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping starts with the control page and lives as long as self; what the program can change
        // in it are atomics (it does not write the configuration).
        unsafe { &*self.at.cast::<Control>() }
    }

    /// The descriptor.
    pub fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The layout, as we made it (not as the program may have changed it).
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Copies words from the file.
    pub fn copy_words(&self, offset: u64, words: usize, to: &mut Vec<u64>) {
        let end = offset as usize + words * 8;
        assert!(offset.is_multiple_of(8) && end <= self.len, "inside the mapping");
        to.clear();
        to.reserve(words);
        // SAFETY: the range lies in the mapping and the vector has room. The program may write to it at the same
        // time; the words are plain data and whatever arrives is checked by the decoder.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.add(offset as usize).cast::<u64>(), to.as_mut_ptr(), words);
            to.set_len(words);
        }
    }

    /// A view of words that the program has handed over (a full buffer), valid until it is freed.
    pub fn words(&self, offset: u64, words: usize) -> &[u64] {
        let end = offset as usize + words * 8;
        assert!(offset.is_multiple_of(8) && end <= self.len, "inside the mapping");
        // SAFETY: the range lies in the mapping. A full buffer is not written by the probe any more; a program that
        // scribbles into it anyway gives wrong words, which the decoder checks, and nothing else.
        unsafe { std::slice::from_raw_parts(self.at.add(offset as usize).cast::<u64>(), words) }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}
