/* Runs out of stack again and again; the handler on the alternate stack sees it and jumps out. In main and in threads. */
#include "common.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

static _Thread_local sigjmp_buf back;
static _Thread_local volatile int overflows;

static void handler(int signo) {
    overflows++;
    siglongjmp(back, signo);
}
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static NOINLINE uint64_t endless(uint64_t x) {
    volatile char frame[2000];
    frame[x % 2000] = x;
    return endless(mix(x)) + frame[(x + 1) % 2000] + (x == 12345 ? 0 : 1);
}
static void *overflow(void *rounds) {
    stack_t alternate = {.ss_sp = malloc(32768), .ss_size = 32768};
    MUST(sigaltstack(&alternate, 0) == 0);
    volatile uint64_t sum = 0;
    for (volatile uintptr_t i = 0; i < (uintptr_t)rounds; i++) {
        if (sigsetjmp(back, 1) == 0) sum += endless(i);
        sum = churn(sum, 20000);
    }
    MUST(overflows == (int)(uintptr_t)rounds);
    return (void *)sum;
}

int main(void) {
    struct rlimit limit;
    MUST(getrlimit(RLIMIT_STACK, &limit) == 0);
    if (limit.rlim_cur > 1 << 20) { /* a smaller stack, so that filling it takes less time */
        limit.rlim_cur = 1 << 20;
        MUST(setrlimit(RLIMIT_STACK, &limit) == 0);
    }
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    MUST(sigaction(SIGSEGV, &action, 0) == 0);
    uint64_t rounds = scaled(100);
    pthread_t threads[2];
    pthread_attr_t attributes;
    MUST(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 256 * 1024) == 0);
    for (int i = 0; i < 2; i++) MUST(pthread_create(&threads[i], &attributes, overflow, (void *)rounds) == 0);
    printf("main %016lx\n", (uint64_t)overflow((void *)rounds));
    for (int i = 0; i < 2; i++) {
        void *sum;
        MUST(pthread_join(threads[i], &sum) == 0);
        printf("thread %016lx\n", (uint64_t)sum);
    }
    return 0;
}
