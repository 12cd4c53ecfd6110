//! Log records that are not superblocks: where bursts begin and end, and partial superblocks.
//!
//! The first word of a record holds, in its low half, an exit number plus one, or a marker: a value at or above
//! [`FIRST`] that tells its kind and its length.

/// Header values at or above this are markers.
pub const FIRST: u32 = 0xf000_0000;

/// With the tid of a begin: the burst begins right behind a system call, in which the thread was when it was asked for.
pub const BEHIND_CALL: u64 = 1 << 32;

/// With the tid of a begin: the burst begins at an instruction whose page fault the kernel was handling when it was asked for.
pub const IN_FAULT: u64 = 1 << 33;

/// Kinds of marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A burst begins: tid (and [`BEHIND_CALL`] or [`IN_FAULT`]), time stamp, fs base, pc.
    Begin = 1,
    /// A burst ends: time stamp, cause, pc.
    End = 2,
    /// A superblock that was left in its middle: its words, then `first exit << 32 | instructions done`.
    Partial = 3,
    /// The thread's fs base changed: new base.
    FsBase = 4,
    /// A system call was run: number, result, pc.
    Syscall = 5,
    /// A signal handler begins: signal, pc interrupted.
    Signal = 6,
    /// Right behind a begin, where the period changes during a run: CPU time that the burst stands for, in nanoseconds.
    Pace = 7,
}

impl Kind {
    /// The kind with this code.
    pub fn from_code(code: u8) -> Option<Kind> {
        [Kind::Begin, Kind::End, Kind::Partial, Kind::FsBase, Kind::Syscall, Kind::Signal, Kind::Pace]
            .into_iter()
            .find(|k| *k as u8 == code)
    }
}

/// Header of a marker of `words` words, itself included.
pub const fn header(kind: Kind, words: u16) -> u32 {
    FIRST | (kind as u32) << 16 | words as u32
}

/// Kind and length of a marker header.
pub fn parse(header: u32) -> Option<(Kind, u16)> {
    if header < FIRST {
        return None;
    }
    Some((Kind::from_code((header >> 16) as u8)?, header as u16))
}

/// Why a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    /// Its checks were used up.
    Checks = 0,
    /// A system call comes next.
    Syscall = 1,
    /// An instruction the copy does not run comes next.
    Instruction = 2,
    /// Code that is not cached comes next.
    Code = 3,
    /// The program made a fault.
    Fault = 4,
    /// The code cache is full.
    CacheFull = 5,
    /// No log buffer was free.
    Buffers = 6,
    /// Sonde said so, or is gone.
    Stop = 7,
    /// The thread or program ended.
    Exit = 8,
    /// It met too much code that had not been copied yet.
    Cold = 9,
}

impl Cause {
    /// All causes in the order of their codes.
    pub const ALL: [Cause; 10] = [
        Cause::Checks,
        Cause::Syscall,
        Cause::Instruction,
        Cause::Code,
        Cause::Fault,
        Cause::CacheFull,
        Cause::Buffers,
        Cause::Stop,
        Cause::Exit,
        Cause::Cold,
    ];
}
