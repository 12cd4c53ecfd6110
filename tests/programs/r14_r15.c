/* Runs the forms of r14_r15_asm.S with many values and prints one digest per form, so that a difference names its instruction. */
#include "common.h"

struct form { const char *text; void (*run)(void); };
extern const struct form values[], bmi[], base14[], base15[];
extern struct {
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r14, r15, flags, rsp, spare[3];
} state;
extern uint64_t number[2];

static uint64_t memory[64] __attribute__((aligned(64)));
static uint64_t seed;

/* Addresses become offsets, so that the digest is the same in every run. */
static uint64_t plain(uint64_t value) { return value - (uintptr_t)memory < sizeof memory ? value - (uintptr_t)memory : value; }
static uint64_t next(void) { return seed = mix(seed); }

static void fill(void) {
    uint64_t *words = &state.rax;
    for (int i = 0; i < 11; i++) words[i] = next() >> next() % 60;
    state.flags = (next() & 0x8d5) | 0x202;
    number[0] = next(), number[1] = next();
    for (int i = 0; i < 64; i++) memory[i] = i % 7 == 0 ? 0x3ff0000000000000u + i : next() >> i;
}
static uint64_t collect(uint64_t digest) {
    uint64_t *words = &state.rax;
    for (int i = 0; i < 11; i++) digest = mix(digest ^ plain(words[i]));
    digest = mix(digest ^ (state.flags & 0xcd5) ^ state.rsp << 32);
    digest = mix(digest ^ plain(number[0])) ^ number[1];
    for (int i = 0; i < 64; i++) digest = mix(digest ^ plain(memory[i]));
    return digest;
}
static void run_all(const struct form *forms, int base, uint64_t rounds, const char *title, uint64_t *total) {
    for (const struct form *f = forms; f->text; f++) {
        uint64_t digest = 0;
        for (uint64_t i = 0; i < rounds; i++) {
            fill();
            uint64_t pointer = (uintptr_t)&memory[32], small = next() % 8;
            if (base == 14) state.r14 = pointer, state.r15 = small;
            if (base == 15) state.r15 = pointer, state.r14 = small;
            f->run();
            digest = collect(digest);
        }
        printf("%s %016lx %s\n", title, digest, f->text);
        *total = mix(*total ^ digest);
    }
}

int main(void) {
    uint64_t total = 0, rounds = scaled(100);
    __builtin_cpu_init();
    run_all(values, 0, rounds, "values", &total);
    if (__builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx2")) run_all(bmi, 0, rounds, "bmi", &total);
    else printf("bmi skipped: this processor has none\n");
    run_all(base14, 14, rounds, "base14", &total);
    run_all(base15, 15, rounds, "base15", &total);
    printf("total %016lx\n", total);
    return 0;
}
