//! The memory shared with the probe, from our side.

use crate::error::{LaunchError, own};
use crate::fewer_checks;
use crate::options::{Options, Policy};
use sonde_event::Detail;
use sonde_event::Unwatched;
use sonde_wire::control::{self, MAX_BUFFERS, policy};
use sonde_wire::{Config, Control, Regions, Tables, in_place, unwatched};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that is mapped here, and to be mapped into the program too.
pub struct SharedMemory {
    place: Place,
    at: *mut u8,
    len: usize,
    regions: Regions,
    /// Where it is in the program, once it is mapped there.
    there: AtomicU64,
}

/// What can be mapped by two processes.
enum Place {
    /// A file in memory.
    File(OwnedFd),
    /// A segment of shared memory (System V), which is gone when nobody has it mapped any more. No limit on the size of files
    /// (`ulimit -f`) is on these.
    Segment(i32),
}

// SAFETY: the mapping is only reached through atomics and copies; it lives as long as this value.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

/// Bytes of one log buffer in bursts, where many threads hold one each and fill little of it.
const BURST_BUFFER_BYTES: u64 = 1 << 20;
/// The most in resident policies, where each change of buffers costs a fault and a wake-up: at 1 MiB those took a quarter
/// of the time.
const RESIDENT_BUFFER_BYTES: u64 = 4 << 20;

/// How a memory limit is divided.
#[derive(Debug, PartialEq, Eq)]
struct Division {
    /// Bytes of code cache.
    cache: u64,
    /// Bytes of descriptions.
    descriptors: u64,
    /// Bytes of the table of branches without a check, where there is one.
    unchecked: u64,
    /// Number of log buffers.
    buffers: u64,
    /// Bytes of each.
    buffer_bytes: u64,
}

impl Division {
    /// What is wanted is decided by what has been read: the less of it waits to be read, the sooner it is acted on. With
    /// 64 MiB of buffers, whose records get shorter as loads are masked, tens of millions of loads lay in between.
    fn keep_lag_small(&mut self) {
        self.buffer_bytes = BURST_BUFFER_BYTES;
        self.buffers = self.buffers.min(LIVE_BUFFERS);
    }
}

/// Most log buffers where the engine leaves out what is not wanted any more.
const LIVE_BUFFERS: u64 = 8;

/// Half of a memory limit goes to the code cache and its indexes, an eighth to descriptions, a quarter to buffers, up to a
/// 32nd to the table of branches without a check.
fn divide(limit: u64, policy: &Policy) -> Division {
    // The cache's indexes take about as much again in the worst case (small superblocks).
    let cache = (limit / 4).clamp(1 << 20, 512 << 20);
    let descriptors = (limit / 8).clamp(256 << 10, 64 << 20);
    let buffer_bytes = match policy {
        Policy::Bursts { .. } => BURST_BUFFER_BYTES,
        _ => (limit / 32).next_multiple_of(4096).clamp(BURST_BUFFER_BYTES, RESIDENT_BUFFER_BYTES),
    };
    let buffers = (limit / 4 / buffer_bytes).clamp(2, MAX_BUFFERS as u64);
    let unchecked = (limit / 32).clamp(64 << 10, 64 << 20);
    Division { cache, descriptors, unchecked, buffers, buffer_bytes }
}

impl SharedMemory {
    /// Makes and configures the shared memory.
    pub fn new(options: &Options, trigger: u32, signal: i32) -> Result<SharedMemory, LaunchError> {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"sonde".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(own("memfd_create"));
        }
        // SAFETY: the descriptor is new and ours.
        SharedMemory::over(unsafe { OwnedFd::from_raw_fd(fd) }, options, trigger, signal)
    }

    /// Configures shared memory in a file in memory that exists, and is empty; or beside it, if it may not be that large.
    pub fn over(
        fd: OwnedFd,
        options: &Options,
        trigger: u32,
        signal: i32,
    ) -> Result<SharedMemory, LaunchError> {
        let mut parts = divide(options.max_memory, &options.policy);
        if options.live_masks && !matches!(options.policy, Policy::Bursts { .. }) {
            parts.keep_lag_small();
        }
        let unchecked = if fewer_checks::are_wanted(options) { parts.unchecked } else { 0 };
        let unwatched = if options.live_masks { unwatched::BYTES } else { 0 };
        let in_place = if options.in_place { parts.unchecked } else { 0 };
        let tables = Tables { unchecked, unwatched, in_place };
        let regions = Regions::new(parts.descriptors, tables, parts.buffers, parts.buffer_bytes);
        let len = regions.file_len() as usize;
        let (place, at) = if file_limit() < len as u64 {
            segment(len).map(|(id, at)| (Place::Segment(id), at))?
        } else {
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
            (Place::File(fd), at.cast())
        };
        let shared = SharedMemory { place, at, len, regions, there: AtomicU64::new(0) };
        shared.configure(options, trigger, signal, parts.cache);
        Ok(shared)
    }

    fn configure(&self, options: &Options, trigger: u32, signal: i32, cache_bytes: u64) {
        let (policy, period_ns, burst_checks, gap_checks) = match options.policy {
            Policy::Bursts { period, checks } => (policy::BURSTS, period.as_nanos() as u64, checks, 0),
            Policy::Always => (policy::ALWAYS, 0, 0, 0),
            // Bursts, as far as the engine is concerned: the program runs natively between them.
            Policy::Counter { gap, checks } if options.in_place => (policy::BURSTS, 0, checks, gap),
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
            in_place: u32::from(options.in_place),
        };
        let control = self.at.cast::<Control>();
        // SAFETY: the mapping is large enough, zeroed, and not shared with anybody yet.
        unsafe {
            (*control).config = config;
            (*control).regions = self.regions;
        }
        self.control().magic.store(control::MAGIC, Ordering::Release);
    }

    /// Writes the table of branches without a check, before the program is started: identity and offsets of each module,
    /// which the caller saw to fit.
    pub fn write_unchecked(&self, modules: &[(u64, &[u32])]) {
        let region = self.regions.unchecked;
        let mut table = vec![0u32; region.len as usize / 4];
        assert!(sonde_wire::checks::write(modules, &mut table), "the table fits");
        // SAFETY: the region lies in the mapping; no program has it yet.
        unsafe {
            let to = self.at.add(region.start as usize).cast::<u32>();
            std::ptr::copy_nonoverlapping(table.as_ptr(), to, table.len());
        }
    }

    /// Writes what was changed in the program's code, while that stands still. The caller saw it to fit.
    pub fn write_in_place(&self, modules: &[in_place::Module<'_>]) {
        let region = self.regions.in_place;
        let mut table = vec![0u64; region.len as usize / 8];
        assert!(in_place::write(modules, &mut table), "the table fits");
        // SAFETY: the region lies in the mapping; the program, which reads it, stands still.
        unsafe {
            let to = self.at.add(region.start as usize).cast::<u64>();
            std::ptr::copy_nonoverlapping(table.as_ptr(), to, table.len());
        }
    }

    /// Mappings that were placed beside the program's code, where that was changed.
    pub fn beside_code(&self) -> Vec<(u64, u64)> {
        let region = self.regions.in_place;
        let table = self.words(region.start, region.len as usize / 8);
        let mappings = |m: in_place::Module<'_>| {
            [(m.original, m.original.saturating_add(m.end.saturating_sub(m.start))), (m.stubs, m.stubs_end)]
        };
        in_place::modules(table).flat_map(mappings).collect()
    }

    /// Whether the engine leaves out loads that nobody wants.
    pub fn takes_masks(&self) -> bool {
        self.regions.unwatched.len > 0
    }

    /// Tells the engine which loads need not be recorded from now on. It takes that over when it gets to it.
    pub fn leave_out(&self, loads: &Unwatched<'_>) {
        let region = self.regions.unwatched;
        let words = region.len as usize / 8;
        assert!(words == 0 || loads.bits.len() == words, "the table has the size that both sides know");
        // SAFETY: the region lies in the mapping, begins at a page, and is only reached through atomics.
        let table = unsafe {
            std::slice::from_raw_parts(self.at.add(region.start as usize).cast::<AtomicU64>(), words)
        };
        for (to, from) in table.iter().zip(loads.bits) {
            to.store(*from, Ordering::Relaxed);
        }
        let control = self.control();
        control.unwatched_function.store(loads.function.into(), Ordering::Relaxed);
        // Last: who sees the new generation sees all that was written before it.
        control.unwatched_generation.fetch_add(1, Ordering::Release);
    }

    /// The control page.
    pub fn control(&self) -> &Control {
        // SAFETY: the mapping starts with the control page and lives as long as self; what the program can change
        // in it are atomics (it does not write the configuration).
        unsafe { &*self.at.cast::<Control>() }
    }

    /// Nobody owns a buffer any more: the image of the process was replaced.
    pub fn free_buffers(&self) {
        for buffer in &self.control().buffers {
            buffer.state.store(control::state::FREE, Ordering::Relaxed);
        }
    }

    /// The descriptor, where it is a file.
    pub fn fd(&self) -> Option<i32> {
        match &self.place {
            Place::File(fd) => Some(fd.as_raw_fd()),
            Place::Segment(_) => None,
        }
    }

    /// The number of the segment, where it is one.
    pub fn segment(&self) -> Option<i32> {
        match self.place {
            Place::File(_) => None,
            Place::Segment(id) => Some(id),
        }
    }

    /// It was mapped in the program.
    pub fn is_at(&self, there: u64) {
        self.there.store(there, Ordering::Relaxed);
    }

    /// First address and end in the program; both 0 if it is not there yet.
    pub fn there(&self) -> (u64, u64) {
        let there = self.there.load(Ordering::Relaxed);
        (there, if there == 0 { 0 } else { there.saturating_add(self.len as u64) })
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

/// The largest file that this process may make, and files in memory are ones.
fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written to a local.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// A segment of shared memory, mapped here. It has no name any more, and no use when nobody has it mapped.
fn segment(len: usize) -> Result<(i32, *mut u8), LaunchError> {
    // SAFETY: plain system calls; the segment is new and ours.
    unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, len, 0o600);
        if id < 0 {
            return Err(own("shmget, because of the limit on the size of files (ulimit -f)"));
        }
        let at = libc::shmat(id, std::ptr::null(), 0);
        let failure = std::io::Error::last_os_error();
        libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut());
        if at as isize == -1 {
            return Err(LaunchError::Own { what: "shmat", error: failure });
        }
        Ok((id, at.cast()))
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody uses any more.
        unsafe {
            match self.place {
                Place::File(_) => libc::munmap(self.at.cast(), self.len),
                Place::Segment(_) => libc::shmdt(self.at.cast()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_and_resident_policies_get_fewer_and_larger_buffers() {
        let bursts = Policy::Bursts { period: std::time::Duration::from_millis(10), checks: 100 };
        for limit in [16 << 20, 64 << 20, 256 << 20, 2048 << 20] {
            for policy in [&bursts, &Policy::Always] {
                let parts = divide(limit, policy);
                let total = 2 * parts.cache
                    + parts.descriptors
                    + parts.unchecked
                    + parts.buffers * parts.buffer_bytes;
                assert!(total <= limit, "{limit}: {parts:?}");
                assert!(parts.buffers >= 4, "{limit}: {parts:?}");
            }
        }
        assert_eq!(divide(256 << 20, &bursts).buffer_bytes, 1 << 20);
        assert_eq!(divide(256 << 20, &Policy::Always).buffer_bytes, 4 << 20);
    }
}
