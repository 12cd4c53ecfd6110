/* Sums of all kinds, by branches, flags, vectors and doubles, under signals at a rate that differs from run to run (SONDE_SIGNALS
 * gives it, in microseconds between two). Handlers use the same registers. */
#include "common.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile uint64_t handled;
static volatile double noise;

static void handler(int sig) {
    handled = handled * 3 + sig;
    noise = noise * 0.5 + handled % 7;
}

/* An interpreter: indirect jumps, with state in all kinds of registers. */
static NOINLINE uint64_t interpret(const uint8_t *code, uint64_t steps) {
    static const void *const target[] = {&&add, &&fold, &&count, &&scale, &&copy};
    uint64_t r = 1, m[16] = {0}, at = 0;
    double f = 1;
#define NEXT \
    do { \
        if (!steps--) return r + (uint64_t)(f * 1000) + m[3] + m[7]; \
        goto *target[code[at++ & 4095]]; \
    } while (0)
    NEXT;
add: r = r * 3 + 1; NEXT;
fold: r ^= r >> 7; m[r & 15] += r; NEXT;
count: r += m[3]++; NEXT;
scale: f = f * 1.0000001 + 0.5; if (f > 1e6) f = 1; NEXT;
copy: memcpy(m + 8, m, 32); r -= m[9]; NEXT;
}

/* Constants stay in vector registers through a loop. */
static NOINLINE uint64_t constants(uint64_t rounds) {
    static uint64_t in[32] __attribute__((aligned(16))), out[32] __attribute__((aligned(16)));
    for (int i = 0; i < 32; i++) in[i] = mix(i);
    asm volatile("movaps (%1), %%xmm0; movaps 16(%1), %%xmm1; movaps 112(%1), %%xmm7; movaps 240(%1), %%xmm15;"
                 "1: dec %0; jnz 1b;"
                 "movaps %%xmm0, (%2); movaps %%xmm1, 16(%2); movaps %%xmm7, 112(%2); movaps %%xmm15, 240(%2);"
                 : "+r"(rounds) : "r"(in), "r"(out) : "memory", "cc", "xmm0", "xmm1", "xmm7", "xmm15");
    MUST(rounds == 0);
    return out[0] ^ out[3] ^ out[14] ^ out[31];
}

/* Comparisons whose flags live over a load, and additions that carry. */
static NOINLINE uint64_t flags(uint64_t rounds) {
    static uint64_t memory[4] = {5, 6, 7, 8};
    uint64_t sum = 0, r, m;
    for (uint64_t i = 0; i < rounds; i++) {
        asm volatile("xor %%eax, %%eax; test $1, %2; mov %3, %1; setnz %%al" : "=&a"(r), "=&r"(m) : "r"(i), "m"(memory[i & 3]) : "cc");
        MUST(r == (i & 1));
        double a = i & 1 ? 1 : 2, b = 1.5;
        asm volatile("xor %%eax, %%eax; comisd %2, %1; seta %%al" : "=&a"(r) : "x"(a), "x"(b) : "cc");
        MUST(r == !(i & 1));
        asm volatile("mov %1, %0; add $-1, %0; adc $0, %0" : "=&r"(r) : "r"(i) : "cc");
        sum = sum * 31 + r + m;
    }
    return sum;
}

int main(void) {
    const char *given = getenv("SONDE_SIGNALS");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t apart = given ? strtoull(given, 0, 10) : 200 + mix(now.tv_nsec) % 3000;
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, apart}, {0, apart}}, never = {{0, 0}, {0, 0}};
    MUST(apart > 0 && apart < 1000000 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    uint8_t code[4096];
    for (int i = 0; i < 4096; i++) code[i] = mix(i) % 5;
    uint64_t sums[4] = {0};
    for (uint64_t i = 0; i < scaled(20); i++) {
        sums[0] = sums[0] * 31 + interpret(code, 100000 + i);
        sums[1] ^= mix(constants(100000) + i);
        sums[2] = sums[2] * 31 + flags(20000);
        sums[3] = churn(sums[3], 20000);
    }
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
    printf("%016lx %016lx %016lx %016lx\n", sums[0], sums[1], sums[2], sums[3]);
    return 0;
}
