/* Every way an instruction can use r14 and r15, for r14_r15.c: an engine that borrows registers must give back each form.
 * A form is a function: it loads registers and flags from `state`, executes, and stores them back. Three tables:
 * values (both hold numbers), base14 (r14 points into memory, r15 is a small index), base15 (the other way round). */
.equ RAX, 0; .equ RBX, 8; .equ RCX, 16; .equ RDX, 24; .equ RSI, 32; .equ RDI, 40; .equ RBP, 48
.equ R8_, 56; .equ R9_, 64; .equ R14, 72; .equ R15, 80; .equ FLAGS, 88; .equ RSP, 96

.macro sequence table, insn
    .pushsection .rodata.names, "a"
8:  .asciz "\insn"
    .popsection
    .text
9:  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rsp, state+RSP(%rip)
    pushq state+FLAGS(%rip)
    mov state+RAX(%rip), %rax; mov state+RBX(%rip), %rbx; mov state+RCX(%rip), %rcx; mov state+RDX(%rip), %rdx
    mov state+RSI(%rip), %rsi; mov state+RDI(%rip), %rdi; mov state+RBP(%rip), %rbp
    mov state+R8_(%rip), %r8; mov state+R9_(%rip), %r9; mov state+R14(%rip), %r14; mov state+R15(%rip), %r15
    popfq
    \insn
    pushfq
    popq state+FLAGS(%rip)
    cld
    mov %rax, state+RAX(%rip); mov %rbx, state+RBX(%rip); mov %rcx, state+RCX(%rip); mov %rdx, state+RDX(%rip)
    mov %rsi, state+RSI(%rip); mov %rdi, state+RDI(%rip); mov %rbp, state+RBP(%rip)
    mov %r8, state+R8_(%rip); mov %r9, state+R9_(%rip); mov %r14, state+R14(%rip); mov %r15, state+R15(%rip)
    sub %rsp, state+RSP(%rip)
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
    .pushsection .data.rel.ro.\table, "aw"
    .quad 8b, 9b
    .popsection
.endm
.macro form table, insn:vararg /* one instruction; a semicolon would end the macro's argument */
    sequence \table, "\insn"
.endm
.macro table name
    .pushsection .data.rel.ro.\name, "aw"
    .globl \name
\name:
    .popsection
.endm
.macro end_table name
    .pushsection .data.rel.ro.\name, "aw"
    .quad 0, 0
    .popsection
.endm

table values
/* two-operand arithmetic, all widths, either side */
.irp op, add, or, adc, sbb, and, sub, xor, cmp, mov, test, xchg
    form values, \op %r14, %r15
    form values, \op %r15, %r14
    form values, \op %r14d, %r15d
    form values, \op %r15w, %r14w
    form values, \op %r14b, %r15b
    form values, \op %rax, %r14
    form values, \op %r15, %rdx
    form values, \op %r15b, %cl
    form values, \op %r14, number(%rip)
    form values, \op %r15b, number+3(%rip)
.endr
.irp op, add, or, adc, sbb, and, sub, xor, cmp, mov, test
    form values, \op $0x12345, %r14d
    form values, \op $-5, %r15
    form values, \op $7, %r15b
    form values, \op $0x1234, %r14w
    form values, \op $0x7654321, %r15
.endr
.irp op, add, or, adc, sbb, and, sub, xor, cmp, mov
    form values, \op number(%rip), %r14
    form values, \op number+1(%rip), %r15d
.endr
.irp op, inc, dec, neg, not, mul, imul
    form values, \op %r14
    form values, \op %r15d
    form values, \op %r14w
    form values, \op %r15b
.endr
form values, imul %r14, %r15
form values, imul $77, %r14, %r15
form values, imul $-1000, %r15d, %r14d
form values, imul number(%rip), %r15
form values, imul $5, number(%rip), %r14
sequence values, "xor %edx, %edx; or $1, %r14; div %r14"
sequence values, "cqto; or $1, %r15; idiv %r15"
sequence values, "xor %edx, %edx; or $1, %r15d; div %r15d"
sequence values, "movzbl %al, %eax; or $1, %r14b; div %r14b"
.irp op, shl, shr, sar, rol, ror, rcl, rcr
    form values, \op $5, %r14
    form values, \op $1, %r15d
    form values, \op %cl, %r15
    form values, \op %cl, %r14b
    sequence values, "mov %r14, %rcx; \op %cl, %r15w"
.endr
form values, shld $9, %r14, %r15
form values, shld %cl, %r15, %r14
form values, shrd $9, %r14d, %r15d
form values, shrd %cl, %r15, %r14
.irp op, bt, bts, btr, btc
    form values, \op %r14, %r15
    form values, \op $33, %r14
    form values, \op %r15d, %r14d
.endr
form values, bsf %r14, %r15
form values, bsr %r15, %r14
form values, bswap %r14
form values, bswap %r15d
form values, movzbl %r14b, %r15d
form values, movsbq %r15b, %r14
form values, movswl %r14w, %r15d
form values, movslq %r15d, %r14
form values, movabs $0x123456789abcdef0, %r15
form values, lea (%r14,%r15,8), %rax
form values, lea 5(%r15,%r14), %r14
form values, lea -9(%r14), %r15d
form values, lea (,%r15,4), %r14
sequence values, "lea number(%rip), %r14; mov (%r14), %r15; lea number(%rip), %r14; sub %r14, %r14"
sequence values, "push %r14; pop %r15"
sequence values, "push %r15; push %r14; pop %r15; pop %r14"
sequence values, "push %r14; push %r15; mov (%rsp), %rax; mov 8(%rsp), %rbx; pop %rcx; pop %rdx"
sequence values, "push %r14; popq number(%rip)"
sequence values, "pushq number(%rip); pop %r15"
sequence values, "push %r14w; pop %r15w"
sequence values, "push %r15; xchg %r14, (%rsp); pop %r15"
sequence values, "push %r14; lea (%rsp), %r14; mov (%r14), %r15; pop %r14"
sequence values, "xchg %r14, %r15; xchg %r15, %rax; xchg %rax, %r14"
form values, xadd %r14, %r15
form values, xadd %r15b, %r14b
form values, lock xadd %r15, number(%rip)
form values, xchg %r14, number(%rip)
form values, lock add %r14, number(%rip)
form values, cmpxchg %r14, %r15
sequence values, "mov %r15, %rax; cmpxchg %r14, %r15"
form values, cmpxchg %r15d, %r14d
form values, lock cmpxchg %r15, number(%rip)
sequence values, "mov number(%rip), %rax; lock cmpxchg %r14, number(%rip)"
.irp cc, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
    form values, set\cc %r15b
    form values, set\cc %r14b
    form values, cmov\cc %r14, %r15
    form values, cmov\cc %r15d, %r14d
    form values, cmov\cc number(%rip), %r14
    sequence values, "j\cc 1f; not %r14; 1: inc %r15"
.endr
sequence values, "enter $32, $0; mov %r14, -8(%rbp); mov %r15, -16(%rbp); mov -8(%rbp), %r15; mov -16(%rbp), %r14; leave"
sequence values, "mov %r15, %rbp; enter $16, $0; mov (%rbp), %r14; leave"
sequence values, "mov $3, %ecx; 1: lea (%r14,%rcx), %r14; loop 1b"
sequence values, "mov $5, %ecx; 1: add %rcx, %r15; loopne 1b"
sequence values, "mov %r14, %rcx; jrcxz 1f; add %rcx, %r15; 1: nop"
sequence values, "mov %r15d, %ecx; jecxz 1f; add %rcx, %r14; 1: nop"
sequence values, "movq %r14, %xmm1; movq %xmm1, %r15"
sequence values, "movd %r15d, %xmm2; movd %xmm2, %r14d"
sequence values, "cvtsi2sd %r14, %xmm3; cvttsd2si %xmm3, %r15"
sequence values, "pinsrw $3, %r15d, %xmm1; pextrw $3, %xmm1, %r14d"
form values, crc32 %r14, %r15
form values, popcnt %r15, %r14
sequence values, "lea 1f(%rip), %r14; jmp *%r14; ud2; 1: xor %r14, %r14"
sequence values, "lea 1f(%rip), %r15; push %r15; xor %r15, %r15; ret; ud2; 1: nop"
sequence values, "lea 2f(%rip), %r15; call *%r15; xor %r15, %r15; jmp 3f; 2: add $5, %r14; ret; 3: nop"
sequence values, "call 2f; jmp 3f; 2: pop %r14; push %r14; sub (%rsp), %r14; ret; 3: nop"
sequence values, "push %r14; push %r15; mov $39, %eax; syscall; pop %r14; pop %r15; xor %eax, %eax; xor %ecx, %ecx"
sequence values, "rdtsc; xor %eax, %eax; xor %edx, %edx"
sequence values, "xor %eax, %eax; cpuid; xor %eax, %eax"
end_table values

table bmi
form bmi, andn %r14, %r15, %rax
form bmi, andn %rax, %r14, %r15
form bmi, bextr %r15, %r14, %rbx
form bmi, blsr %r14, %r15
form bmi, pdep %r14, %r15, %r14
form bmi, pext %r15, %r14, %rax
form bmi, mulx %r14, %r15, %rax
form bmi, rorx $13, %r15, %r14
form bmi, shlx %r14, %r15, %rcx
form bmi, sarx %r15, number(%rip), %r14
form bmi, tzcnt %r14, %r15
form bmi, lzcnt %r15, %r14
form bmi, movbe number(%rip), %r14
form bmi, movbe %r15, number(%rip)
form bmi, movbe %r14w, number+2(%rip)
sequence bmi, "vmovq %r14, %xmm5; vpbroadcastq %xmm5, %ymm5; vextracti128 $1, %ymm5, %xmm6; vmovq %xmm6, %r15; vzeroupper"
end_table bmi

.macro memory_forms table, base, index, base32, index32, index16, index8
    .irp op, add, or, adc, sbb, and, sub, xor, cmp, mov, test, xchg
        form \table, \op %rax, (\base)
        form \table, \op %cl, 3(\base,\index)
        form \table, \op \index, 8(\base)
        form \table, \op \index8, -7(\base,\index,8)
        form \table, \op \index32, 4(\base,\index,4)
        form \table, \op \index16, 2(\base,\index,2)
    .endr
    .irp op, add, or, adc, sbb, and, sub, xor, cmp, mov
        form \table, \op 16(\base), %rdx
        form \table, \op (\base,\index,8), \index
        form \table, \op -32(\base), \index8
    .endr
    .irp op, addw, orl, adcq, sbbb, andw, subl, xorq, cmpb, movl, addq, andb, cmpl
        form \table, \op $0x12, 6(\base,\index)
        form \table, \op $-3, 24(\base)
        form \table, \op $0x71, number(%rip)
    .endr
    .irp op, incq, decw, negb, notl, mulq, imulb, mulw, imulq, incb, negl
        form \table, \op (\base)
        form \table, \op 5(\base,\index)
    .endr
    .irp op, incl, decq, negb, notw
        form \table, lock \op 4(\base,\index,4)
    .endr
    .irp op, shlq, sarl, rclw, rorb, shrq, rolq, rcrl
        form \table, \op $3, (\base)
        form \table, \op %cl, 8(\base,\index,4)
        sequence \table, "mov \index, %rcx; \op %cl, 2(\base)"
    .endr
    .irp op, btq, btsl, btrw, btcq
        form \table, \op $11, (\base)
    .endr
    .irp op, btsq, btrl, btcw
        form \table, lock \op $5, 8(\base)
    .endr
    .irp op, bt, bts, btr, btc
        sequence \table, "mov $-300, %rax; \op %rax, (\base)"
        sequence \table, "mov $217, %eax; \op %eax, 4(\base,\index)"
        sequence \table, "lea (,\index,8), \index; \op \index, (\base)"
    .endr
    form \table, shld $7, \index, (\base)
    form \table, shrd %cl, %rax, 8(\base)
    form \table, lea (\base,\index,2), %rax
    form \table, lea 3(\base), \base
    form \table, movzbl (\base,\index), \index32
    form \table, movsbq 1(\base), \index
    sequence \table, "movslq (\base,\index,4), \base; xor \base, \base"
    form \table, mov (\base), \base
    form \table, mov 8(\base,\index,8), \base
    sequence \table, "push (\base); pop \index"
    sequence \table, "push \index; popq 8(\base)"
    sequence \table, "pushq (\base,\index,8); popq 16(\base,\index,8)"
    form \table, xchg (\base), \index
    form \table, xadd \index, (\base)
    form \table, lock xadd \index8, 1(\base)
    form \table, cmpxchg \index, (\base)
    sequence \table, "mov (\base), %rax; lock cmpxchg \index, (\base)"
    form \table, cmpxchg %rbx, (\base,\index,8)
    form \table, cmpxchg8b 8(\base)
    form \table, lock cmpxchg16b (\base)
    sequence \table, "mov \base, %rbx; mov \index8, %al; xlat; mov \base, %rbx"
    sequence \table, "mov \base, %rsi; lodsq; mov %rax, \index"
    sequence \table, "mov \base, %rdi; mov \index, %rcx; rep stosb"
    sequence \table, "lea -64(\base), %rsi; mov \base, %rdi; mov \index, %rcx; rep movsq"
    form \table, imul (\base), \index
    form \table, imul $9, 8(\base,\index), \index
    form \table, cmove (\base), \index
    form \table, cmovb 8(\base,\index), %rcx
    form \table, setle 3(\base,\index)
    form \table, seta \index8
    sequence \table, "movdqu (\base,\index,8), %xmm1; movdqu %xmm1, 32(\base)"
    sequence \table, "movsd (\base), %xmm1; addsd 8(\base,\index,8), %xmm1; movq %xmm1, \index"
    sequence \table, "movq %rdx, %xmm0; movq %xmm0, 8(\base); movntiq \index, 24(\base)"
    sequence \table, "fldl (\base); fstpl 16(\base,\index,8)"
    sequence \table, "fildl (\base); fistpl 4(\base,\index,4)"
    sequence \table, "lea 1f(%rip), %rax; mov %rax, (\base); jmp *(\base); ud2; 1: movq $0, (\base); mov \index, %rax"
    sequence \table, "lea 1f(%rip), %rax; mov %rax, 8(\base,\index,8); call *8(\base,\index,8); jmp 2f; 1: movq $0, 8(\base,\index,8); inc \index; ret; 2: xor %eax, %eax"
    sequence \table, "mov %fs:0, %rax; xor %eax, %eax; mov (\base), \index"
    sequence \table, "mov \base32, %eax; xor %eax, %eax; mov \index32, %eax"
    sequence \table, "prefetcht0 (\base,\index,8); clflush (\base); mfence"
.endm
table base14
memory_forms base14, %r14, %r15, %r14d, %r15d, %r15w, %r15b
end_table base14
table base15
memory_forms base15, %r15, %r14, %r15d, %r14d, %r14w, %r14b
end_table base15

.data
.balign 16
.globl state, number
state: .fill 16, 8, 0
number: .quad 0, 0
.section .note.GNU-stack, "", @progbits
