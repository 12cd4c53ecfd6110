//! The head of a thread's context inside the program: what Sonde writes there to begin a burst from outside.

/// Most threads that can have a context at a time.
pub const MAX_THREADS: usize = 1024;
/// Address space per context.
pub const SLOT_BYTES: usize = 128 << 10;

/// Address space of all contexts, and of one that is nobody's: threads that are not to be recorded count their checks in it.
pub const POOL_BYTES: usize = (MAX_THREADS + 1) * SLOT_BYTES;

/// Where a context holds whose it is.
pub const TID: usize = 48;
/// Where a context holds a register while something is looked up or counted.
pub const SAVE: usize = 64;
/// Where it holds the number of checks left.
pub const CHECKS: usize = 96;
/// Where it holds the pc that a branch goes to.
pub const TARGET: usize = 144;
/// Where it holds the program's r14.
pub const APP_R14: usize = 16;

/// The first eight words of a context.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its own address.
    pub me: u64,
    /// Top of its private stack.
    pub stack_top: u64,
    /// The program's r14.
    pub app_r14: u64,
    /// The program's r15.
    pub app_r15: u64,
    /// gs base before the burst.
    pub old_gs: u64,
    /// The program's signal mask.
    pub app_mask: u64,
    /// Whose context this is (low half), and whether the thread runs in the copy (high half).
    pub tid_active: u64,
    /// One of the constants below, with [`FAULTED`] or without.
    pub origin: u64,
}

/// A signal began the burst.
pub const BY_SIGNAL: u64 = 0;
/// Sonde began the burst from outside, in a context that the thread had before.
pub const BY_SONDE: u64 = 1;
/// Sonde began the burst from outside, in a context that is new to the thread.
pub const BY_SONDE_NEW: u64 = 2;
/// With either: the thread made a page fault between Sonde's request to stop and its stop.
pub const FAULTED: u64 = 1 << 8;

impl Head {
    /// Where the stack of the context at `me` begins.
    pub fn stack_top_of(me: u64) -> u64 {
        me + SLOT_BYTES as u64 - 64
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; 64] {
        let words = [
            self.me,
            self.stack_top,
            self.app_r14,
            self.app_r15,
            self.old_gs,
            self.app_mask,
            self.tid_active,
            self.origin,
        ];
        let mut bytes = [0; 64];
        for (i, w) in words.into_iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&w.to_le_bytes());
        }
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; 64]) -> Head {
        let mut words = [0u64; 8];
        for (w, b) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *w = b.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
        }
        let [me, stack_top, app_r14, app_r15, old_gs, app_mask, tid_active, origin] = words;
        Head { me, stack_top, app_r14, app_r15, old_gs, app_mask, tid_active, origin }
    }

    /// Whose context this is; 0 = nobody's.
    pub fn tid(&self) -> i32 {
        self.tid_active as i32
    }

    /// Whether the thread runs in the copy.
    pub fn is_active(&self) -> bool {
        self.tid_active >> 32 != 0
    }
}
