//! Places the probe in a process that is stopped at its first instruction.

use crate::error::LaunchError;
use crate::image::Image;
use crate::ptrace::Tracee;
use crate::shared::SharedMemory;
use sonde_wire::slot::POOL_BYTES;
use std::fs;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Mappings of ours in a process: address and length. A forked process has copies of them.
#[derive(Clone, Debug, Default)]
pub struct Holdings {
    /// The probe.
    pub probe: (u64, u64),
    /// What it uses: shared memory, code cache, thread contexts.
    pub rest: Vec<(u64, u64)>,
}

fn refused(what: &'static str, why: impl Into<String>) -> LaunchError {
    LaunchError::Place { what, error: io::Error::other(why.into()) }
}

/// Maps and starts the probe. `fd` is the number that the shared memory has in the process, where it inherited one; it
/// is closed there. Otherwise the process opens ours.
pub fn place(
    tracee: &Tracee,
    shared: &SharedMemory,
    fd: Option<i32>,
    signal: i32,
) -> Result<Holdings, LaunchError> {
    let entry = tracee.registers()?;
    // Whatever fails, the program can still run as if nothing had been.
    place_at(&entry, tracee, shared, fd, signal, below(&entry)).inspect_err(|_| {
        let _ = tracee.set_registers(&libc::user_regs_struct { orig_rax: u64::MAX, ..entry });
    })
}

/// A stack below the program's own, leaving what is there alone.
fn below(entry: &libc::user_regs_struct) -> u64 {
    (entry.rsp - 512) & !15
}

/// Places the probe in a thread with these registers, which it gets back; `stack` is where the probe's start can run.
pub(crate) fn place_at(
    entry: &libc::user_regs_struct,
    tracee: &Tracee,
    shared: &SharedMemory,
    fd: Option<i32>,
    signal: i32,
    stack: u64,
) -> Result<Holdings, LaunchError> {
    let gate = find_syscall(tracee)?;
    let call = |nr: i64, args| tracee.syscall(gate, nr, args);
    let fd = match fd {
        _ if shared.segment().is_some() => -1,
        Some(fd) => fd,
        None => {
            let path = format!("/proc/{}/fd/{}\0", std::process::id(), shared.fd().unwrap_or(-1));
            let at = stack - 512;
            tracee.write(at, path.as_bytes())?;
            let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
            call(libc::SYS_openat, [libc::AT_FDCWD as i64 as u64, at, flags, 0, 0, 0])? as i32
        }
    };
    let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let share = libc::MAP_SHARED as u64;
    let at = if let Some(id) = shared.segment() {
        call(libc::SYS_shmat, [id as u64, 0, 0, 0, 0, 0])?
    } else {
        let at = call(libc::SYS_mmap, [0, shared.len() as u64, both, share, fd as u64, 0])?;
        call(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0])?;
        at
    };
    shared.is_at(at);
    let image = Image::probe();
    let len = image.bytes.len() as u64 + 4096;
    let base = call(libc::SYS_mmap, [0, len, both, anonymous, u64::MAX, 0])?;
    tracee.write(base, &image.at(base))?;
    let block_at = base + image.bytes.len() as u64;
    let block = [at, base, base + len, entry.rip];
    tracee.write(block_at, &words(&block))?;
    for (offset, bytes, prot) in &image.segments {
        call(libc::SYS_mprotect, [base + *offset as u64, *bytes as u64, *prot as u64, 0, 0, 0])?;
    }
    let mut regs = *entry;
    regs.rip = base + image.start as u64;
    regs.rdi = block_at;
    regs.rsp = stack;
    regs.orig_rax = u64::MAX;
    tracee.set_registers(&regs)?;
    // The probe raises one to learn what the kernel's frames look like.
    tracee.run_to_trap(&[signal, libc::SIGILL])?;
    let result = tracee.registers()?.rax;
    let mut back = *entry;
    back.orig_rax = u64::MAX;
    match result {
        0 => return Err(refused("starting the probe", "it could not get the memory it needs")),
        1 => {}
        go_on => {
            let mut log = [0u8; 8];
            tracee.read(block_at + 8, &mut log)?;
            back.rip = go_on;
            back.r14 = entry.rip;
            back.r15 = u64::from_le_bytes(log);
            // The probe set it; the registers saved before do not know.
            back.gs_base = tracee.registers()?.gs_base;
        }
    }
    tracee.set_registers(&back)?;
    let control = shared.control();
    let cache = control.cache_start.load(Relaxed);
    let pool = (control.pool.load(Relaxed), POOL_BYTES as u64);
    let rest =
        vec![(at, shared.len() as u64), (cache, control.cache_end.load(Relaxed).saturating_sub(cache)), pool];
    Ok(Holdings { probe: (base, len), rest })
}

fn words(block: &[u64; 4]) -> Vec<u8> {
    block.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// A `syscall` instruction that the process has mapped already: in the vdso. Nothing of the program is changed for it.
pub(crate) fn find_syscall(tracee: &Tracee) -> Result<u64, LaunchError> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", tracee.pid))
        .map_err(|error| LaunchError::Place { what: "reading the program's mappings", error })?;
    // From the end: the vdso is there, is small, and has one.
    for line in maps.lines().rev() {
        let executable = line.split(' ').nth(1).is_some_and(|p| p.contains('x'));
        let Some((start, end)) = line.split(' ').next().and_then(|r| r.split_once('-')) else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else {
            continue;
        };
        if !executable || line.ends_with("[vsyscall]") {
            continue;
        }
        let mut code = vec![0; (end - start) as usize];
        if tracee.read(start, &mut code).is_err() {
            continue;
        }
        if let Some(i) = code.windows(2).position(|w| w == [0x0f, 0x05]) {
            return Ok(start + i as u64);
        }
    }
    Err(refused("looking for a system call instruction", "the program has none mapped"))
}
