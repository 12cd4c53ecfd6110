/* More threads at once than there are log buffers, all of which sleep until the last one has come: whoever records them
 * must not let a thread that runs wait for what sleeping ones hold. */
#include "common.h"
#include <pthread.h>

enum { THREADS = 120, ROUNDS = 3 };
static pthread_barrier_t all_here;
static unsigned sums[THREADS];

static void *work(void *arg)
{
    unsigned *sum = arg;
    for (int round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2000; i++)
            *sum = *sum * 31 + i;
        pthread_barrier_wait(&all_here);
    }
    return 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_here, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        sums[i] = i;
        if (pthread_create(&threads[i], 0, work, &sums[i]))
            return 1;
    }
    unsigned total = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        total ^= sums[i];
    }
    printf("%u\n", total);
    return 0;
}
