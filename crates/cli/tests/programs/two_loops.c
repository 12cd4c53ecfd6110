/* Two loops that take the same time: every step waits for the one before. One has 64 steps between its back-edges, so that
   a burst of as many checks records far more of its instructions. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STEP x = x * 6364136223846793005u + i;
#define EIGHT STEP STEP STEP STEP STEP STEP STEP STEP

__attribute__((noipa)) static uint64_t tight_loop(uint64_t n) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < n; i++) {
        STEP
    }
    return x;
}

__attribute__((noipa)) static uint64_t unrolled_loop(uint64_t n) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < n; i += 64) {
        EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT EIGHT
    }
    return x;
}

int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100, sum = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        sum += tight_loop(10000000);
        sum += unrolled_loop(10000000);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
