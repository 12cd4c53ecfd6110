/* Mutual recursion by tail calls, a hundred thousand deep: jumps into other functions, no returns in between. */
#include "common.h"

typedef uint64_t step(uint64_t left, uint64_t x);
static step red, green, blue;
static step *volatile indirect = red;

static NOINLINE uint64_t red(uint64_t left, uint64_t x) { return left ? green(left - 1, x * 3 + 1) : x; }
static NOINLINE uint64_t green(uint64_t left, uint64_t x) {
    if (left == 0) return x;
    return x & 8 ? blue(left - 1, x ^ (x >> 5)) : indirect(left - 1, x + 7);
}
static NOINLINE uint64_t blue(uint64_t left, uint64_t x) { return left ? red(left - 1, mix(x)) : x; }

int main(void) {
    uint64_t sum = 0, rounds = scaled(500);
    for (uint64_t i = 0; i < rounds; i++) {
        indirect = i % 3 == 0 ? blue : red;
        sum = mix(sum + red(100000, i));
    }
    printf("%016lx\n", sum);
    return 0;
}
