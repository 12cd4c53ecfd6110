/* Half of the work in one thread, half in threads that each live shorter than the time between two bursts; and what part of its
   CPU time the program itself finds it spent in those. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) uint64_t long_life(long rounds) {
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < rounds; i++)
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

__attribute__((noinline)) uint64_t short_life(long rounds) {
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < rounds; i++)
        x ^= x << 11, x ^= x >> 5, x ^= x << 19;
    return x;
}

static void *work(void *rounds) {
    return (void *)short_life((long)rounds);
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 200, rounds = argc > 2 ? atol(argv[2]) : 1000000;
    double in_threads = 0, all = now();
    uint64_t sum = 0;
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        void *result;
        double begin = now();
        if (pthread_create(&thread, 0, work, (void *)rounds) || pthread_join(thread, &result))
            return 1;
        in_threads += now() - begin;
        sum += (uint64_t)result + long_life(rounds);
    }
    all = now() - all;
    printf("%.4f %llu %.3f\n", in_threads / all, (unsigned long long)sum, all);
    return 0;
}
