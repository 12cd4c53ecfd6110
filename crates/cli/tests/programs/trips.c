/* Loops whose iterations are known on average: some executions last longer than a burst, some much shorter. */
#include <stdint.h>
#include <stdlib.h>
#define APART __attribute__((noinline, noclone))

static volatile uint64_t sink;
static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
/* 10 or 2,000, half each: 1,005. */
APART static void bimodal(long n) {
    for (long i = 0; i < n; i++) sink += i;
}
/* 1 to 900: 450.5. */
APART static void uniform(long n) {
    for (long i = 0; i < n; i++) sink ^= i;
}
APART static void fixed(long n) {
    for (long i = 0; i < n; i++) sink -= i;
}
int main(int argc, char **argv) {
    for (long k = argc > 1 ? atol(argv[1]) : 1000; k > 0; k--) {
        bimodal(next() & 1 ? 10 : 2000);
        uniform((long)(next() % 900) + 1);
        fixed(300);
    }
    return 0;
}
