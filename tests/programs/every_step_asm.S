/* One round of every_step.c: sets all registers, goes through all kinds of ways between blocks and through a system call,
 * and stores all registers. rdi = what to set, rsi = where to store: 16 general registers, flags, then at 256 what
 * xsave stores. */
    .intel_syntax noprefix
    .text
    .globl every_step_mixed
    .globl every_step_round, every_step_begin, every_step_end, every_step_leaf, every_step_leaf_end, every_step_entered
    .type every_step_round, @function
every_step_round:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rip + out], rsi
    mov eax, [rip + every_step_features]
    xor edx, edx
    xrstor64 [rdi + 256]
    mov rax, [rdi]
    sahf
    mov rdx, [rdi + 16]
    mov rbx, [rdi + 24]
    mov rbp, [rdi + 40]
    mov rsi, [rdi + 48]
    mov r8, [rdi + 64]
    mov r9, [rdi + 72]
    mov r10, [rdi + 80]
    mov r12, [rdi + 96]
    mov r13, [rdi + 104]
    mov r14, [rdi + 112]
    mov r15, [rdi + 120]
    mov rdi, [rdi + 56]
every_step_begin:
    mov eax, 110
    syscall
    jnc 9f
    jnz 9f
    jns 9f
    lea rax, [rip + every_step_leaf]
    call rax
    mov ecx, 3
1:  lea ecx, [rcx - 1]
    jrcxz 2f
    jmp 1b
2:  call every_step_leaf
    lea rax, [rip + 3f]
    jmp rax
9:  ud2
3:  jnc 9b
    jnz 9b
    mov eax, 110
    syscall
every_step_mixed:
    lea rax, [r14 + r15]
    mov rcx, r15
    mov r14, [rsp + 8]
    mov r14, rax
    sub r14, r15
    lea r15, [rcx]
    mov rax, r14
    cmp eax, eax
    stc
every_step_end:
    mov rcx, [rip + out]
    lahf
    mov [rcx], rax
    mov [rcx + 16], rdx
    mov [rcx + 24], rbx
    mov [rcx + 40], rbp
    mov [rcx + 48], rsi
    mov [rcx + 56], rdi
    mov [rcx + 64], r8
    mov [rcx + 72], r9
    mov [rcx + 80], r10
    mov [rcx + 96], r12
    mov [rcx + 104], r13
    mov [rcx + 112], r14
    mov [rcx + 120], r15
    mov eax, [rip + every_step_features]
    xor edx, edx
    xsave64 [rcx + 256]
    fninit
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret
every_step_leaf:
    nop
    ret
every_step_leaf_end:

/* A handler begins here: keeps what the kernel leaves as it was. */
    .type every_step_entered, @function
every_step_entered:
    sub rsp, 72
    mov [rsp], rbx
    mov [rsp + 8], rbp
    mov [rsp + 16], r12
    mov [rsp + 24], r13
    mov [rsp + 32], r14
    mov [rsp + 40], r15
    stmxcsr [rsp + 48]
    fnstcw [rsp + 52]
    mov rcx, rsp
    call every_step_handler
    add rsp, 72
    ret

    .bss
    .balign 8
out: .skip 8
    .globl every_step_features
every_step_features: .skip 8
    .section .note.GNU-stack, "", @progbits
