/* Code at addresses whose low halves are equal, and jumps to the low half alone: a lookup by half an address must notice. */
#include "common.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Two pages: at the same place in them one function that overwrites the flags first, and one that reads the carry first. */
extern char dead_page[], live_page[];
asm(".pushsection .text.halves,\"ax\",@progbits\n"
    ".p2align 12\n dead_page: .skip 64, 0x90\n xor %eax, %eax\n lea dead_page(%rip), %rdx\n ret\n"
    ".p2align 12\n live_page: .skip 64, 0x90\n setc %al\n movzbl %al, %eax\n lea live_page(%rip), %rdx\n ret\n"
    ".p2align 12\n .popsection");

enum { PLACE = 64 };
static sigjmp_buf back;
static uintptr_t fault_pc, fault_address;

static void handler(int signo, siginfo_t *info, void *context) {
    fault_pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    fault_address = (uintptr_t)info->si_addr;
    siglongjmp(back, signo);
}

/* Calls with the carry set: what the function says of it, and whether it knows where it is. */
static NOINLINE int carry_at(char *function, char *page) {
    uint64_t carry, where;
    asm volatile("stc\n call *%2" : "=a"(carry), "=d"(where) : "r"(function) : "cc", "memory");
    MUST(where == (uintptr_t)page);
    return carry;
}
/* The same by a return. */
static NOINLINE int carry_by_return(char *function, char *page) {
    uint64_t carry, where;
    asm volatile("lea 1f(%%rip), %%rax\n sub $128, %%rsp\n push %%rax\n push %2\n stc\n ret\n 1: lea 128(%%rsp), %%rsp"
                 : "=&a"(carry), "=d"(where) : "r"(function) : "cc", "memory");
    MUST(where == (uintptr_t)page);
    return carry;
}
static void map_double(char *at, char *content) {
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end, offset;
    char line[4096], path[4096];
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095s", &start, &end, &offset, path) == 4 && start <= (uintptr_t)content && (uintptr_t)content < end) break;
    MUST(maps && start <= (uintptr_t)content && (uintptr_t)content < end);
    fclose(maps);
    FILE *file = fopen(path, "r");
    MUST(file != 0);
    char *got = mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fileno(file), offset + (uintptr_t)content - start);
    MUST(got == at);
    fclose(file);
}

/* 0: call, 1: jump, 2: return to the low half of a function that is known. */
static NOINLINE int stray(int how) {
    uintptr_t half = (uint32_t)(uintptr_t)(dead_page + PLACE);
    fault_pc = 0;
    int signo = sigsetjmp(back, 1);
    if (signo == 0) {
        if (how == 0) asm volatile("call *%0" ::"r"(half) : "memory");
        if (how == 1) asm volatile("jmp *%0" ::"r"(half) : "memory");
        if (how == 2) asm volatile("push %0\n ret" ::"r"(half) : "memory");
    }
    MUST(signo == SIGSEGV && fault_pc == half && fault_address == half);
    return signo;
}

int main(void) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    MUST(sigaltstack(&alternate, 0) == 0 && sigaction(SIGSEGV, &action, 0) == 0);
    char *twice = dead_page + (1ul << 32);
    uint64_t sums[4] = {0}, sum = 0, rounds = scaled(20000);
    for (uint64_t i = 0; i < rounds; i++) {
        sums[0] += carry_at(dead_page + PLACE, dead_page) + carry_at(live_page + PLACE, live_page);
        sums[1] += carry_by_return(dead_page + PLACE, dead_page) + carry_by_return(live_page + PLACE, live_page);
        if (i % 50 == 0) sum = churn(sum, 30);
    }
    map_double(twice, live_page);
    for (uint64_t i = 0; i < rounds; i++) {
        sums[2] += carry_at(dead_page + PLACE, dead_page) + 2 * carry_at(twice + PLACE, twice) + 4 * carry_by_return(twice + PLACE, twice);
        if (i % 50 == 0) sum = churn(sum, 30);
    }
    /* Last: after a fault it may take a while until a mode has the thread back. */
    for (uint64_t i = 0; i < rounds / 200; i++) sum = churn(sum, 3000), sums[3] += stray(i % 3);
    printf("%lu %lu %lu %lu %016lx\n", sums[0], sums[1], sums[2], sums[3], sum);
    return 0;
}
