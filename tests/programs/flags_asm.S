/* Arithmetic flags that live across calls, returns, jumps and stack operations: compilers keep them short, people do not. */
.text
.macro function name
    .globl \name
    .type \name, @function
\name:
.endm

/* uint64_t wide_add(uint64_t *sum, const uint64_t *addend, uint64_t limbs): carry passes through a call per limb; returns it. */
function wide_add
    mov %rdx, %rcx
    xor %eax, %eax            /* clears CF */
1:  call add_limb
    dec %rcx                  /* leaves CF alone */
    jnz 1b
    setc %al
    ret
add_limb:
    mov (%rsi), %r8
    adc %r8, (%rdi)
    lea 8(%rsi), %rsi
    lea 8(%rdi), %rdi
    ret

/* The same with sbb, through an indirect call and a jump in between. */
function wide_sub
    mov %rdx, %rcx
    lea sub_limb(%rip), %r9
    xor %eax, %eax
1:  call *%r9
    dec %rcx
    jnz 1b
    setc %al
    ret
sub_limb:
    mov (%rsi), %r8
    jmp 2f
    ud2
2:  sbb %r8, (%rdi)
    lea 8(%rsi), %rsi
    lea 8(%rdi), %rdi
    jrcxz 3f
3:  ret

/* Predicates that answer in CF, ZF, OF, SF, PF; every kind of consumer after the return. */
below: cmp %rsi, %rdi; ret
function consumers           /* uint64_t (a, b) -> bits */
    push %rbx
    xor %ebx, %ebx
    call below; setb %bl
    call below; jbe 1f; or $2, %ebx
1:  call below; mov $0, %eax; mov $4, %ecx; cmovl %ecx, %eax; or %eax, %ebx
    call below; jo 2f; or $8, %ebx
2:  call below; js 3f; or $16, %ebx
3:  call below; jp 4f; or $32, %ebx
4:  call below; sbb %eax, %eax; and $64, %eax; or %eax, %ebx
    call below; lahf; movzbl %ah, %eax; shl $8, %eax; or %eax, %ebx
    call below; pushfq; pop %rax; and $0x8d5, %eax; shl $16, %rax; or %rax, %rbx
    call below; rcl $1, %rbx
    mov %rbx, %rax
    pop %rbx
    ret

/* Flags set by hand survive push, pop, mov, lea, xchg, call, ret, jmp, loop, jrcxz, movs, not, bswap. uint64_t (flags). */
function carried
    pushq %rdi
    popfq
    lea carried_bytes(%rip), %rsi
    mov %rsi, %rdi
    mov $5, %ecx
1:  push %rcx
    call nothing
    pop %rdx
    xchg %rdx, %rax
    bswap %rax
    not %rdx
    mov %rdx, carried_bytes+8(%rip)
    lodsb
    lea -1(%rsi), %rsi
    loop 1b
    jrcxz 2f
    ud2
2:  jmp *carried_target(%rip)
    ud2
carried_end:
    pushfq
    pop %rax
    and $0x8d5, %eax
    cld
    ret
nothing: ret

/* popf with the direction flag, sahf, cmc/stc/clc; loops with inc that carry. uint64_t (x, rounds). */
function mixed
    mov %rdi, %rax
    mov %rsi, %rcx
    clc
1:  rcr $1, %rax
    cmc
    adc $0x35, %rax
    inc %rdx                  /* CF stays */
    rcl $3, %rax
    pushfq
    xor %r8d, %r8d
    popfq
    adc $0, %rax
    xchg %al, %ah
    sahf
    jnc 2f
    add $9, %rax
    stc
2:  dec %rcx
    jnz 1b
    ret

/* adcx and adox: two carry chains at once. uint64_t (a, b, rounds); the caller checks for ADX. */
function two_chains
    mov %rdx, %rcx
    mov %rdi, %rax
    xor %edx, %edx            /* clears CF and OF */
1:  adcx %rsi, %rax
    adox %rdi, %rdx
    call nothing
    adcx %rax, %rdi
    lea -1(%rcx), %rcx
    jrcxz 2f
    jmp 1b
2:  adox %rdx, %rax
    adc %rdi, %rax
    ret

.section .data.rel.local, "aw"
carried_bytes: .quad 0, 0
carried_target: .quad carried_end
.section .note.GNU-stack, "", @progbits
