//! The library that is placed into the program under study: entry points, allocator, panic handler; only wiring.
//!
//! It has no dependency on any other library, so that it can be mapped into any process by writing its segments there
//! and applying its relative relocations: Sonde maps it at exec and calls [`sonde_probe_start`].
#![no_std]

mod builtins;
mod preload;

use sonde_engine::heap::ProbeHeap;
use sonde_engine::{Start, start};

#[global_allocator]
static HEAP: ProbeHeap = ProbeHeap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    builtins::say_panic(info);
    // SAFETY: an illegal instruction ends the program with a core file that shows where; there is no way on.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

/// Called by Sonde through ptrace: rdi = address of the block that [`start_from_outside`] takes. A breakpoint tells
/// that it is done, rax the result.
///
/// # Safety
/// Only for Sonde, once, in a process that has not run yet.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sonde_probe_start() {
    core::arch::naked_asm!("and rsp, -16", "call {start}", "int3", start = sym start_from_outside)
}

/// Result of a start: 0 = failed, 1 = running natively, otherwise the address where the thread has to go on, with
/// r14 = its pc and r15 = the second word of `Start`'s block.
extern "C" fn start_from_outside(with: *mut [u64; 4]) -> u64 {
    // SAFETY: Sonde wrote the block: shared mapping, probe start, probe end, pc.
    let block = unsafe { &mut *with };
    let with =
        Start { shared: block[0] as usize, probe_start: block[1] as usize, probe_end: block[2] as usize };
    // SAFETY: Sonde calls this once, before the program's first instruction.
    let Some(engine) = (unsafe { start(with) }) else { return 0 };
    match sonde_engine::resident::adopt(engine, block[3]) {
        Some((entry, log)) => {
            block[1] = log;
            entry
        }
        None => 1,
    }
}
