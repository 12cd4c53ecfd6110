/* Every rep-prefixed string instruction, in all sizes, forward and backward, with counts from zero up. */
#include "common.h"

enum { SIZE = 4096 };
static uint8_t from[SIZE + 64], to[SIZE + 64];

#define MOVE(name, insn, dir)                                                                       \
    static NOINLINE void name(void *d, const void *s, uint64_t n) {                                  \
        asm volatile(dir "\n rep " insn "\n cld" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc");       \
        MUST(n == 0);                                                                                \
    }
#define STORE(name, insn, dir)                                                                      \
    static NOINLINE void name(void *d, uint64_t value, uint64_t n) {                                 \
        asm volatile(dir "\n rep " insn "\n cld" : "+D"(d), "+c"(n) : "a"(value) : "memory", "cc");  \
        MUST(n == 0);                                                                                \
    }
/* Scans and compares leave the rest of the count and the flags: both are results. */
#define SCAN(name, insn, dir)                                                                       \
    static NOINLINE uint64_t name(const void *d, uint64_t value, uint64_t n) {                       \
        uint8_t zero, carry;                                                                         \
        asm volatile(dir "\n cmp %%rcx, %%rcx\n " insn "\n sete %2\n setc %3\n cld"                  \
                     : "+D"(d), "+c"(n), "=q"(zero), "=q"(carry)                                     \
                     : "a"(value)                                                                    \
                     : "memory", "cc");                                                              \
        return n * 4 + zero * 2 + carry;                                                             \
    }
#define COMPARE(name, insn, dir)                                                                    \
    static NOINLINE uint64_t name(const void *d, const void *s, uint64_t n) {                        \
        uint8_t zero, carry;                                                                         \
        asm volatile(dir "\n cmp %%rcx, %%rcx\n " insn "\n sete %3\n setc %4\n cld"                  \
                     : "+D"(d), "+S"(s), "+c"(n), "=q"(zero), "=q"(carry)::"memory", "cc");          \
        return n * 4 + zero * 2 + carry;                                                             \
    }
MOVE(movsb_up, "movsb", "cld") MOVE(movsw_up, "movsw", "cld") MOVE(movsl_up, "movsl", "cld") MOVE(movsq_up, "movsq", "cld")
MOVE(movsb_down, "movsb", "std") MOVE(movsw_down, "movsw", "std") MOVE(movsl_down, "movsl", "std") MOVE(movsq_down, "movsq", "std")
STORE(stosb_up, "stosb", "cld") STORE(stosw_up, "stosw", "cld") STORE(stosl_up, "stosl", "cld") STORE(stosq_up, "stosq", "cld")
STORE(stosb_down, "stosb", "std") STORE(stosw_down, "stosw", "std") STORE(stosl_down, "stosl", "std") STORE(stosq_down, "stosq", "std")
SCAN(scasb_up, "repne scasb", "cld") SCAN(scasw_up, "repne scasw", "cld") SCAN(scasl_up, "repe scasl", "cld") SCAN(scasq_up, "repne scasq", "cld")
SCAN(scasb_down, "repe scasb", "std") SCAN(scasw_down, "repne scasw", "std") SCAN(scasl_down, "repne scasl", "std") SCAN(scasq_down, "repe scasq", "std")
COMPARE(cmpsb_up, "repe cmpsb", "cld") COMPARE(cmpsw_up, "repe cmpsw", "cld") COMPARE(cmpsl_up, "repne cmpsl", "cld") COMPARE(cmpsq_up, "repe cmpsq", "cld")
COMPARE(cmpsb_down, "repne cmpsb", "std") COMPARE(cmpsw_down, "repe cmpsw", "std") COMPARE(cmpsl_down, "repe cmpsl", "std") COMPARE(cmpsq_down, "repe cmpsq", "std")

typedef void move(void *, const void *, uint64_t);
typedef void store(void *, uint64_t, uint64_t);
typedef uint64_t scan(const void *, uint64_t, uint64_t);
typedef uint64_t compare(const void *, const void *, uint64_t);
static move *const moves[2][4] = {{movsb_up, movsw_up, movsl_up, movsq_up}, {movsb_down, movsw_down, movsl_down, movsq_down}};
static store *const stores[2][4] = {{stosb_up, stosw_up, stosl_up, stosq_up}, {stosb_down, stosw_down, stosl_down, stosq_down}};
static scan *const scans[2][4] = {{scasb_up, scasw_up, scasl_up, scasq_up}, {scasb_down, scasw_down, scasl_down, scasq_down}};
static compare *const compares[2][4] = {{cmpsb_up, cmpsw_up, cmpsl_up, cmpsq_up}, {cmpsb_down, cmpsw_down, cmpsl_down, cmpsq_down}};

/* String instructions without the prefix, and lods, which nobody repeats. */
static NOINLINE uint64_t single(uint8_t *d, const uint8_t *s) {
    uint64_t a = 0, sum = 0;
    asm volatile("movsb\n movsq\n xor %%eax, %%eax\n lodsb\n add %%rax, %3\n lodsl\n add %%rax, %3\n stosw\n lodsq\n stosq\n"
                 "rep lodsb\n"
                 : "+D"(d), "+S"(s), "+a"(a), "+r"(sum)
                 : "c"(3)
                 : "memory", "cc");
    return sum + a + (d - to) * 3 + (s - from);
}
static uint64_t digest(const uint8_t *bytes) {
    uint64_t sum = 0;
    for (int i = 0; i < SIZE + 64; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        sum = mix(sum ^ word);
    }
    return sum;
}

int main(void) {
    uint64_t totals[5] = {0}, seed = 1, rounds = scaled(1000);
    for (int i = 0; i < SIZE + 64; i++) from[i] = to[i] = i / 97;
    for (uint64_t round = 0; round < rounds; round++)
        for (int down = 0; down < 2; down++)
            for (int size = 0; size < 4; size++) {
                seed = churn(seed, 100);
                uint64_t count = round % 7 == 0 ? round % 3 : seed % (SIZE >> size);
                int start = down ? SIZE - (1 << size) : (int)(seed >> 40) % 32;
                if (!down && count > (SIZE - 32u) >> size) count = (SIZE - 32u) >> size;
                moves[down][size](to + start, from + start, count);
                totals[0] = mix(totals[0] ^ digest(to));
                totals[1] += scans[down][size](to + start, seed % 40 * 0x0101010101010101u, count) * (round + 1);
                to[(seed >> 17) % SIZE] ^= 1;
                totals[2] = mix(totals[2] + compares[down][size](to + start, from + start, count));
                stores[down][size](to + start, seed, count / 3);
                totals[3] = mix(totals[3] ^ digest(to));
                totals[4] += single(to + seed % 64, from + (seed >> 9) % 64);
            }
    printf("movs %016lx scas %016lx cmps %016lx stos %016lx single %016lx\n", totals[0], totals[1], totals[2], totals[3], totals[4]);
    return 0;
}
