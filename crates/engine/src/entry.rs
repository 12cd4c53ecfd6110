//! The way between the copy and the engine, in assembly: all registers saved, a private stack, no flag changed.

use crate::thread::{Thread, offset};
use core::arch::global_asm;

/// Why the copy came to the engine; the third argument of [`engine_entered`].
pub mod why {
    /// A direct exit whose target has no copy yet; the argument is the exit number.
    pub const RESOLVE: u64 = 0;
    /// Checks used up at a direct exit; the argument is the exit number.
    pub const END_DIRECT: u64 = 1;
    /// Checks used up at an indirect exit; the argument is the pc.
    pub const END_INDIRECT: u64 = 2;
    /// An indirect branch to a pc without a copy; the argument is the pc.
    pub const MISS: u64 = 3;
    /// A system call or an instruction that the copy does not run; the argument is the exit number.
    pub const LEAVE: u64 = 4;
}

global_asm!(
    ".macro sonde_entry name, why",
    ".globl \\name",
    ".hidden \\name",
    "\\name:",
    "mov gs:[{gpr} + 0*8], rax",
    "mov eax, \\why",
    "jmp sonde_enter",
    ".endm",
    "sonde_entry sonde_resolve, 0",
    "sonde_entry sonde_end_direct, 1",
    "sonde_entry sonde_end_indirect, 2",
    "sonde_entry sonde_leave, 4",
    // A miss comes from the jump table or from an entry that did not match: rcx is in its slot.
    ".globl sonde_miss",
    ".hidden sonde_miss",
    "sonde_miss:",
    "mov rcx, gs:[{save_rcx}]",
    "mov gs:[{gpr} + 0*8], rax",
    "mov eax, 3",
    "sonde_enter:",
    "mov gs:[{gpr} + 1*8], rcx",
    "mov gs:[{gpr} + 2*8], rdx",
    "mov gs:[{gpr} + 3*8], rbx",
    "mov gs:[{gpr} + 4*8], rsp",
    "mov gs:[{gpr} + 5*8], rbp",
    "mov gs:[{gpr} + 6*8], rsi",
    "mov gs:[{gpr} + 7*8], rdi",
    "mov gs:[{gpr} + 8*8], r8",
    "mov gs:[{gpr} + 9*8], r9",
    "mov gs:[{gpr} + 10*8], r10",
    "mov gs:[{gpr} + 11*8], r11",
    "mov gs:[{gpr} + 12*8], r12",
    "mov gs:[{gpr} + 13*8], r13",
    "mov gs:[{arg}], r14",
    "mov gs:[{log}], r15",
    "mov rsp, gs:[{stack_top}]",
    "pushfq",
    "pop rcx",
    "mov gs:[{flags}], rcx",
    "push 2",
    "popfq",
    "mov rdi, gs:[{me}]",
    "movups [rdi + {xmm} + 0*16], xmm0",
    "movups [rdi + {xmm} + 1*16], xmm1",
    "movups [rdi + {xmm} + 2*16], xmm2",
    "movups [rdi + {xmm} + 3*16], xmm3",
    "movups [rdi + {xmm} + 4*16], xmm4",
    "movups [rdi + {xmm} + 5*16], xmm5",
    "movups [rdi + {xmm} + 6*16], xmm6",
    "movups [rdi + {xmm} + 7*16], xmm7",
    "movups [rdi + {xmm} + 8*16], xmm8",
    "movups [rdi + {xmm} + 9*16], xmm9",
    "movups [rdi + {xmm} + 10*16], xmm10",
    "movups [rdi + {xmm} + 11*16], xmm11",
    "movups [rdi + {xmm} + 12*16], xmm12",
    "movups [rdi + {xmm} + 13*16], xmm13",
    "movups [rdi + {xmm} + 14*16], xmm14",
    "movups [rdi + {xmm} + 15*16], xmm15",
    "mov rsi, r14",
    "mov edx, eax",
    "call {entered}",
    // rax = where the copy goes on. Also reached to start the copy from saved state: rdi = context.
    "mov rdi, gs:[{me}]",
    ".globl sonde_resume",
    ".hidden sonde_resume",
    "sonde_resume:",
    "mov [rdi + {next}], rax",
    "movups xmm0, [rdi + {xmm} + 0*16]",
    "movups xmm1, [rdi + {xmm} + 1*16]",
    "movups xmm2, [rdi + {xmm} + 2*16]",
    "movups xmm3, [rdi + {xmm} + 3*16]",
    "movups xmm4, [rdi + {xmm} + 4*16]",
    "movups xmm5, [rdi + {xmm} + 5*16]",
    "movups xmm6, [rdi + {xmm} + 6*16]",
    "movups xmm7, [rdi + {xmm} + 7*16]",
    "movups xmm8, [rdi + {xmm} + 8*16]",
    "movups xmm9, [rdi + {xmm} + 9*16]",
    "movups xmm10, [rdi + {xmm} + 10*16]",
    "movups xmm11, [rdi + {xmm} + 11*16]",
    "movups xmm12, [rdi + {xmm} + 12*16]",
    "movups xmm13, [rdi + {xmm} + 13*16]",
    "movups xmm14, [rdi + {xmm} + 14*16]",
    "movups xmm15, [rdi + {xmm} + 15*16]",
    "push qword ptr [rdi + {flags}]",
    "popfq",
    "mov rax, gs:[{gpr} + 0*8]",
    "mov rcx, gs:[{gpr} + 1*8]",
    "mov rdx, gs:[{gpr} + 2*8]",
    "mov rbx, gs:[{gpr} + 3*8]",
    "mov rbp, gs:[{gpr} + 5*8]",
    "mov rsi, gs:[{gpr} + 6*8]",
    "mov rdi, gs:[{gpr} + 7*8]",
    "mov r8, gs:[{gpr} + 8*8]",
    "mov r9, gs:[{gpr} + 9*8]",
    "mov r10, gs:[{gpr} + 10*8]",
    "mov r11, gs:[{gpr} + 11*8]",
    "mov r12, gs:[{gpr} + 12*8]",
    "mov r13, gs:[{gpr} + 13*8]",
    "mov rsp, gs:[{gpr} + 4*8]",
    "mov r15, gs:[{log}]",
    "jmp gs:[{next}]",
    // Goes native with the frame of the context in rdi: saves the floating-point state as the program has it, then
    // lets the kernel restore everything at once, the signal mask included.
    ".globl sonde_go_native",
    ".hidden sonde_go_native",
    "sonde_go_native:",
    "mov rbx, rdi",
    "movups xmm0, [rbx + {xmm} + 0*16]",
    "movups xmm1, [rbx + {xmm} + 1*16]",
    "movups xmm2, [rbx + {xmm} + 2*16]",
    "movups xmm3, [rbx + {xmm} + 3*16]",
    "movups xmm4, [rbx + {xmm} + 4*16]",
    "movups xmm5, [rbx + {xmm} + 5*16]",
    "movups xmm6, [rbx + {xmm} + 6*16]",
    "movups xmm7, [rbx + {xmm} + 7*16]",
    "movups xmm8, [rbx + {xmm} + 8*16]",
    "movups xmm9, [rbx + {xmm} + 9*16]",
    "movups xmm10, [rbx + {xmm} + 10*16]",
    "movups xmm11, [rbx + {xmm} + 11*16]",
    "movups xmm12, [rbx + {xmm} + 12*16]",
    "movups xmm13, [rbx + {xmm} + 13*16]",
    "movups xmm14, [rbx + {xmm} + 14*16]",
    "movups xmm15, [rbx + {xmm} + 15*16]",
    "mov eax, [rbx + {state_features}]",
    "mov edx, [rbx + {state_features} + 4]",
    "mov rdi, [rbx + {state_at}]",
    "xsave64 [rdi]",
    "mov rsp, [rbx + {frame_at}]",
    "mov eax, 15",
    "syscall",
    "ud2",
    // The restorer of our own handlers.
    ".globl sonde_restorer",
    ".hidden sonde_restorer",
    "sonde_restorer:",
    "mov eax, 15",
    "syscall",
    "ud2",
    gpr = const offset::GPR,
    xmm = const offset::XMM,
    arg = const offset::ARG,
    log = const offset::LOG,
    flags = const offset::FLAGS,
    next = const offset::NEXT,
    me = const offset::ME,
    save_rcx = const offset::SAVE_RCX,
    stack_top = const offset::STACK_TOP,
    frame_at = const offset::FRAME_AT,
    state_at = const offset::STATE_AT,
    state_features = const offset::STATE_FEATURES,
    entered = sym engine_entered,
);

unsafe extern "C" {
    /// Entry for direct exits.
    pub fn sonde_resolve();
    /// Entry for used-up checks at direct exits.
    pub fn sonde_end_direct();
    /// Entry for used-up checks at indirect exits.
    pub fn sonde_end_indirect();
    /// Entry for indirect branches without a copy.
    pub fn sonde_miss();
    /// Entry for system calls and instructions that are not copied.
    pub fn sonde_leave();
    /// Leaves the engine for native code with the frame of the context.
    pub fn sonde_go_native(thread: *mut Thread) -> !;
    /// Calls rt_sigreturn.
    pub fn sonde_restorer();
}

/// Called by the assembly on the private stack with everything saved; returns where in the copy to go on.
extern "C" fn engine_entered(thread: *mut Thread, arg: u64, why: u64) -> u64 {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::trigger::entered(thread, arg, why) }
}
