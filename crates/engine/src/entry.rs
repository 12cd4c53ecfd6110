//! The way between the copy and the engine, in assembly: all registers saved, a private stack, no flag changed.

use crate::thread::{Thread, offset};
use core::arch::global_asm;

/// Why the copy came to the engine; the third argument of `engine_entered`.
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
    /// A burst is to begin; the argument is the pc.
    pub const BEGIN: u64 = 5;
    /// A thread comes from elsewhere than the copy, and goes on in it; the argument is the pc.
    pub const ARRIVE: u64 = 6;
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
    ".macro sonde_restore_xmm from",
    "movups xmm0, [\\from + {xmm} + 0*16]",
    "movups xmm1, [\\from + {xmm} + 1*16]",
    "movups xmm2, [\\from + {xmm} + 2*16]",
    "movups xmm3, [\\from + {xmm} + 3*16]",
    "movups xmm4, [\\from + {xmm} + 4*16]",
    "movups xmm5, [\\from + {xmm} + 5*16]",
    "movups xmm6, [\\from + {xmm} + 6*16]",
    "movups xmm7, [\\from + {xmm} + 7*16]",
    "movups xmm8, [\\from + {xmm} + 8*16]",
    "movups xmm9, [\\from + {xmm} + 9*16]",
    "movups xmm10, [\\from + {xmm} + 10*16]",
    "movups xmm11, [\\from + {xmm} + 11*16]",
    "movups xmm12, [\\from + {xmm} + 12*16]",
    "movups xmm13, [\\from + {xmm} + 13*16]",
    "movups xmm14, [\\from + {xmm} + 14*16]",
    "movups xmm15, [\\from + {xmm} + 15*16]",
    ".endm",
    // All general registers but rsp, r14 and r15.
    ".macro sonde_restore_gpr",
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
    ".endm",
    // All that the program had, of the context in rdi.
    ".macro sonde_restore_program",
    "sonde_restore_xmm rdi",
    "push qword ptr [rdi + {flags}]",
    "popfq",
    "sonde_restore_gpr",
    "mov r14, gs:[{app_r14}]",
    "mov r15, gs:[{app_r15}]",
    "mov rsp, gs:[{gpr} + 4*8]",
    ".endm",
    "sonde_entry sonde_resolve, 0",
    "sonde_entry sonde_end_direct, 1",
    "sonde_entry sonde_end_indirect, 2",
    "sonde_entry sonde_leave, 4",
    // Begins a burst.
    ".globl sonde_begin",
    ".hidden sonde_begin",
    "sonde_begin:",
    "mov gs:[{gpr} + 0*8], rax",
    "mov eax, 5",
    "jmp sonde_enter",
    // A thread that was not in the copy and is to go on there: its registers are in the context.
    ".globl sonde_arrive",
    ".hidden sonde_arrive",
    "sonde_arrive:",
    "mov rcx, gs:[{save_rcx}]",
    "mov gs:[{gpr} + 0*8], rax",
    "mov eax, 6",
    "jmp sonde_enter",
    // The same as a miss and as used-up checks, with the pc in its slot, or where the stack pointer just left it, and all other
    // registers the program's.
    ".globl sonde_missed_return",
    ".hidden sonde_missed_return",
    "sonde_missed_return:",
    "mov r14, [rsp - 8]",
    "mov gs:[{target}], r14",
    ".globl sonde_missed",
    ".hidden sonde_missed",
    "sonde_missed:",
    "mov r14, gs:[{target}]",
    "mov gs:[{gpr} + 0*8], rax",
    "mov eax, 3",
    "jmp sonde_enter",
    ".globl sonde_none_left",
    ".hidden sonde_none_left",
    "sonde_none_left:",
    "mov r14, gs:[{target}]",
    "jmp sonde_end_indirect",
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
    "mov gs:[{copy_r15}], r15",
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
    "mov rcx, [rdi + {log}]",
    "cmp byte ptr [rdi + {version}], {recording}",
    "je 4f",
    "mov rcx, [rdi + {app_r15}]",
    "4:",
    "mov [rdi + {copy_r15}], rcx",
    // A signal that came before this look is found by it; one that comes later finds the program's state in the context.
    "cmp dword ptr [rdi + {pending}], 0",
    ".globl sonde_resume_sure",
    ".hidden sonde_resume_sure",
    "sonde_resume_sure:",
    "jne sonde_deliver_next",
    "sonde_restore_xmm rdi",
    "push qword ptr [rdi + {flags}]",
    "popfq",
    "sonde_restore_gpr",
    "mov rsp, gs:[{gpr} + 4*8]",
    "mov r15, gs:[{copy_r15}]",
    "jmp gs:[{next}]",
    ".globl sonde_resumed",
    ".hidden sonde_resumed",
    "sonde_resumed:",
    "sonde_deliver_next:",
    "mov rsp, gs:[{stack_top}]",
    "call {deliver_next}",
    "ud2",
    "sonde_deliver_before_call:",
    "mov rsp, gs:[{stack_top}]",
    "call {deliver_before_call}",
    "ud2",
    // Saves the floating-point state as the program has it: the context in rdi has the low halves, the processor the rest.
    ".globl sonde_save_state",
    ".hidden sonde_save_state",
    "sonde_save_state:",
    "sonde_restore_xmm rdi",
    "mov eax, [rdi + {state_features}]",
    "mov edx, [rdi + {state_features} + 4]",
    "mov rdi, [rdi + {state_at}]",
    "xsave64 [rdi]",
    "ret",
    // Returns from a signal with the frame in rdi.
    ".globl sonde_return_by",
    ".hidden sonde_return_by",
    "sonde_return_by:",
    "mov rsp, rdi",
    "mov eax, 15",
    "syscall",
    "ud2",
    // The rest of a delivery by the engine, with the floating-point state that handlers begin with: rdi = context.
    ".globl sonde_deliver_fresh",
    ".hidden sonde_deliver_fresh",
    "sonde_deliver_fresh:",
    "call {deliver_fresh}",
    "ud2",
    // Goes native with the frame of the context in rdi: saves the floating-point state as the program has it, then
    // lets the kernel restore everything at once, the signal mask included.
    ".globl sonde_go_native",
    ".hidden sonde_go_native",
    "sonde_go_native:",
    "mov rbx, rdi",
    "sonde_restore_xmm rbx",
    "mov eax, [rbx + {state_features}]",
    "mov edx, [rbx + {state_features} + 4]",
    "mov rdi, [rbx + {state_at}]",
    "xsave64 [rdi]",
    "mov rdi, rbx",
    ".globl sonde_go_native_as_is",
    ".hidden sonde_go_native_as_is",
    "sonde_go_native_as_is:",
    "mov rsp, [rdi + {frame_at}]",
    "mov eax, 15",
    "syscall",
    "ud2",
    // Runs the program's system call with the program's registers (context in rdi), then tells the engine. A signal that came
    // before the look at those pending is delivered before the call, one that comes later interrupts it as it would natively.
    ".globl sonde_syscall",
    ".hidden sonde_syscall",
    "sonde_syscall:",
    "cmp dword ptr [rdi + {pending}], 0",
    ".globl sonde_syscall_sure",
    ".hidden sonde_syscall_sure",
    "sonde_syscall_sure:",
    "jne sonde_deliver_before_call",
    "sonde_restore_program",
    ".globl sonde_syscall_ready",
    ".hidden sonde_syscall_ready",
    "sonde_syscall_ready:",
    "syscall",
    ".globl sonde_syscall_done",
    ".hidden sonde_syscall_done",
    "sonde_syscall_done:",
    "mov gs:[{gpr} + 0*8], rax",
    "mov rsp, gs:[{stack_top}]",
    "push 2",
    "popfq",
    "mov rdi, gs:[{me}]",
    "call {after}",
    "mov rdi, gs:[{me}]",
    "jmp sonde_resume",
    // The same for calls that make a child. The child does not own this context: it keeps its registers on its own
    // stack, below the red zone, with the program's pc on top, and asks the engine what to do.
    ".globl sonde_clone",
    ".hidden sonde_clone",
    "sonde_clone:",
    "cmp dword ptr [rdi + {pending}], 0",
    ".globl sonde_clone_sure",
    ".hidden sonde_clone_sure",
    "sonde_clone_sure:",
    "jne sonde_deliver_before_call",
    "sonde_restore_program",
    ".globl sonde_clone_ready",
    ".hidden sonde_clone_ready",
    "sonde_clone_ready:",
    "syscall",
    ".globl sonde_clone_done",
    ".hidden sonde_clone_done",
    "sonde_clone_done:",
    "mov rcx, rax",
    "jrcxz 2f",
    "jmp sonde_syscall_done",
    "2:",
    "lea rsp, [rsp - 128]",
    "push gs:[{resume_pc}]",
    "pushfq",
    "push rax",
    "push rcx",
    "push rdx",
    "push rbx",
    "push rbp",
    "push rsi",
    "push rdi",
    "push r8",
    "push r9",
    "push r10",
    "push r11",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "lea rsp, [rsp - 256]",
    "movups [rsp + 0*16], xmm0",
    "movups [rsp + 1*16], xmm1",
    "movups [rsp + 2*16], xmm2",
    "movups [rsp + 3*16], xmm3",
    "movups [rsp + 4*16], xmm4",
    "movups [rsp + 5*16], xmm5",
    "movups [rsp + 6*16], xmm6",
    "movups [rsp + 7*16], xmm7",
    "movups [rsp + 8*16], xmm8",
    "movups [rsp + 9*16], xmm9",
    "movups [rsp + 10*16], xmm10",
    "movups [rsp + 11*16], xmm11",
    "movups [rsp + 12*16], xmm12",
    "movups [rsp + 13*16], xmm13",
    "movups [rsp + 14*16], xmm14",
    "movups [rsp + 15*16], xmm15",
    "mov rdi, rsp",
    "mov rsi, gs:[{me}]",
    "mov rbx, rsp",
    "and rsp, -16",
    "call {child}",
    // rax = context to go on with, or 0: natively.
    "test rax, rax",
    "jz 3f",
    "mov rdi, rax",
    "mov rsp, gs:[{stack_top}]",
    "mov rax, gs:[{next}]",
    "jmp sonde_resume",
    "3:",
    "mov rsp, rbx",
    "movups xmm0, [rsp + 0*16]",
    "movups xmm1, [rsp + 1*16]",
    "movups xmm2, [rsp + 2*16]",
    "movups xmm3, [rsp + 3*16]",
    "movups xmm4, [rsp + 4*16]",
    "movups xmm5, [rsp + 5*16]",
    "movups xmm6, [rsp + 6*16]",
    "movups xmm7, [rsp + 7*16]",
    "movups xmm8, [rsp + 8*16]",
    "movups xmm9, [rsp + 9*16]",
    "movups xmm10, [rsp + 10*16]",
    "movups xmm11, [rsp + 11*16]",
    "movups xmm12, [rsp + 12*16]",
    "movups xmm13, [rsp + 13*16]",
    "movups xmm14, [rsp + 14*16]",
    "movups xmm15, [rsp + 15*16]",
    "lea rsp, [rsp + 256]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdi",
    "pop rsi",
    "pop rbp",
    "pop rbx",
    "pop rdx",
    "pop rcx",
    "pop rax",
    "popfq",
    "ret 128",
    // A return from a signal handler comes out here, with the program's registers.
    ".globl sonde_landing",
    ".hidden sonde_landing",
    "sonde_landing:",
    "mov gs:[{app_r14}], r14",
    "mov gs:[{app_r15}], r15",
    "mov gs:[{save_rcx}], rcx",
    ".globl sonde_landing_booked",
    ".hidden sonde_landing_booked",
    "sonde_landing_booked:",
    "mov r14, gs:[{resume_pc}]",
    "jmp sonde_arrive",
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
    copy_r15 = const offset::COPY_R15,
    version = const offset::VERSION,
    recording = const crate::cache::RECORDING,
    flags = const offset::FLAGS,
    next = const offset::NEXT,
    me = const offset::ME,
    save_rcx = const offset::SAVE_RCX,
    stack_top = const offset::STACK_TOP,
    frame_at = const offset::FRAME_AT,
    state_at = const offset::STATE_AT,
    state_features = const offset::STATE_FEATURES,
    app_r14 = const offset::APP_R14,
    app_r15 = const offset::APP_R15,
    resume_pc = const offset::RESUME_PC,
    target = const offset::TARGET,
    pending = const offset::PENDING,
    deliver_next = sym deliver_next,
    deliver_before_call = sym deliver_before_call,
    deliver_fresh = sym deliver_fresh,
    entered = sym engine_entered,
    after = sym after_syscall,
    child = sym child_started,
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
    /// Entry for indirect branches without a copy, through a table by the whole pc.
    pub fn sonde_missed();
    /// The same for returns.
    pub fn sonde_missed_return();
    /// Entry for used-up checks there.
    pub fn sonde_none_left();
    /// Entry for threads that come from elsewhere than the copy: r14 = the pc, the program's r14, r15 and rcx in the context.
    pub fn sonde_arrive();
    /// Entry for system calls and instructions that are not copied.
    pub fn sonde_leave();
    /// Entry for a thread that was interrupted in native code: r14 = its pc, gs set.
    pub fn sonde_begin();
    /// Like [`sonde_go_native`], with the floating-point state as it lies in the context already.
    pub fn sonde_go_native_as_is(thread: *mut Thread) -> !;
    /// Leaves the engine for native code with the frame of the context.
    pub fn sonde_go_native(thread: *mut Thread) -> !;
    /// Calls rt_sigreturn.
    pub fn sonde_restorer();
    /// Delivers what is pending, or restores the copy's registers and goes on in it; up to [`sonde_resumed`].
    pub fn sonde_resume(thread: *mut Thread);
    /// From here on nothing was pending.
    pub fn sonde_resume_sure();
    /// End of [`sonde_resume`].
    pub fn sonde_resumed();
    /// Runs the program's system call.
    pub fn sonde_syscall(thread: *mut Thread) -> !;
    /// The system call instruction.
    pub fn sonde_syscall_ready();
    /// Right after it.
    pub fn sonde_syscall_done();
    /// From here on nothing was pending before the system call.
    pub fn sonde_syscall_sure();
    /// Runs a system call that makes a child.
    pub fn sonde_clone(thread: *mut Thread) -> !;
    /// From here on nothing was pending before it.
    pub fn sonde_clone_sure();
    /// Its system call instruction.
    pub fn sonde_clone_ready();
    /// Saves the program's floating-point state where the context keeps it.
    pub fn sonde_save_state(thread: *mut Thread);
    /// Calls rt_sigreturn with a frame.
    pub fn sonde_return_by(frame: *const sonde_sys::signal::Context) -> !;
    /// Goes on with a delivery by the engine.
    pub fn sonde_deliver_fresh();
    /// Right after it.
    pub fn sonde_clone_done();
    /// Where returns from signal handlers come out.
    pub fn sonde_landing();
    /// From here on the landing has changed registers.
    pub fn sonde_landing_booked();
}

extern "C" fn deliver_next(thread: *mut Thread) -> ! {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::deliver::before_next(thread) }
}

extern "C" fn deliver_before_call(thread: *mut Thread) -> ! {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::deliver::before_call(thread) }
}

extern "C" fn deliver_fresh(thread: *mut Thread) -> ! {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::deliver::with_fresh_state(thread) }
}

extern "C" fn after_syscall(thread: *mut Thread) -> u64 {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::syscall::after(thread) }
}

extern "C" fn child_started(saved: *const crate::syscall::Saved, parent: *mut Thread) -> u64 {
    // SAFETY: the assembly passes the registers it saved, and the context of the parent.
    unsafe { crate::syscall::child(saved, parent) }
}

/// Called by the assembly on the private stack with everything saved; returns where in the copy to go on.
extern "C" fn engine_entered(thread: *mut Thread, arg: u64, why: u64) -> u64 {
    // SAFETY: the assembly passes this thread's context.
    unsafe { crate::trigger::entered(thread, arg, why) }
}
