/* Two kinds of work by turns, and what part of its CPU time the program itself finds it spent on the first: one writes
   and reads memory with every instruction, so that its bursts are large and take long to read, the other hardly. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t table[4096];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void memory_phase(long rounds) {
    for (long i = 0; i < rounds; i++)
        table[(i * 7) & 4095] += table[i & 4095];
}

__attribute__((noinline)) uint64_t register_phase(long rounds) {
    uint64_t x = 88172645463325252u;
    for (long i = 0; i < rounds; i++)
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x;
}

int main(int argc, char **argv) {
    long turns = argc > 1 ? atol(argv[1]) : 100, rounds = argc > 2 ? atol(argv[2]) : 1000000;
    double memory = 0, all = now();
    uint64_t sum = 0;
    for (long i = 0; i < turns; i++) {
        double begin = now();
        memory_phase(rounds);
        memory += now() - begin;
        sum += register_phase(rounds);
    }
    all = now() - all;
    printf("%.4f %llu %.3f\n", memory / all, (unsigned long long)sum, all);
    return 0;
}
