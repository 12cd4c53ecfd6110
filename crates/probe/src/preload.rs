//! The way in without ptrace: the dynamic loader maps the probe (LD_PRELOAD) and calls [`loaded`] before `main`.
//!
//! Sonde leaves two descriptors, the probe's and the shared memory's next to it, and one word in front of LD_PRELOAD that
//! names the first. Both descriptors are closed and the word is removed here, so that the program and its children see
//! the environment that they would have had; of the string itself, only zero bytes stay in `/proc/self/environ`.

use core::ffi::{CStr, c_char};
use sonde_engine::{Start, start};
use sonde_sys::memory::{MAP_SHARED, PROT_READ, PROT_WRITE, close, mmap, munmap};
use sonde_sys::{process, signal};
use sonde_wire::Control;
use sonde_wire::control::{self, trigger};

/// What LD_PRELOAD begins with when Sonde set it; a decimal number follows.
const WORD: &[u8] = b"LD_PRELOAD=/proc/self/fd/";
const NAME: usize = b"LD_PRELOAD=".len();

type Init = unsafe extern "C" fn(usize, *mut *mut c_char, *mut *mut c_char);

#[used]
// SAFETY: the section holds functions that the dynamic loader calls; nobody calls it where Sonde places the probe.
#[unsafe(link_section = ".init_array")]
static LOADED: Init = loaded;

/// Called by the dynamic loader. Loaders that pass no arguments are recognised: there the probe stays asleep.
unsafe extern "C" fn loaded(count: usize, args: *mut *mut c_char, environment: *mut *mut c_char) {
    let expected = (args as usize).wrapping_add(count.wrapping_add(1).wrapping_mul(8));
    if args.is_null() || count > 1 << 24 || environment as usize != expected {
        return;
    }
    // SAFETY: arguments as every C library of Linux gets them from the kernel.
    if let Some(probe) = unsafe { take_word(environment) } {
        wake(probe + 1);
        close(probe);
    }
}

/// Finds our word, removes it, and returns the number in it.
///
/// # Safety
/// A list of C strings in writable memory that ends in null.
unsafe fn take_word(environment: *mut *mut c_char) -> Option<i32> {
    let mut at = environment;
    // SAFETY: the caller vouches for the list.
    unsafe {
        while !(*at).is_null() {
            let text = CStr::from_ptr(*at).to_bytes();
            if let Some(rest) = text.strip_prefix(WORD) {
                let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                let number =
                    rest[..digits].iter().fold(0i32, |n, d| n.wrapping_mul(10) + i32::from(d - b'0'));
                remove(at, text.len(), WORD.len() + digits);
                return Some(number);
            }
            at = at.add(1);
        }
    }
    None
}

/// Removes the first `ours` bytes after the name from a string of `len` bytes, or the whole string if nothing is left.
///
/// # Safety
/// `at` lies in a list as above and leads to a string of that length.
unsafe fn remove(mut at: *mut *mut c_char, len: usize, ours: usize) {
    // SAFETY: all writes are within the string, and within the list up to its null.
    unsafe {
        let text = (*at).cast::<u8>();
        if len > ours + 1 {
            // The program had a list of its own behind a colon.
            let kept = len - ours - 1;
            core::ptr::copy(text.add(ours + 1), text.add(NAME), kept);
            core::ptr::write_bytes(text.add(NAME + kept), 0, len - NAME - kept);
            return;
        }
        core::ptr::write_bytes(text, 0, len);
        while !(*at).is_null() {
            *at = *at.add(1);
            at = at.add(1);
        }
    }
}

/// Maps the shared memory and starts the engine.
fn wake(shared: i32) {
    let both = PROT_READ | PROT_WRITE;
    let Ok(page) = mmap(0, size_of::<Control>(), both, MAP_SHARED, shared) else { return close(shared) };
    // SAFETY: Sonde made the file larger than a control page.
    let control = unsafe { &*(page as *const Control) };
    let ours = control.magic.load(core::sync::atomic::Ordering::Acquire) == control::MAGIC;
    let (len, config) = (control.regions.file_len() as usize, control.config);
    // SAFETY: mapped just now.
    let _ = unsafe { munmap(page, size_of::<Control>()) };
    let at = if ours { mmap(0, len, both, MAP_SHARED, shared).ok() } else { None };
    close(shared);
    let Some(at) = at else { return };
    let (probe_start, probe_end) = own_range();
    let mask = signal::set_mask(!0);
    // SAFETY: the memory is Sonde's; the loader calls this once.
    let engine = unsafe { start(Start { shared: at, probe_start, probe_end }) };
    signal::set_mask(mask);
    if engine.is_some() && config.trigger == trigger::TIMER {
        // A thread's first signal arms its timer.
        process::send(process::getpid(), process::gettid(), config.signal);
    }
}

/// Where the loader mapped this library, from its own header.
fn own_range() -> (usize, usize) {
    const LOAD: u32 = 1;
    let base: usize;
    // Not as an extern symbol, which would be a relocation by name: the probe has relative ones only.
    // SAFETY: only computes the address that the linker gives this name.
    unsafe {
        core::arch::asm!(".hidden __ehdr_start", "lea {}, [rip + __ehdr_start]", out(reg) base, options(nomem, nostack));
    }
    // SAFETY: the header and the program headers behind it are mapped with the first segment.
    unsafe {
        let word = |at: usize| core::ptr::read_unaligned(at as *const u64) as usize;
        let half = |at: usize| core::ptr::read_unaligned(at as *const u16) as usize;
        let (first, size, count) = (base + word(base + 32), half(base + 54), half(base + 56));
        let ends = (0..count)
            .map(|i| first + i * size)
            .filter(|p| core::ptr::read_unaligned(*p as *const u32) == LOAD);
        let end = ends.map(|p| word(p + 16) + word(p + 40)).max().unwrap_or(0);
        (base, base + end.next_multiple_of(4096))
    }
}
