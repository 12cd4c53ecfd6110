//! The system call instruction.

use core::arch::asm;

/// A kernel error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// No such process or thread.
    pub const ESRCH: Errno = Errno(3);
    /// Interrupted.
    pub const EINTR: Errno = Errno(4);
    /// Try again.
    pub const EAGAIN: Errno = Errno(11);
    /// Exists already.
    pub const EEXIST: Errno = Errno(17);
}

/// Runs system call `nr` and returns what the kernel returned.
///
/// # Safety
/// The arguments must be valid for that system call.
#[inline]
pub unsafe fn syscall_raw(nr: usize, a: [usize; 6]) -> isize {
    let ret: isize;
    // SAFETY: the caller vouches for the arguments; the kernel clobbers rcx and r11 only.
    unsafe {
        asm!("syscall", inlateout("rax") nr as isize => ret, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
             in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    ret
}

/// Like [`syscall_raw`], with errors told apart.
///
/// # Safety
/// The arguments must be valid for that system call.
#[inline]
pub unsafe fn syscall(nr: usize, a: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: passed on to the caller.
    let ret = unsafe { syscall_raw(nr, a) };
    if (-4095..0).contains(&ret) { Err(Errno(-ret as i32)) } else { Ok(ret as usize) }
}
