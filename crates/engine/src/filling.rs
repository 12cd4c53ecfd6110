//! Memory and arrays that are filled from the begin, in address space of their own: the code cache and its indexes lie in them.

use sonde_sys::memory::*;

/// Memory that is filled from the begin: its pages are asked for in larger steps, because a fault for each costs more
/// than what is written to it.
pub struct Filling {
    /// Up to here there are pages.
    ready: u64,
    end: u64,
}

impl Filling {
    const STEP: u64 = 64 << 10;

    /// Nothing of this memory was touched yet.
    pub fn new(start: u64, len: u64) -> Filling {
        Filling { ready: start & !4095, end: start + len }
    }

    /// Sees that there are pages up to `to`, and some more.
    pub fn reach(&mut self, to: u64) {
        if to <= self.ready || self.ready >= self.end {
            return;
        }
        let until = (to + Self::STEP).min(self.end);
        // Where the kernel cannot do that, pages come one by one.
        let _ = populate(self.ready as usize, (until - self.ready) as usize);
        self.ready = until.next_multiple_of(4096);
    }
}

/// An array in address space of its own; pages are used as it fills.
pub(crate) struct Table<T: Copy> {
    at: *mut T,
    pub(crate) capacity: usize,
    pub(crate) len: usize,
    pages: Filling,
}

impl<T: Copy> Table<T> {
    pub(crate) fn new(capacity: usize) -> Option<Table<T>> {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let at = mmap(0, capacity * size_of::<T>(), PROT_READ | PROT_WRITE, flags, -1).ok()?;
        let pages = Filling::new(at as u64, (capacity * size_of::<T>()) as u64);
        Some(Table { at: at as *mut T, capacity, len: 0, pages })
    }

    pub(crate) fn get(&self, i: usize) -> Option<T> {
        // SAFETY: entries below `len` were written.
        if i < self.len { Some(unsafe { *self.at.add(i) }) } else { None }
    }

    pub(crate) fn set(&mut self, i: usize, value: T) {
        if i < self.len {
            // SAFETY: entries below `len` are within the mapping.
            unsafe { *self.at.add(i) = value };
        }
    }

    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.len == self.capacity {
            return false;
        }
        self.pages.reach((self.at as usize + (self.len + 1) * size_of::<T>()) as u64);
        // SAFETY: the mapping holds `capacity` entries.
        unsafe { *self.at.add(self.len) = value };
        self.len += 1;
        true
    }
}
