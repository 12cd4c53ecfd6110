// What the engine is to a changed program, in small: gives it a context behind gs before its first instruction, and goes on
// where a burst would begin. Compiled without tables for unwinding, so that nothing of it is changed.
typedef unsigned long u64;

struct context {
    u64 checks, r14, save, to;
} context;
u64 period = 1000000007, bursts;

// Filled in by the test: where instructions went that were replaced, as pairs of distances from here, in order.
__attribute__((section(".moved"))) long moved[2 * 65536] = {1};

__asm__(".section .stubs,\"ax\",@progbits\n"
        ".globl stub_room\n"
        "stub_room: .skip 4 << 20, 0xcc\n"
        ".text\n");

static long call3(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

// The program begins here: the stack is as the kernel left it.
__asm__(".globl begin_here\n"
        "begin_here:\n"
        "    push %rdx\n"
        "    lea 16(%rsp), %rsi\n"
        "    mov 8(%rsp), %rdi\n"
        "    mov %rsp, %rbx\n"
        "    and $-16, %rsp\n"
        "    call set_up\n"
        "    mov %rbx, %rsp\n"
        "    pop %rdx\n"
        "    jmp _start\n");

// A period as the last argument, if it is a number behind a colon.
void set_up(long argc, char **argv) {
    char *last = argv[argc - 1];
    if (last[0] == ':')
        for (period = 0; *++last;) period = period * 10 + (u64)(*last - '0');
    context.checks = period;
    call3(158 /* arch_prctl */, 0x1001 /* ARCH_SET_GS */, (long)&context, 0);
}

// Checks are at zero: the program goes on at r14, whose own value is in the context.
__asm__(".globl no_checks_left\n"
        "no_checks_left:\n"
        "    mov %r14, %gs:24\n"
        "    mov %gs:8, %r14\n"
        "    lea -128(%rsp), %rsp\n"
        "    pushfq\n"
        "    push %rax\n    push %rcx\n    push %rdx\n    push %rsi\n    push %rdi\n"
        "    push %r8\n    push %r9\n    push %r10\n    push %r11\n    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    mov %gs:24, %rdi\n"
        "    and $-16, %rsp\n"
        "    call go_on_at\n"
        "    mov %rax, %gs:24\n"
        "    mov %rbp, %rsp\n"
        "    pop %rbp\n    pop %r11\n    pop %r10\n    pop %r9\n    pop %r8\n"
        "    pop %rdi\n    pop %rsi\n    pop %rdx\n    pop %rcx\n    pop %rax\n"
        "    popfq\n"
        "    lea 128(%rsp), %rsp\n"
        "    jmp *%gs:24\n");

// Where the instruction of an address is now.
u64 go_on_at(u64 pc) {
    context.checks = period;
    bursts++;
    long want = (long)(pc - (u64)moved), low = 0, high = 65536;
    while (low < high) {
        long middle = (low + high) / 2;
        if (moved[2 * middle] < want) low = middle + 1;
        else high = middle;
    }
    return low < 65536 && moved[2 * low] == want ? (u64)moved + (u64)moved[2 * low + 1] : pc;
}

// Checks so far.
u64 counted(void) { return bursts * period + (period - context.checks); }

static void digits(u64 number, char **to) {
    if (number >= 10) digits(number / 10, to);
    *(*to)++ = (char)('0' + number % 10);
}

// Tells at the end what was counted, to standard error.
__attribute__((destructor)) static void tell(void) {
    char line[64], *to = line;
    digits(counted(), &to);
    *to++ = ' ';
    digits(bursts, &to);
    *to++ = '\n';
    call3(1, 2, (long)line, to - line);
}
