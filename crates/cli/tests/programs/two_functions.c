/* Two functions that share the time as they are told at compile time: FIRST and SECOND parts. */
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned sink;

__attribute__((noinline)) unsigned first(unsigned n) {
    unsigned x = sink + 1;
    for (unsigned i = 0; i < n; i++) x = x * 1664525u + 1013904223u + (x >> 7);
    return x;
}

__attribute__((noinline)) unsigned second(unsigned n) {
    unsigned x = sink + 1;
    for (unsigned i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    return x;
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? atoi(argv[1]) : 1000;
    for (unsigned i = 0; i < rounds; i++) {
        sink += first(FIRST * 1000);
        sink += second(SECOND * 1000);
    }
    printf("%u\n", sink);
}
