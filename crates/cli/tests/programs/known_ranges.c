/* Loads whose number, place and value are known: zeros, small numbers, and lines that are in no cache. */
#include <stdint.h>
#include <stdlib.h>

enum { ROUNDS = 200000, LINES = 262144 };

uint64_t zeros[64], numbers[64];
static volatile uint64_t sink;

__attribute__((noinline)) static void load_zeros(void) {
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t value;
        __asm__ volatile("mov (%1), %0" : "=r"(value) : "r"(&zeros[i & 63]));
        __asm__ volatile("" : : "r"(value));
    }
}

__attribute__((noinline)) static void load_numbers(void) {
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t value;
        __asm__ volatile("mov (%1), %0" : "=r"(value) : "r"(&numbers[i & 63]));
        __asm__ volatile("" : : "r"(value));
    }
}

__attribute__((noinline)) static void load_lines(uint64_t *memory) {
    for (long i = 0; i < LINES; i++) {
        uint64_t value;
        __asm__ volatile("mov (%1), %0" : "=r"(value) : "r"(&memory[8 * i]));
        __asm__ volatile("" : : "r"(value));
    }
}

int main(void) {
    uint64_t *memory = malloc(64L * LINES);
    for (long i = 0; i < LINES; i++) memory[8 * i] = 0xfeedfacecafebeef;
    for (int i = 0; i < 64; i++) numbers[i] = 15231;
    load_zeros();
    load_numbers();
    load_lines(memory);
    sink = memory[0];
    return 0;
}
