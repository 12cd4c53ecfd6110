/* A program that single-steps itself with the trap flag and counts its own instructions. */
#include "common.h"
#include <signal.h>
#include <ucontext.h>

static volatile uint64_t steps, outside;
extern char step_begin[], step_end[];

static void handler(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)info;
    ucontext_t *machine = context;
    uint64_t rip = machine->uc_mcontext.gregs[REG_RIP];
    steps++;
    if (rip < (uintptr_t)step_begin || rip > (uintptr_t)step_end) outside++;
}
static NOINLINE uint64_t stepped(uint64_t x) {
    asm volatile("sub $128, %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n"
                 ".globl step_begin, step_end\n step_begin:\n"
                 "lea 7(%0,%0,2), %0\n bswap %0\n mov $3, %%ecx\n"
                 "1: lea 1(%0), %0\n dec %%ecx\n jnz 1b\n"
                 "pushfq\n andq $~0x100, (%%rsp)\n popfq\n step_end: nop\n add $128, %%rsp\n"
                 : "+r"(x)::"rcx", "cc", "memory");
    return x;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGTRAP, &action, 0) == 0);
    uint64_t sum = 1, rounds = scaled(300);
    for (uint64_t i = 0; i < rounds; i++) sum = stepped(churn(sum, 10000));
    printf("steps %lu outside %lu sum %016lx\n", steps, outside, sum);
    return 0;
}
