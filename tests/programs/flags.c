/* Drives flags_asm.S and compares with what C computes. */
#include "common.h"
#include <cpuid.h>

uint64_t wide_add(uint64_t *sum, const uint64_t *addend, uint64_t limbs);
uint64_t wide_sub(uint64_t *sum, const uint64_t *subtrahend, uint64_t limbs);
uint64_t consumers(uint64_t a, uint64_t b), carried(uint64_t flags), mixed(uint64_t x, uint64_t rounds);
uint64_t two_chains(uint64_t a, uint64_t b, uint64_t rounds);

enum { LIMBS = 40 };

static int has_adx(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 19 & 1);
}
static uint64_t add_reference(uint64_t *sum, const uint64_t *addend) {
    unsigned __int128 carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (unsigned __int128)sum[i] + addend[i];
        sum[i] = carry;
        carry >>= 64;
    }
    return carry;
}

int main(void) {
    uint64_t x[LIMBS], y[LIMBS], z[LIMBS], hash[5] = {0}, rounds = scaled(5000);
    for (int i = 0; i < LIMBS; i++) x[i] = i % 3 ? ~0ul : mix(i), y[i] = mix(i * 7);
    for (uint64_t i = 0; i < rounds; i++) {
        memcpy(z, x, sizeof x);
        uint64_t carry = add_reference(z, y);
        MUST(wide_add(x, y, LIMBS) == carry && memcmp(x, z, sizeof x) == 0);
        MUST(wide_sub(z, y, LIMBS) == carry && wide_add(z, y, LIMBS) == carry && memcmp(x, z, sizeof x) == 0);
        hash[0] = mix(hash[0] ^ x[i % LIMBS]);
        y[i % LIMBS] = mix(y[i % LIMBS]);
        uint64_t a = mix(i), b = i % 5 ? mix(i + 1) >> i % 64 : a;
        hash[1] = mix(hash[1] ^ consumers(a, b));
        uint64_t flags = a & 0x8d5;
        MUST(carried(flags | 2) == flags);
        hash[2] += flags;
        hash[3] = mix(hash[3] ^ mixed(a, 30));
        if (i == 0 || hash[4]) hash[4] = has_adx() ? mix(hash[4] ^ two_chains(a, b, 20)) | 1 : 0;
    }
    printf("wide %016lx consumers %016lx carried %016lx mixed %016lx chains %016lx\n", hash[0], hash[1], hash[2], hash[3], hash[4]);
    return 0;
}
