//! What compiled Rust expects from a C library, and the last words of a panic.

use core::fmt::Write;

struct Stderr;

impl Write for Stderr {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        // SAFETY: the bytes are valid for reads.
        let _ = unsafe { sonde_sys::syscall(1, [2, s.as_ptr() as usize, s.len(), 0, 0, 0]) };
        Ok(())
    }
}

/// Says on standard error that Sonde itself failed.
pub fn say_panic(info: &core::panic::PanicInfo<'_>) {
    let _ = writeln!(Stderr, "sonde: the probe failed inside the program: {info}");
}

// Hidden, so that a preloaded probe does not replace the program's own functions of these names. String instructions,
// because anything cleverer would be compiled into a call of itself.
core::arch::global_asm!(
    ".macro sonde_builtin name",
    ".globl \\name",
    ".hidden \\name",
    ".type \\name, @function",
    "\\name:",
    ".endm",
    "sonde_builtin memmove",
    "mov rax, rdi",
    "mov rcx, rdi",
    "sub rcx, rsi",
    "cmp rcx, rdx",
    "jae 2f",
    "mov rcx, rdx",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    "sonde_builtin memcpy",
    "mov rax, rdi",
    "2: mov rcx, rdx",
    "rep movsb",
    "ret",
    "sonde_builtin memset",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    "sonde_builtin memcmp",
    "sonde_builtin bcmp",
    "mov rcx, rdx",
    "xor eax, eax",
    "cmp rcx, rcx",
    "repe cmpsb",
    "je 3f",
    "movzx eax, byte ptr [rdi - 1]",
    "movzx ecx, byte ptr [rsi - 1]",
    "sub eax, ecx",
    "3: ret",
    "sonde_builtin strlen",
    "mov rax, -1",
    "4: inc rax",
    "cmp byte ptr [rdi + rax], 0",
    "jne 4b",
    "ret",
    // Named by the precompiled core library; never called, because panics abort.
    "sonde_builtin rust_eh_personality",
    "sonde_builtin _Unwind_Resume",
    "ud2",
);
