//! A lock for code that must not call the C library. Held only with signals blocked, for microseconds.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A spin lock that yields the processor while it waits.
pub struct Spin<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reachable through the guard, and the flag lets one guard exist at a time.
unsafe impl<T: Send> Sync for Spin<T> {}

impl<T> Spin<T> {
    /// A free lock.
    pub const fn new(value: T) -> Spin<T> {
        Spin { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        let mut spins = 0u32;
        while self.held.swap(true, Ordering::Acquire) {
            spins += 1;
            if spins.is_multiple_of(64) {
                sonde_sys::process::yield_now();
            }
            core::hint::spin_loop();
        }
        Guard { lock: self }
    }

    /// The value, whoever holds the lock.
    ///
    /// # Safety
    /// Nobody changes it meanwhile: in a forked child the thread that held the lock does not exist.
    pub unsafe fn without_lock(&self) -> &T {
        // SAFETY: the caller vouches that there is no writer.
        unsafe { &*self.value.get() }
    }
}

/// Holds the lock.
pub struct Guard<'a, T> {
    lock: &'a Spin<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.lock.held.store(false, Ordering::Release);
    }
}
