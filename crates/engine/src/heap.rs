//! A heap of our own: the program's allocator may be locked, or absent.
//!
//! Power-of-two size classes with free lists over one mapping; only translation allocates, under its lock, and reuses
//! what it has. A mapping that is used up makes allocation fail, which ends recording (counted), not the program.

use crate::spin::Spin;
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::null_mut;

struct Heap {
    next: usize,
    end: usize,
    free: [usize; 32],
}

/// The allocator of the probe.
pub struct ProbeHeap {
    heap: Spin<Heap>,
}

/// Bytes of address space reserved for the heap; pages are used as needed.
pub const HEAP_BYTES: usize = 16 << 20;

impl ProbeHeap {
    /// An allocator without memory yet; it maps its own on first use.
    #[expect(clippy::new_without_default, reason = "a const fn for a static")]
    pub const fn new() -> ProbeHeap {
        ProbeHeap { heap: Spin::new(Heap { next: 0, end: 0, free: [0; 32] }) }
    }
}

impl Heap {
    fn refill(&mut self) -> bool {
        use sonde_sys::memory::*;
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        let Ok(at) = mmap(0, HEAP_BYTES, PROT_READ | PROT_WRITE, flags, -1) else { return false };
        self.next = at;
        self.end = at + HEAP_BYTES;
        true
    }
}

fn class(layout: &Layout) -> usize {
    layout.size().max(layout.align()).max(16).next_power_of_two().trailing_zeros() as usize
}

// SAFETY: blocks come from a private mapping, are aligned to their power-of-two size, and a block is either on a free
// list or handed out, never both.
unsafe impl GlobalAlloc for ProbeHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(&layout);
        if class >= 24 {
            return null_mut();
        }
        let mut heap = self.heap.lock();
        let block = heap.free[class];
        if block != 0 {
            // SAFETY: a free block holds the address of the next free block in its first word.
            heap.free[class] = unsafe { *(block as *const usize) };
            return block as *mut u8;
        }
        if heap.end == 0 && !heap.refill() {
            return null_mut();
        }
        let at = heap.next.next_multiple_of(1 << class);
        if at + (1 << class) > heap.end {
            return null_mut();
        }
        heap.next = at + (1 << class);
        at as *mut u8
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let class = class(&layout);
        let mut heap = self.heap.lock();
        // SAFETY: the block has at least 16 bytes and nobody uses it any more.
        unsafe { *(block as *mut usize) = heap.free[class] };
        heap.free[class] = block as usize;
    }
}
