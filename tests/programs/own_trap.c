/* A program with a SIGTRAP handler of its own, fed by int3 and raise; it must see its own traps, all of them, and no other. */
#include "common.h"
#include <signal.h>
#include <ucontext.h>

static volatile uint64_t breakpoints, raised, strange;
extern char after_int3[];

static void handler(int signo, siginfo_t *info, void *context) {
    ucontext_t *machine = context;
    uint64_t rip = machine->uc_mcontext.gregs[REG_RIP];
    if (signo != SIGTRAP) strange++;
    else if (info->si_code == SI_KERNEL && rip == (uintptr_t)after_int3) breakpoints++;
    else if (info->si_code == SI_TKILL && info->si_pid == getpid()) raised++;
    else strange++;
}
static NOINLINE uint64_t break_here(uint64_t x) {
    asm volatile("int3\n.globl after_int3\nafter_int3: add $5, %0" : "+r"(x)::"cc");
    return x;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO}, now;
    MUST(sigaction(SIGTRAP, &action, 0) == 0);
    uint64_t sum = 0, rounds = scaled(2000);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = break_here(churn(sum, 1500));
        if (i % 2) raise(SIGTRAP);
        MUST(sigaction(SIGTRAP, 0, &now) == 0 && now.sa_sigaction == handler);
    }
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    for (int i = 0; i < 20; i++) { /* blocked, pending, then let in */
        MUST(sigprocmask(SIG_BLOCK, &trap, 0) == 0);
        raise(SIGTRAP);
        uint64_t before = raised;
        sum = churn(sum, 50000);
        MUST(raised == before);
        MUST(sigprocmask(SIG_UNBLOCK, &trap, 0) == 0);
        MUST(raised == before + 1);
    }
    action.sa_handler = SIG_IGN;
    MUST(sigaction(SIGTRAP, &action, 0) == 0);
    raise(SIGTRAP);
    sum = churn(sum, scaled(2000000));
    printf("int3 %lu raised %lu strange %lu sum %016lx\n", breakpoints, raised, strange, sum);
    return 0;
}
