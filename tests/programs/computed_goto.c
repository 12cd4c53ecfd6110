/* A small interpreter with computed goto, as language run-times have one. */
#include "common.h"

static uint64_t run(const uint8_t *code, uint64_t budget) {
    static const void *const labels[] = {&&add, &&sub, &&mul, &&shift, &&swap, &&jump_if, &&load, &&store};
    uint64_t a = 1, b = 2, memory[64] = {0};
    const uint8_t *pc = code;
#define NEXT if (budget-- == 0) return mix(a ^ b); goto *labels[*pc++ & 7]
    NEXT;
add: a += b; NEXT;
sub: b -= a >> 3; NEXT;
mul: a *= b | 1; NEXT;
shift: a ^= a >> 17; NEXT;
swap: { uint64_t t = a; a = b; b = t; } NEXT;
jump_if: pc = a & 4 ? code + (b & 255) : pc; if (pc >= code + 1000) pc = code; NEXT;
load: a ^= memory[b & 63]; NEXT;
store: memory[a & 63] += b; if (pc >= code + 900) pc = code + 3; NEXT;
}

int main(void) {
    static uint8_t code[1100];
    uint64_t seed = 9;
    for (int i = 0; i < 1100; i++) code[i] = (seed = mix(seed)) >> 11;
    for (int i = 800; i < 1100; i += 2) code[i] = 5 + (i % 4 != 0) * 2;
    for (int i = 0; i < 4; i++) printf("%016lx\n", run(code + i, scaled(10000000)));
    return 0;
}
