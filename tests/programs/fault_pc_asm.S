/* Faulting instructions for fault_pc.c. Each function loads known registers and flags, faults at at_NAME, and goes on at
 * next_NAME, where the handler sends it. Address of unmapped memory: r15 (and where the instruction needs it, others). */
.text
.macro faulting name, prepare, insn:vararg
    .globl fault_\name, at_\name, next_\name
    .type fault_\name, @function
fault_\name:
    push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
    mov %rsp, fault_rsp(%rip)
    mov %rdi, %r15
    mov $0x1a1a, %eax; mov $0x1b1b, %ebx; mov $0x1c1c, %ecx; mov $0x1d1d, %edx
    mov $0x5151, %esi; mov $0xd1d1, %edi; mov $0xb9b9, %ebp
    mov $0x8888, %r8d; mov $0x9999, %r9d; mov $0x1010, %r10d; mov $0x1111, %r11d
    mov $0x1212, %r12d; mov $0x1313, %r13d; mov $0x1414, %r14d
    pushq $0x8d7; popfq
    \prepare
at_\name:
    \insn
next_\name:
    cld
    mov fault_rsp(%rip), %rsp
    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
    ret
    .size fault_\name, . - fault_\name
    .pushsection .rodata.names, "a"
1:  .asciz "\name"
    .popsection
    .pushsection .data.rel.ro.faults, "aw"
    .quad 1b, fault_\name, at_\name, next_\name
    .popsection
.endm

.pushsection .data.rel.ro.faults, "aw"
.globl faults
faults:
.popsection

faulting load,          "nop",                      mov (%r15), %rax
faulting load_r14,      "nop",                      mov 8(%r15), %r14
faulting load_index,    "mov $3, %r14d",            movzwl 2(%r15,%r14,8), %r12d
faulting store,         "nop",                      mov %r14, 16(%r15)
faulting store_imm,     "mov %r15, %r14",           movl $77, (%r14)
faulting add_to,        "nop",                      addl $1, 4(%r15)
faulting locked,        "nop",                      lock cmpxchg %r14, (%r15)
faulting exchange,      "nop",                      xchg %r14, (%r15)
faulting push_from,     "nop",                      pushq (%r15)
faulting pop_to,        "nop",                      popq (%r15)
faulting push_bad,      "lea 8(%r15), %rsp",           push %r14
faulting call_bad_stack,"lea 8(%r15), %rsp",           call next_call_bad_stack
faulting ret_bad_stack, "mov %r15, %rsp",           ret
faulting leave_bad,     "mov %r15, %rbp",           leave
faulting call_through,  "nop",                      call *(%r15)
faulting jump_through,  "nop",                      jmp *8(%r15)
faulting call_nowhere,  "nop",                      call *%r15
faulting jump_nowhere,  "nop",                      jmp *%r15
faulting ret_nowhere,   "push %r15",                ret
faulting load_far_out,  "movabs $0x8000000000001234, %r15", mov (%r15), %eax
faulting stack_far_out, "movabs $0x8000000000001234, %rbp", mov (%rbp), %eax
faulting rep_movs,      "lea -40(%r15), %rdi; lea fault_bytes(%rip), %rsi; mov $100, %ecx", rep movsb
faulting rep_stos_down, "lea 4096+16(%r15), %rdi; mov $50, %ecx; std", rep stosq
faulting rep_cmps,      "lea -24(%r15), %rdi; lea fault_bytes(%rip), %rsi; mov $9, %ecx", repe cmpsq
faulting divide_zero,   "xor %ecx, %ecx",           div %rcx
faulting divide_big,    "mov $0x80000000, %eax; cltd; mov $-1, %r14d", idiv %r14d
faulting undefined,     "nop",                      ud2
faulting privileged,    "nop",                      hlt
faulting port,          "nop",                      in %dx, %al
faulting breakpoint,    "nop",                      int3
faulting aligned,       "lea fault_bytes+1(%rip), %r14", movaps (%r14), %xmm3
faulting sse_load,      "nop",                      movdqu (%r15), %xmm7
faulting x87_load,      "nop",                      fldl (%r15)
faulting no_such_int,   "nop",                      int $0x55
.pushsection .data.rel.ro.faults, "aw"
    .quad 0, 0, 0, 0
.popsection

.data
.balign 16
.globl fault_bytes, fault_rsp
fault_bytes: .fill 256, 1, 0
fault_rsp: .quad 0
.section .note.GNU-stack, "", @progbits
