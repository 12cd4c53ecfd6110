/* What the hostile programs share: a scale for the amount of work, a mixing function for checksums,
 * and a checker. Outputs must not depend on addresses, time or scheduling: two runs print the same bytes. */
#ifndef SONDE_HOSTILE_COMMON_H
#define SONDE_HOSTILE_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, unused))
#define UNUSED __attribute__((unused))

/* Status of a program that found something wrong by itself; no program uses it for anything else. */
enum { BROKEN = 99 };

/* Write, not printf: also usable in handlers and after odd things happened to stdio. */
UNUSED static void broken(const char *what, const char *file, int line) {
    char text[256];
    int n = snprintf(text, sizeof text, "%s:%d: broken: %s (errno %d)\n", file, line, what, errno);
    if (write(1, text, n) != n) _exit(BROKEN - 1);
    _exit(BROKEN);
}
#define MUST(condition) ((condition) ? (void)0 : broken(#condition, __FILE_NAME__, __LINE__))

/* n scaled by SONDE_WORK percent, at least 1. The tests leave it alone, long stress runs raise it. */
UNUSED static uint64_t scaled(uint64_t n) {
    const char *percent = getenv("SONDE_WORK");
    uint64_t result = percent ? n * strtoull(percent, 0, 10) / 100 : n;
    return result ? result : 1;
}

UNUSED static inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static NOINLINE uint64_t churn_even(uint64_t x) { return x * 3 + (x >> 7); }
static NOINLINE uint64_t churn_odd(uint64_t x) { return mix(x) - 1; }

/* Calls, returns, branches that nobody can predict, loads and stores: a place for bursts to land in. */
static NOINLINE uint64_t churn(uint64_t seed, uint64_t rounds) {
    uint64_t table[16] = {0}, (*const step[2])(uint64_t) = {churn_even, churn_odd};
    for (uint64_t i = 0; i < rounds; i++) {
        seed = step[(seed >> 13) & 1](seed + i);
        table[seed & 15] += seed >> 3;
        if (table[i & 15] & 64) seed ^= table[(i + 5) & 15];
    }
    for (int i = 0; i < 16; i++) seed = mix(seed ^ table[i]);
    return seed;
}

#endif
