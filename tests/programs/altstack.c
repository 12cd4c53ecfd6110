/* Signal handlers on an alternate stack, nested, each doing work of its own. */
#include "common.h"
#include <signal.h>

static char stack[64 * 1024];
static volatile uint64_t sum;
static volatile int on_stack, off_stack;

static void note_stack(void) {
    char here;
    if (&here >= stack && &here < stack + sizeof stack) on_stack++;
    else off_stack++;
}
static void inner(int signo) {
    note_stack();
    sum ^= churn(signo, 500);
}
static void outer(int signo) {
    note_stack();
    sum += churn(signo, 500);
    raise(SIGUSR2);
    sum += churn(sum, 500);
    stack_t now;
    MUST(sigaltstack(0, &now) == 0 && (now.ss_flags & SS_ONSTACK) && now.ss_sp == stack);
}

int main(void) {
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    MUST(sigaltstack(&alternate, 0) == 0);
    struct sigaction action = {.sa_handler = outer, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGUSR1, &action, 0) == 0);
    action.sa_handler = inner;
    MUST(sigaction(SIGUSR2, &action, 0) == 0);
    action.sa_flags = 0;
    MUST(sigaction(SIGURG, &action, 0) == 0);
    uint64_t own = 1, rounds = scaled(1000);
    for (uint64_t i = 0; i < rounds; i++) {
        own = churn(own, 3000);
        raise(SIGUSR1);
        if (i % 3 == 0) raise(SIGURG);
        stack_t now;
        MUST(sigaltstack(0, &now) == 0 && now.ss_flags == 0 && now.ss_sp == stack && now.ss_size == sizeof stack);
    }
    printf("on %d off %d own %016lx handlers %016lx\n", on_stack, off_stack, own, sum);
    return 0;
}
