/* Threads on the smallest stacks that libc allows, most of them in use, with a pattern that shows foreign writes. */
#include "common.h"
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>

static NOINLINE uint64_t descend(uint64_t seed, int depth) {
    volatile uint64_t frame[16];
    for (int i = 0; i < 16; i++) frame[i] = seed + i;
    uint64_t below = depth ? descend(mix(seed), depth - 1) : churn(seed, 400);
    for (int i = 0; i < 16; i++) MUST(frame[i] == seed + i);
    return below ^ frame[depth & 15];
}
static void *thread(void *seed) {
    uint64_t sum = (uintptr_t)seed, rounds = scaled(800);
    for (uint64_t i = 0; i < rounds; i++) sum = descend(sum, 28);
    return (void *)sum;
}

int main(void) {
    enum { THREADS = 16, SIZE = 16384 };
    pthread_t threads[THREADS];
    pthread_attr_t small;
    MUST(pthread_attr_init(&small) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        char *stack = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(stack != MAP_FAILED && pthread_attr_setstack(&small, stack, SIZE) == 0);
        MUST(pthread_create(&threads[i], &small, thread, (void *)i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *sum;
        MUST(pthread_join(threads[i], &sum) == 0);
        printf("%d %016lx\n", i, (uint64_t)sum);
    }
    return 0;
}
