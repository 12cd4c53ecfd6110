/* Threads that block every signal, next to one that does not: work goes on, the masks stay as they are. */
#include "common.h"
#include <pthread.h>
#include <signal.h>

static void *masked(void *seed) {
    sigset_t all, now;
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_SETMASK, &all, 0) == 0);
    uint64_t sum = (uintptr_t)seed, rounds = scaled(150);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 20000);
        MUST(pthread_sigmask(SIG_BLOCK, 0, &now) == 0);
        for (int s = 1; s < 32; s++)
            if (s != SIGKILL && s != SIGSTOP) MUST(sigismember(&now, s));
        MUST(sigpending(&now) == 0);
        for (int s = 1; s < 65; s++) MUST(sigismember(&now, s) != 1);
    }
    return (void *)sum;
}
static void *open_to_all(void *seed) {
    uint64_t sum = (uintptr_t)seed, rounds = scaled(150);
    for (uint64_t i = 0; i < rounds; i++) {
        sum = churn(sum, 20000);
        sigset_t now;
        MUST(pthread_sigmask(SIG_BLOCK, 0, &now) == 0);
        for (int s = 1; s < 65; s++) MUST(sigismember(&now, s) != 1);
    }
    return (void *)sum;
}

int main(void) {
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        MUST(pthread_create(&threads[i], 0, i == 3 ? open_to_all : masked, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++) {
        void *sum;
        MUST(pthread_join(threads[i], &sum) == 0);
        printf("thread %d %016lx\n", i, (uint64_t)sum);
    }
    return 0;
}
