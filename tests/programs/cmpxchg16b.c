/* The 16-byte compare-exchange: a two-word counter shared by threads, and its failing path. */
#include "common.h"
#include <pthread.h>

static struct { uint64_t low, high; } __attribute__((aligned(16))) pair;

static int exchange(uint64_t *low, uint64_t *high, uint64_t new_low, uint64_t new_high) {
    uint8_t done;
    asm volatile("lock cmpxchg16b %0\n sete %1"
                 : "+m"(pair), "=q"(done), "+a"(*low), "+d"(*high)
                 : "b"(new_low), "c"(new_high)
                 : "cc", "memory");
    return done;
}
static void *worker(void *step) {
    uint64_t failed = 0, rounds = scaled(400000);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t low = 0, high = 0; /* a wrong guess first: it loads the current pair */
        while (!exchange(&low, &high, low + (uintptr_t)step, high + 1)) failed++;
    }
    return (void *)failed;
}

int main(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++) MUST(pthread_create(&threads[i], 0, worker, (void *)(i + 1)) == 0);
    uint64_t failed = 0;
    for (int i = 0; i < 3; i++) {
        void *one;
        MUST(pthread_join(threads[i], &one) == 0);
        failed += (uintptr_t)one;
    }
    MUST(failed >= 3 * scaled(400000) - 1);
    uint64_t low = 1, high = 1;
    MUST(!exchange(&low, &high, 5, 6) && low == pair.low && high == pair.high);
    printf("%lu %lu\n", pair.low, pair.high);
    return 0;
}
