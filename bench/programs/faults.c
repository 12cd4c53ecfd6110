/* faults ROUNDS: touches pages that are not there yet, and computes. What of the user time goes into touching, no program can
   tell of itself: the kernel's time lies between. A sampling profiler that sees only user code does. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PART __attribute__((noinline, noclone))

static volatile uint64_t kept;

PART void touch(char *at, long bytes) {
    for (long i = 0; i < bytes; i += 4096)
        at[i] = 1;
}

PART void compute(long rounds) {
    uint64_t x = kept | 1;
    for (long i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    kept = x;
}

PART void turn(long bytes) {
    char *at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    madvise(at, bytes, MADV_NOHUGEPAGE);
    touch(at, bytes);
    munmap(at, bytes);
    compute(12000000);
}

int main(int count, char **arguments) {
    for (long i = count > 1 ? atol(arguments[1]) : 40; i > 0; i--)
        turn(32 << 20);
    return 0;
}
