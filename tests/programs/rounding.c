/* x87 and SSE control words: rounding modes, precision control, sticky flags, denormals; all must stay the program's. */
#include "common.h"
#include <fenv.h>
#include <xmmintrin.h>

static const int modes[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

static NOINLINE double sse(double x, int n) {
    volatile double sum = 0;
    for (int i = 1; i < n; i++) sum = sum + x / i;
    return sum;
}
static NOINLINE long double x87(long double x, int n) {
    volatile long double sum = 0;
    for (int i = 1; i < n; i++) sum = sum + x / i;
    return sum;
}
static NOINLINE uint64_t words(void) {
    uint16_t control, status;
    asm volatile("fnstcw %0\n fnstsw %1" : "=m"(control), "=m"(status));
    return (uint64_t)_mm_getcsr() << 32 | (uint64_t)control << 16 | status;
}
/* A value stays on the x87 stack over calls that do other work. */
static NOINLINE double stacked(uint64_t seed) {
    uint64_t work = 0;
    double result;
    asm volatile("fldpi\n fld1" ::: "memory");
    for (int i = 0; i < 50; i++) work += churn_odd(seed + i);
    asm volatile("faddp\n fstpl %0" : "=m"(result)::"memory");
    return result + (double)(work % 2);
}

int main(void) {
    uint64_t rounds = scaled(900), sum = 0;
    for (uint64_t i = 0; i < rounds; i++)
        for (int m = 0; m < 4; m++) {
            MUST(fesetround(modes[m]) == 0);
            double s = sse(0.1 + i, 2000);
            long double x = x87(0.1L + i, 1000);
            uint64_t word;
            memcpy(&word, &s, 8);
            sum = mix(sum ^ word);
            memcpy(&word, &x, 8);
            sum = mix(sum ^ word ^ words());
            MUST(fegetround() == modes[m]);
            if (i == 0) printf("mode %d %.17g %.20Lg %016lx\n", m, s, x, words());
            feclearexcept(FE_ALL_EXCEPT);
        }
    MUST(fesetround(FE_TONEAREST) == 0);
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush denormals to zero */
    volatile double tiny = 1e-310, one = 1, flushed = tiny * one;
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
    volatile double kept = tiny * one;
    uint16_t single = 0x007f, usual = 0x037f;
    asm volatile("fldcw %0" ::"m"(single));
    long double coarse = x87(1, 100);
    MUST((words() >> 16 & 0xffff) == single);
    asm volatile("fldcw %0" ::"m"(usual));
    for (uint64_t i = 0; i < rounds * 20; i++) sum = mix(sum + (uint64_t)stacked(i));
    printf("flushed %g kept %g coarse %.20Lg sum %016lx\n", flushed, kept, coarse, sum);
    return 0;
}
