/* Dense switches compiled to jump tables, nested, and calls through tables of functions. */
#include "common.h"

static NOINLINE uint64_t pick(uint64_t op, uint64_t x) {
    switch (op) {
    case 0: return x + 1;
    case 1: return x * 5;
    case 2: return x ^ 0x5555;
    case 3: return x >> 3;
    case 4: return ~x;
    case 5: return x - op;
    case 6: return x << 2 | 1;
    case 7: return mix(x);
    case 8: return x | 12;
    case 9: return x & 0xffffffffffu;
    case 10:
        switch (x & 7) {
        case 0: return x + 100;
        case 1: return x + 203;
        case 2: return x * 3;
        case 3: return x ^ 77;
        case 4: return x - 9;
        case 5: return x << 1;
        case 6: return x >> 1;
        default: return x / 3;
        }
    case 11: return x % 1000003;
    default: return 42;
    }
}
#define FUNCTION(n) static NOINLINE uint64_t f##n(uint64_t x) { return pick((x + n) % 13, x * (n + 1)); }
FUNCTION(0) FUNCTION(1) FUNCTION(2) FUNCTION(3) FUNCTION(4) FUNCTION(5) FUNCTION(6) FUNCTION(7)
static uint64_t (*const table[8])(uint64_t) = {f0, f1, f2, f3, f4, f5, f6, f7};

int main(void) {
    uint64_t x = 1, rounds = scaled(6000000);
    for (uint64_t i = 0; i < rounds; i++) x = pick(i % 14, table[x & 7](x + i));
    printf("%016lx\n", x);
    return 0;
}
