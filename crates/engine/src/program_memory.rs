//! Reads and writes the program's memory through the kernel: a bad pointer is the program's error, not a crash of ours.

use sonde_sys::process;

/// Reads the program's memory; false if it cannot be read (the program gets its error, not a crash of ours).
pub fn read_program(at: u64, to: &mut [u8]) -> bool {
    transfer(310, to.as_ptr() as usize, at, to.len())
}

/// Writes the program's memory; false if it cannot be written.
pub fn write_program(at: u64, from: &[u8]) -> bool {
    transfer(311, from.as_ptr() as usize, at, from.len())
}

/// process_vm_readv (310) or process_vm_writev (311) on ourselves.
fn transfer(nr: usize, ours: usize, theirs: u64, len: usize) -> bool {
    let (local, remote) = ([ours, len], [theirs as usize, len]);
    let args = [process::getpid() as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0];
    // SAFETY: the local range is a slice of the caller's, writable where the call writes; the kernel checks the other.
    unsafe { sonde_sys::syscall(nr, args) == Ok(len) }
}
