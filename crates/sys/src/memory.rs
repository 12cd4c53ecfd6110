//! Mappings and files.

use crate::{Errno, syscall};

/// Readable.
pub const PROT_READ: usize = 1;
/// Writable.
pub const PROT_WRITE: usize = 2;
/// Executable.
pub const PROT_EXEC: usize = 4;
/// Shared mapping.
pub const MAP_SHARED: usize = 1;
/// Private mapping.
pub const MAP_PRIVATE: usize = 2;
/// In the first 2 GiB.
pub const MAP_32BIT: usize = 0x40;
/// No file.
pub const MAP_ANONYMOUS: usize = 0x20;
/// At the hint, or not at all if something is there. Kernels before 4.17 take it for a mere hint.
pub const MAP_FIXED_NOREPLACE: usize = 0x10_0000;
/// Do not account for swap.
pub const MAP_NORESERVE: usize = 0x4000;

/// Maps memory at an address the kernel chooses (or near `hint`).
pub fn mmap(hint: usize, len: usize, prot: usize, flags: usize, fd: i32) -> Result<usize, Errno> {
    // SAFETY: a mapping at a place the kernel chooses overlaps nothing that exists; no MAP_FIXED is passed here.
    unsafe { syscall(9, [hint, len, prot, flags & !0x10, fd as usize, 0]) }
}

/// Changes the protection of pages.
///
/// # Safety
/// Nobody may rely on the protection the pages had.
pub unsafe fn mprotect(addr: usize, len: usize, prot: usize) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { syscall(10, [addr, len, prot, 0, 0, 0]) }.map(|_| ())
}

/// Advises that the content of pages is no longer needed (MADV_DONTNEED = 4).
///
/// # Safety
/// Nobody may need the content of these private pages.
pub unsafe fn discard(addr: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { syscall(28, [addr, len, 4, 0, 0, 0]) }.map(|_| ())
}

/// Gives pages of a writable mapping memory in one call, instead of a fault each when they are touched first. Kernels
/// before 5.14 refuse, which only means that the faults stay.
pub fn populate(addr: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: MADV_POPULATE_WRITE changes no content, and fails where nothing is mapped.
    unsafe { syscall(28, [addr, len, 23, 0, 0, 0]) }.map(|_| ())
}

/// Asks for large pages where memory of a mapping is touched first from now on, as far as the system has them.
pub fn prefer_large_pages(addr: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: MADV_HUGEPAGE changes no content, and fails where nothing is mapped.
    unsafe { syscall(28, [addr, len, 14, 0, 0, 0]) }.map(|_| ())
}

/// Asks for small pages where memory of a mapping is touched first from now on.
pub fn prefer_small_pages(addr: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: MADV_NOHUGEPAGE changes no content, and fails where nothing is mapped.
    unsafe { syscall(28, [addr, len, 15, 0, 0, 0]) }.map(|_| ())
}

/// Unmaps memory.
///
/// # Safety
/// Nobody may use the memory any more.
pub unsafe fn munmap(addr: usize, len: usize) -> Result<(), Errno> {
    // SAFETY: passed on to the caller.
    unsafe { syscall(11, [addr, len, 0, 0, 0, 0]) }.map(|_| ())
}

/// An open file that closes itself.
pub struct File(i32);

impl File {
    /// Opens for reading, close-on-exec.
    pub fn open(path: &core::ffi::CStr) -> Result<File, Errno> {
        const O_CLOEXEC: usize = 0o2000000;
        // SAFETY: the path is a C string; AT_FDCWD is -100.
        let fd = unsafe { syscall(257, [-100isize as usize, path.as_ptr() as usize, O_CLOEXEC, 0, 0, 0]) }?;
        Ok(File(fd as i32))
    }

    /// Reads some bytes.
    pub fn read(&self, buf: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: the buffer is valid for writes of its length.
        unsafe { syscall(0, [self.0 as usize, buf.as_mut_ptr() as usize, buf.len(), 0, 0, 0]) }
    }

    /// Reads some bytes at an offset.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        // SAFETY: the buffer is valid for writes of its length.
        unsafe { syscall(17, [self.0 as usize, buf.as_mut_ptr() as usize, buf.len(), offset as usize, 0, 0]) }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Closes a descriptor.
pub fn close(fd: i32) {
    // SAFETY: closing a descriptor number touches no memory.
    let _ = unsafe { syscall(3, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// What tells one version of a file from another: device, inode, size, times of change.
pub fn file_identity(path: &core::ffi::CStr) -> Result<[u64; 7], Errno> {
    let mut stat = [0u64; 18];
    // SAFETY: the path is a C string, and `struct stat` has 144 bytes.
    unsafe { syscall(4, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) }?;
    Ok([stat[0], stat[1], stat[6], stat[11], stat[12], stat[13], stat[14]])
}
