/* Handlers for every signal that can have one; only those that the program sends itself may arrive. */
#include "common.h"
#include <signal.h>
#include <sys/syscall.h>

static volatile uint64_t seen[65];
static void handler(int signo) { seen[signo]++; }

/* The kernel's own structure: libc refuses handlers for its private signals 32 and 33, the kernel does not. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
void restore_frame(void);
asm("restore_frame: mov $15, %eax\n syscall");

int main(void) {
    int refused = 0;
    struct kernel_action action = {handler, 0x04000000 | SA_RESTART, restore_frame, 0};
    for (int s = 1; s <= 64; s++)
        if (syscall(SYS_rt_sigaction, s, &action, 0, 8) != 0) refused++;
    uint64_t sum = 0, rounds = scaled(300), sent = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 12000);
        int s = i % 64 + 1;
        if (s == SIGKILL || s == SIGSTOP) continue;
        MUST(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), s) == 0);
        sent++;
    }
    uint64_t got = 0;
    for (int s = 1; s <= 64; s++) {
        uint64_t mine = rounds / 64 + (s <= (int)(rounds % 64));
        if (s == SIGKILL || s == SIGSTOP) mine = 0;
        if (seen[s] != mine) printf("signal %d: %lu times instead of %lu\n", s, seen[s], mine);
        got += seen[s];
    }
    for (int s = 1; s <= 64; s++) { /* nobody changed them behind our back */
        struct kernel_action now = {0};
        if (syscall(SYS_rt_sigaction, s, 0, &now, 8) == 0 && now.handler != handler && s != SIGKILL && s != SIGSTOP)
            printf("signal %d has another handler\n", s);
    }
    printf("refused %d sent %lu unexpected %ld sum %016lx\n", refused, sent, (long)(got - sent), sum);
    return 0;
}
