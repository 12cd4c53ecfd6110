// Two functions by turns: one follows pointers through more memory than caches hold, one computes. Tells at the end which
// share of the time the first one took, by the processor's own clock.
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

// The clock can be read before what comes earlier is done: chains of loads are what processors run ahead of.
static unsigned long long now(void) {
    _mm_lfence();
    unsigned long long t = __rdtsc();
    _mm_lfence();
    return t;
}

enum { NODES = 1 << 22 };
static size_t *next;

__attribute__((noinline)) static size_t chase(size_t at) {
    for (int i = 0; i < 40; i++)
        at = next[at];
    return at;
}

__attribute__((noinline)) static unsigned long compute(unsigned long x) {
    for (int i = 0; i < 1500; i++)
        x = (x ^ i) + (x >> 1);
    return x;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    next = malloc(sizeof *next * NODES);
    for (size_t i = 0; i < NODES; i++)
        next[i] = i;
    unsigned long long random = 1;
    for (size_t i = NODES - 1; i > 0; i--) { // one cycle through all
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t j = (random >> 20) % i, t = next[i];
        next[i] = next[j];
        next[j] = t;
    }
    size_t at = 0;
    unsigned long x = 1;
    unsigned long long waited = 0, computed = 0;
    for (long r = 0; r < rounds; r++) {
        unsigned long long a = now();
        at = chase(at);
        unsigned long long b = now();
        x = compute(x);
        waited += b - a;
        computed += now() - b;
    }
    printf("%.6f %lu\n", (double)waited / (double)(waited + computed), x + at);
}
