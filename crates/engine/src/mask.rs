//! The program's signal mask while the engine needs quiet: all signals are blocked, and the mask that the program has is kept.
//!
//! A signal can come between any two instructions of the engine, and the first that comes blocks all others until it is
//! delivered ([`crate::deliver`]). So nobody may ask the kernel for "the program's mask" and act on the answer later: the
//! answer may be ours, or be old by then. These functions block everything first.

use crate::state::Engine;
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use sonde_sys::signal;

impl Engine {
    /// Blocks all signals; from now on the program's mask is in the context, and no signal of it is on the way.
    pub fn block_all(&self, thread: &mut Thread) {
        let real = signal::set_mask(!0);
        if thread.mask_kept.swap(1, Relaxed) == 0 {
            thread.app_mask = real;
        }
    }

    /// What the program blocks, as it believes. All signals are blocked.
    pub fn kept_mask(&self, thread: &Thread) -> u64 {
        // SAFETY: a valid reference. A handler may have written it since the compiler last looked.
        let kept = unsafe { (&raw const thread.app_mask).read_volatile() };
        kept | thread.blocked_faults
    }

    /// Sets what the program blocks, as it believes; it comes into force with [`Engine::release_mask`].
    pub fn keep_mask(&self, thread: &mut Thread, mask: u64) {
        use crate::virtual_signals::ALWAYS_OURS;
        thread.blocked_faults = mask & ALWAYS_OURS;
        thread.app_mask = mask & !ALWAYS_OURS;
        thread.mask_kept.store(1, Relaxed);
    }

    /// Puts the program's mask in force; signals come again. Nothing may be pending in the context.
    pub fn release_mask(&self, thread: &mut Thread) {
        let mask = self.kept_mask(thread) & !thread.blocked_faults;
        thread.mask_kept.store(0, Relaxed);
        signal::set_mask(mask);
    }
}
