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

// Hidden, so that a preloaded probe does not replace the program's own functions of these names. Assembly, because loops
// in Rust would be compiled into calls of themselves. Short copies, of which translation makes many, are done without
// string instructions: those take tens of cycles to begin.
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
    "cmp rdx, 16",
    "ja 5f",
    "cmp edx, 8",
    "jae 6f",
    "cmp edx, 4",
    "jae 7f",
    "test edx, edx",
    "je 8f",
    // 1 to 3 bytes: first, middle, last.
    "mov r9, rdx",
    "shr r9",
    "movzx ecx, byte ptr [rsi]",
    "movzx r8d, byte ptr [rsi + r9]",
    "movzx r10d, byte ptr [rsi + rdx - 1]",
    "mov [rdi], cl",
    "mov [rdi + r9], r8b",
    "mov [rdi + rdx - 1], r10b",
    "8: ret",
    "7: mov ecx, [rsi]",
    "mov r8d, [rsi + rdx - 4]",
    "mov [rdi], ecx",
    "mov [rdi + rdx - 4], r8d",
    "ret",
    "6: mov rcx, [rsi]",
    "mov r8, [rsi + rdx - 8]",
    "mov [rdi], rcx",
    "mov [rdi + rdx - 8], r8",
    "ret",
    "5: cmp rdx, 256",
    "ja 2f",
    // Words in pairs, then the last pair, which may cover the one before in part.
    "mov r8, [rsi + rdx - 16]",
    "mov r9, [rsi + rdx - 8]",
    "lea r10, [rdi + rdx - 16]",
    "9: mov rcx, [rsi]",
    "mov r11, [rsi + 8]",
    "mov [rdi], rcx",
    "mov [rdi + 8], r11",
    "add rsi, 16",
    "add rdi, 16",
    "cmp rdi, r10",
    "jb 9b",
    "mov [r10], r8",
    "mov [r10 + 8], r9",
    "ret",
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
