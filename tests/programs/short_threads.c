/* A thousand threads that live for a moment, some of them detached, cancelled or ended by pthread_exit. */
#include "common.h"
#include <pthread.h>
#include <stdatomic.h>

static _Thread_local uint64_t private = 5;
static atomic_uint detached_done;

static void *brief(void *seed) {
    private += churn((uintptr_t)seed, 300 + (uintptr_t)seed % 200);
    if ((uintptr_t)seed % 5 == 0) pthread_exit((void *)private);
    return (void *)private;
}
static void *detached(void *seed) {
    churn((uintptr_t)seed, 100);
    atomic_fetch_add(&detached_done, 1);
    return 0;
}
static void *forever(void *seed) {
    uint64_t sum = (uintptr_t)seed;
    while (sum != 1) {
        sum = churn(sum, 50) | 2;
        pthread_testcancel();
    }
    return 0;
}

int main(void) {
    uint64_t sum = 0, total = scaled(1000);
    enum { AT_ONCE = 8 };
    pthread_attr_t loose;
    MUST(pthread_attr_init(&loose) == 0 && pthread_attr_setdetachstate(&loose, PTHREAD_CREATE_DETACHED) == 0);
    unsigned loose_count = 0;
    for (uint64_t i = 0; i < total; i += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (uint64_t k = 0; k < AT_ONCE; k++) MUST(pthread_create(&threads[k], 0, brief, (void *)(i + k)) == 0);
        pthread_t other;
        if (i % 64 == 0) {
            MUST(pthread_create(&other, &loose, detached, (void *)i) == 0);
            loose_count++;
            MUST(pthread_create(&other, 0, forever, (void *)i) == 0);
        }
        for (int k = 0; k < AT_ONCE; k++) {
            void *result;
            MUST(pthread_join(threads[k], &result) == 0);
            sum = mix(sum ^ (uint64_t)result);
        }
        if (i % 64 == 0) {
            void *result;
            MUST(pthread_cancel(other) == 0 && pthread_join(other, &result) == 0 && result == PTHREAD_CANCELED);
        }
    }
    while (atomic_load(&detached_done) < loose_count) usleep(100);
    printf("threads %lu detached %u sum %016lx\n", total, loose_count, sum);
    return 0;
}
