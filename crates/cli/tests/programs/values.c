// Loads whose values are known by construction: one instruction each, between two labels that are printed.
#include <stdio.h>

#ifndef COUNT
#define COUNT 20000ul
#endif
extern char load_invariant[], load_semi[], load_glacial[], load_random[], load_wide[];
static volatile unsigned long cell;
static unsigned long pair[2] __attribute__((aligned(16)));

#define LOADER(name)                                                         \
    static __attribute__((noinline)) unsigned long name(void) {              \
        unsigned long value;                                                 \
        __asm__ volatile(".globl load_" #name "\nload_" #name ":\n\tmovq (%1), %0" \
                         : "=r"(value) : "r"(&cell) : "memory");             \
        return value;                                                        \
    }
LOADER(invariant)
LOADER(semi)
LOADER(glacial)
LOADER(random)

static __attribute__((noinline)) void wide(void) {
    __asm__ volatile(".globl load_wide\nload_wide:\n\tmovdqa (%0), %%xmm0" : : "r"(pair) : "memory", "xmm0");
}

int main(void) {
    printf("%p %p %p %p %p\n", load_invariant, load_semi, load_glacial, load_random, load_wide);
    fflush(stdout);
    unsigned long sum = 0, state = 12345;
    for (unsigned long i = 0; i < COUNT; i++) {
        cell = 0x1122334455667788;
        sum += invariant();
        state = state * 6364136223846793005 + 1442695040888963407;
        cell = i % 10 < 7 ? 42 : i;
        sum += semi();
        cell = 1000 + i / (COUNT / 4);
        sum += glacial();
        cell = state;
        sum += random();
        pair[0] = 7;
        pair[1] = i % 2;
        wide();
    }
    printf("%lu\n", sum);
    return 0;
}
