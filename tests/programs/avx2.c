/* AVX2 integer and float arithmetic against plain C; upper halves of ymm registers live across calls. */
#include "common.h"
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma"), noinline))

static uint64_t scalar(const uint32_t *a, const uint32_t *b, int n) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += (uint32_t)(a[i] * b[i] ^ (a[i] >> 3)) + (uint64_t)(a[i] > b[i] ? a[i] - b[i] : 0);
    return sum;
}
AVX2 static uint64_t vector(const uint32_t *a, const uint32_t *b, int n) {
    __m256i low = _mm256_setzero_si256(), high = low;
    for (int i = 0; i < n; i += 8) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(a + i)), y = _mm256_loadu_si256((const __m256i *)(b + i));
        __m256i v = _mm256_xor_si256(_mm256_mullo_epi32(x, y), _mm256_srli_epi32(x, 3));
        __m256i d = _mm256_sub_epi32(_mm256_max_epu32(x, y), y);
        low = _mm256_add_epi64(low, _mm256_add_epi64(_mm256_unpacklo_epi32(v, _mm256_setzero_si256()), _mm256_unpacklo_epi32(d, _mm256_setzero_si256())));
        high = _mm256_add_epi64(high, _mm256_add_epi64(_mm256_unpackhi_epi32(v, _mm256_setzero_si256()), _mm256_unpackhi_epi32(d, _mm256_setzero_si256())));
    }
    uint64_t lanes[8], sum = 0;
    _mm256_storeu_si256((__m256i *)lanes, low);
    _mm256_storeu_si256((__m256i *)(lanes + 4), high);
    for (int i = 0; i < 8; i++) sum += lanes[i];
    return sum;
}
/* All sixteen registers hold a pattern over a call, an indirect jump and a loop; none may change. */
AVX2 static int registers_survive(uint64_t seed) {
    uint64_t in[16][4], out[16][4], (*volatile call)(uint64_t) = churn_even;
    for (int i = 0; i < 64; i++) in[i / 4][i % 4] = mix(seed + i);
#define EACH(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#define LOAD(n) "vmovdqu " #n "*32(%[in]), %%ymm" #n "\n"
#define SAVE(n) "vmovdqu %%ymm" #n ", " #n "*32(%[out])\n"
#define NAME(n) "xmm" #n,
    uint64_t *from = &in[0][0], *into = &out[0][0];
    asm volatile("lea -128(%%rsp), %%rsp\n" EACH(LOAD) "mov $200, %%r12d\n 1: mov %%r12, %%rdi\n call *%[call]\n dec %%r12d\n jnz 1b\n" EACH(SAVE) "lea 128(%%rsp), %%rsp\n"
                 :
                 : [in] "b"(from), [out] "r"(into), [call] "r"(call)
                 : EACH(NAME) "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
    return memcmp(in, out, sizeof in) == 0;
}
AVX2 static double fused(uint64_t seed, int n) {
    __m256d sum = _mm256_setzero_pd();
    for (int i = 0; i < n; i++) {
        __m256d x = _mm256_set_pd(i, i + 0.5, i + 0.25, seed % 9);
        sum = _mm256_fmadd_pd(x, _mm256_set1_pd(1.0 / 3), _mm256_sqrt_pd(_mm256_add_pd(sum, x)));
        __m256i index = _mm256_set_epi64x(3, 1, 2, 0);
        sum = _mm256_i64gather_pd((const double *)&sum, index, 8);
    }
    double lanes[4];
    _mm256_storeu_pd(lanes, sum);
    return lanes[0] + lanes[1] * 2 + lanes[2] * 3 + lanes[3] * 4;
}

int main(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("skipped: this processor has no AVX2\n");
        return 0;
    }
    enum { N = 1024 };
    static uint32_t a[N], b[N];
    uint64_t sum = 0, rounds = scaled(6000);
    double total = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        for (int k = 0; k < N; k++) a[k] = mix(i * N + k), b[k] = a[k] * 2654435761u >> (k & 15);
        uint64_t v = vector(a, b, N);
        MUST(v == scalar(a, b, N));
        MUST(registers_survive(v));
        sum = mix(sum + v);
        total += fused(i, 100);
    }
    printf("%016lx %.12g\n", sum, total);
    return 0;
}
