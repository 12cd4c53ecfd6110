/* Red-zone users and functions that return in unusual ways, for odd_code.c. All take and return one number. */
#ifndef COROUTINE_STACK
#define COROUTINE_STACK 16384 /* smaller ones have no room for a signal frame: fine natively, as none comes */
#endif
.text
.macro function name
    .globl \name
    .type \name, @function
\name:
.endm

function red_zone            /* keeps sixteen words below the stack pointer over loops and jumps */
    mov %rdi, %rax
    mov $15, %ecx
1:  mov %rax, -128(%rsp,%rcx,8)
    lea 3(%rax,%rax,4), %rax
    dec %ecx
    jns 1b
    lea 2f(%rip), %rdx
    jmp *%rdx
    ud2
2:  mov $15, %ecx
    xor %eax, %eax
3:  add -128(%rsp,%rcx,8), %rax
    rol $7, %rax
    dec %ecx
    jns 3b
    ret

function push_ret            /* push + ret as a jump */
    lea 1f(%rip), %rax
    push %rax
    lea 5(%rdi), %rax
    ret
    ud2
1:  ret

function ret_immediate       /* the callee removes two arguments */
    lea -8(%rsp), %rsp
    push %rdi
    push $7
    call takes_two
    lea 8(%rsp), %rsp
    ret
takes_two:
    mov 8(%rsp), %rax
    add 16(%rsp), %rax
    ret $16

function call_pop            /* the old way to learn the program counter */
    call 1f
1:  pop %rax
    lea 1b(%rip), %rdx
    sub %rdx, %rax
    add %rdi, %rax
    ret

function return_elsewhere    /* changes its own return address: skips the instruction behind the call */
    call skips
    ud2
    lea 9(%rdi), %rax
    ret
skips:
    addq $2, (%rsp)
    ret

function return_twice        /* one call, two returns: the second goes on with what the first left on the stack */
    xor %eax, %eax
    lea 3f(%rip), %rdx
    push %rdx
    call 2f
    inc %rax
    ret                       /* to 3 */
2:  add %rdi, %rax
    ret
3:  lea 1(%rax), %rax
    ret

function through_stack       /* calls and jumps with operands relative to the stack pointer */
    lea helper(%rip), %rax
    push %rax
    push %rdi
    call *8(%rsp)
    lea 8(%rsp), %rsp
    push %rax
    lea 1f(%rip), %rdx
    mov %rdx, 8(%rsp)
    pop %rax
    jmp *(%rsp)
    ud2
1:  pop %rdx
    ret
helper:
    mov 8(%rsp), %rax         /* the number behind the return address */
    add 16(%rsp), %rax
    sub 16(%rsp), %rax
    ret

function stack_pointer       /* push rsp, pop rsp, push and pop with the stack pointer as base */
    push %rdi
    push %rsp
    pop %rax
    pushq (%rsp)
    pushq 8(%rsp)
    popq 8(%rsp)
    popq (%rsp)
    sub %rsp, %rax            /* 0 */
    mov %rsp, %rdx
    lea -64(%rsp), %rsp
    push %rdx
    pop %rsp
    pop %rdx
    add %rdx, %rax
    ret

function coroutine           /* two stacks that call each other by exchanging stack pointers */
    push %rbx
    lea coroutine_stack_end(%rip), %rbx
    lea other(%rip), %rax
    lea -8(%rbx), %rbx
    mov %rax, (%rbx)
    mov %rdi, %rax
    mov $10, %ecx
1:  call switch
    lea 1(%rax), %rax
    dec %ecx
    jnz 1b
    pop %rbx
    ret
switch:
    xchg %rsp, %rbx
    ret
other:
    lea (%rax,%rax,2), %rax
    call switch
    jmp other

function overlapping         /* jumps into the middle of an instruction: two readings of the same bytes */
    mov %edi, %eax
    test $1, %edi
    jnz 1f + 1
1:  .byte 0x05, 0x83, 0xc0, 0x07, 0x90   /* add $0x9007c083, %eax; from the second byte: add $7, %eax; nop */
    ret

function prefixes            /* redundant prefixes, long nops, a repeated ret */
    .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    .byte 0x48, 0x66, 0x89, 0xf8         /* rex that does not count: mov %di, %ax */
    movzwl %ax, %eax
    .byte 0x3e, 0x8d, 0x40, 0x05         /* ds lea 5(%rax), %eax */
    addr32 lea 1(%edi,%eax), %eax
    rep ret

function far_loop            /* loop, loope, loopne, jecxz */
    mov %rdi, %rax
    mov $20, %ecx
1:  lea 1(%rax,%rax), %rax
    cmp %rcx, %rcx
    loope 1b
    mov $20, %ecx
2:  xor %rcx, %rax
    test %rsp, %rsp
    loopne 2b
    mov $3, %ecx
3:  jecxz 4f
    add $11, %rax
    loop 3b
4:  ret

.bss
.balign 16
.fill COROUTINE_STACK, 1, 0
coroutine_stack_end:
.section .note.GNU-stack, "", @progbits
