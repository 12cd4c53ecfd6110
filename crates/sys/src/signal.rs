//! Signals: actions, masks, and the frame the kernel builds.

use crate::{Errno, syscall};

/// Illegal instruction.
pub const SIGILL: i32 = 4;
/// Trap.
pub const SIGTRAP: i32 = 5;
/// Bus error.
pub const SIGBUS: i32 = 7;
/// Arithmetic error.
pub const SIGFPE: i32 = 8;
/// Kill.
pub const SIGKILL: i32 = 9;
/// Invalid memory access.
pub const SIGSEGV: i32 = 11;
/// Stop.
pub const SIGSTOP: i32 = 19;
/// Bad system call.
pub const SIGSYS: i32 = 31;

/// Three-argument handler.
pub const SA_SIGINFO: u64 = 4;
/// Use the alternate stack, if there is one.
pub const SA_ONSTACK: u64 = 0x0800_0000;
/// Restart system calls.
pub const SA_RESTART: u64 = 0x1000_0000;
/// Do not block the signal itself.
pub const SA_NODEFER: u64 = 0x4000_0000;
/// Back to default once delivered.
pub const SA_RESETHAND: u64 = 0x8000_0000;
/// The restorer field is set.
pub const SA_RESTORER: u64 = 0x0400_0000;

/// Cause: a timer expired.
pub const SI_TIMER: i32 = -2;
/// Cause: somebody queued it with a value.
pub const SI_QUEUE: i32 = -1;

/// Default action.
pub const SIG_DFL: usize = 0;
/// Ignore.
pub const SIG_IGN: usize = 1;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Handler address, or [`SIG_DFL`], [`SIG_IGN`].
    pub handler: usize,
    /// `SA_` flags.
    pub flags: u64,
    /// Code that calls rt_sigreturn.
    pub restorer: usize,
    /// Signals blocked while the handler runs; bit n-1 is signal n.
    pub mask: u64,
}

/// Reads and optionally sets the action of a signal.
///
/// # Safety
/// A new handler must be a signal handler that can run at any point of the program.
pub unsafe fn sigaction(sig: i32, new: Option<&Action>) -> Result<Action, Errno> {
    let mut old = Action::default();
    let new = new.map_or(0, |a| a as *const Action as usize);
    // SAFETY: both pointers are null or valid; 8 is the size of the kernel's signal set.
    unsafe { syscall(13, [sig as usize, new, &raw mut old as usize, 8, 0, 0]) }?;
    Ok(old)
}

/// Sets the signal mask and returns the old one.
pub fn set_mask(mask: u64) -> u64 {
    let mut old = 0u64;
    // SAFETY: both pointers are valid for 8 bytes; SIG_SETMASK = 2.
    let _ = unsafe { syscall(14, [2, &raw const mask as usize, &raw mut old as usize, 8, 0, 0]) };
    old
}

/// The signal mask.
pub fn current_mask() -> u64 {
    let mut mask = 0u64;
    // SAFETY: only asks; the pointer is valid for 8 bytes.
    let _ = unsafe { syscall(14, [0, 0, &raw mut mask as usize, 8, 0, 0]) };
    mask
}

/// The alternate signal stack: pointer, flags, size.
pub fn alternate_stack() -> [u64; 3] {
    let mut stack = [0u64; 3];
    // SAFETY: only asks; the pointer is valid for a stack_t.
    let _ = unsafe { syscall(131, [0, stack.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    stack
}

/// Sets the alternate signal stack and returns the old one: pointer, flags, size.
///
/// # Safety
/// The memory must stay valid for as long as it is the alternate stack.
pub unsafe fn set_alternate_stack(stack: &[u64; 3]) -> [u64; 3] {
    let mut old = [0u64; 3];
    // SAFETY: both point to a stack_t.
    let _ = unsafe { syscall(131, [stack.as_ptr() as usize, old.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    old
}

/// Queues a signal with its information to one thread of this process.
pub fn requeue(pid: i32, tid: i32, sig: i32, info: &[u64; 16]) -> Result<(), Errno> {
    // SAFETY: the information block is a siginfo of 128 bytes.
    unsafe { syscall(297, [pid as usize, tid as usize, sig as usize, info.as_ptr() as usize, 0, 0]) }
        .map(|_| ())
}

/// The bit of a signal in a mask.
pub const fn bit(sig: i32) -> u64 {
    1 << (sig - 1)
}

/// General registers as the kernel saves them (`struct sigcontext_64` up to the flags).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// r8 to r15.
    pub r8_15: [u64; 8],
    /// rdi.
    pub rdi: u64,
    /// rsi.
    pub rsi: u64,
    /// rbp.
    pub rbp: u64,
    /// rbx.
    pub rbx: u64,
    /// rdx.
    pub rdx: u64,
    /// rax.
    pub rax: u64,
    /// rcx.
    pub rcx: u64,
    /// rsp.
    pub rsp: u64,
    /// rip.
    pub rip: u64,
    /// Flags.
    pub rflags: u64,
}

/// `struct ucontext` with the kernel's signal mask.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Context {
    /// `UC_` flags.
    pub flags: u64,
    /// Linked context.
    pub link: u64,
    /// Alternate stack: pointer, flags, size.
    pub stack: [u64; 3],
    /// Registers.
    pub regs: Registers,
    /// cs, gs, fs, ss.
    pub segments: u64,
    /// Error code.
    pub err: u64,
    /// Trap number.
    pub trap: u64,
    /// Old mask.
    pub old_mask: u64,
    /// Faulting address.
    pub cr2: u64,
    /// Where the floating-point state lies.
    pub fpstate: u64,
    /// Reserved.
    pub reserved: [u64; 8],
    /// Signal mask to restore.
    pub mask: u64,
}

/// The head of `siginfo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Signal number.
    pub sig: i32,
    /// Error number.
    pub errno: i32,
    /// Cause; above 0 if the kernel raised it.
    pub code: i32,
    pad: i32,
    /// Faulting address, for faults.
    pub addr: u64,
    rest: [u64; 13],
}

impl Info {
    /// The value that came with a timer or a queued signal; the descriptor (low half) for one that a file sends.
    pub fn value(&self) -> u64 {
        self.rest[0]
    }
}
