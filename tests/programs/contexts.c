/* Contexts of the ucontext family: coroutines on their own stacks, and signal handlers that change where they return to. */
#include "common.h"
#include <signal.h>
#include <ucontext.h>

enum { COROUTINES = 8 };
static ucontext_t home, contexts[COROUTINES];
static char stacks[COROUTINES][32768];
static uint64_t sums[COROUTINES];

static void coroutine(int number) {
    uint64_t rounds = scaled(200);
    for (uint64_t i = 0; i < rounds; i++) {
        sums[number] = churn(sums[number] + number, 1000);
        swapcontext(&contexts[number], number + 1 < COROUTINES ? &contexts[number + 1] : &home);
    }
}
static volatile uint64_t diverted;
static NOINLINE void other_way(void) { diverted++; }
static ucontext_t resume;
static void redirect(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)info;
    ucontext_t *machine = context;
    machine->uc_mcontext.gregs[REG_R12] ^= 0x55; /* a register the interrupted code holds */
}
static NOINLINE uint64_t with_register(uint64_t x) {
    uint64_t pid = getpid();
    register uint64_t held asm("r12") = x;
    asm volatile("mov $62, %%eax\n mov %1, %%rdi\n mov $10, %%esi\n syscall\n" : "+r"(held) : "r"(pid) : "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc");
    return held;
}

int main(void) {
    for (int i = 0; i < COROUTINES; i++) {
        MUST(getcontext(&contexts[i]) == 0);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &home;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    uint64_t rounds = scaled(200);
    for (uint64_t i = 0; i < rounds; i++) MUST(swapcontext(&home, &contexts[0]) == 0);
    for (int i = 0; i < COROUTINES; i++) printf("%016lx\n", sums[i]);

    volatile uint64_t again = 0, sum = 0;
    MUST(getcontext(&resume) == 0);
    other_way();
    sum = churn(sum + again, 20000);
    if (++again < 30) setcontext(&resume);
    struct sigaction action = {.sa_sigaction = redirect, .sa_flags = SA_SIGINFO};
    MUST(sigaction(SIGUSR1, &action, 0) == 0);
    for (uint64_t i = 0; i < rounds * 5; i++) {
        MUST(with_register(i) == (i ^ 0x55));
        sum = churn(sum, 500);
    }
    printf("diverted %lu sum %016lx\n", diverted, sum);
    return 0;
}
