/* Code made at run time: generated, run, rewritten, run again. By plain stores into writable code, by W^X flips, through
 * a second mapping of the same memory, and by replacing the mapping at one address. A stale copy gives a wrong sum. */
#include "common.h"
#include <sys/mman.h>

typedef uint64_t function(uint64_t);
enum { SIZE = 8192 };

/* lea K(rdi), rax; times: imul 3, a loop that runs the counter down; ret. K and the loop count vary. */
static size_t generate(uint8_t *at, uint32_t k, uint32_t loops, uint32_t padding) {
    uint8_t *p = at;
    memset(p, 0x90, padding % 16);
    p += padding % 16;
    *p++ = 0x48, *p++ = 0x8d, *p++ = 0x87, memcpy(p, &k, 4), p += 4; /* lea k(%rdi), %rax */
    *p++ = 0xb9, memcpy(p, &loops, 4), p += 4;                       /* mov $loops, %ecx */
    *p++ = 0x48, *p++ = 0x8d, *p++ = 0x44, *p++ = 0x40, *p++ = 1;    /* 1: lea 1(%rax,%rax,2), %rax */
    *p++ = 0xff, *p++ = 0xc9, *p++ = 0x75, *p++ = 0xf7;              /* dec %ecx; jnz 1b */
    *p++ = 0xc3;
    return p - at;
}
static uint64_t expected(uint64_t x, int32_t k, uint32_t loops) {
    for (x += k; loops; loops--) x = x * 3 + 1;
    return x;
}
static uint64_t check(function *f, uint64_t x, int32_t k, uint32_t loops) {
    uint64_t got = f(x);
    MUST(got == expected(x, k, loops));
    return got;
}
static void *map(void *at, int protection) {
    void *page = mmap(at, SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
    MUST(page != MAP_FAILED);
    return page;
}

static uint64_t stores(uint64_t rounds) {
    uint8_t *code = map(0, PROT_READ | PROT_WRITE | PROT_EXEC);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        generate(code, i * 7, 50 + i % 50, i / 64);
        for (int k = 0; k < 3; k++) sum = mix(sum + check((function *)code, sum, i * 7, 50 + i % 50));
        uint32_t patched = i * 11 + 1; /* only the immediate, the way inline caches do it */
        memcpy(code + i / 64 % 16 + 3, &patched, 4);
        sum = mix(sum + check((function *)code, i, patched, 50 + i % 50));
    }
    munmap(code, SIZE);
    return sum;
}
static uint64_t flips(uint64_t rounds) {
    uint8_t *code = map(0, PROT_READ | PROT_WRITE);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        MUST(mprotect(code, SIZE, PROT_READ | PROT_WRITE) == 0);
        generate(code, i * 5, 80, 0);
        generate(code + 4096, i * 5 + 1, 80, i);
        MUST(mprotect(code, SIZE, PROT_READ | PROT_EXEC) == 0);
        for (int k = 0; k < 4; k++) sum = mix(sum + check((function *)code, k, i * 5, 80)) + check((function *)(code + 4096), k, i * 5 + 1, 80);
    }
    munmap(code, SIZE);
    return sum;
}
static uint64_t aliases(uint64_t rounds) {
    int fd = memfd_create("code", MFD_CLOEXEC);
    MUST(fd >= 0 && ftruncate(fd, SIZE) == 0);
    uint8_t *write_side = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint8_t *run_side = mmap(0, SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    MUST(write_side != MAP_FAILED && run_side != MAP_FAILED && close(fd) == 0);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        generate(write_side, i * 3, 60, 0);
        for (int k = 0; k < 4; k++) sum = mix(sum + check((function *)run_side, sum, i * 3, 60));
    }
    munmap(write_side, SIZE), munmap(run_side, SIZE);
    return sum;
}
static uint64_t replaced(uint64_t rounds) {
    uint8_t *code = map(0, PROT_READ | PROT_WRITE);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        if (i % 2) munmap(code, SIZE);
        MUST(map(code, PROT_READ | PROT_WRITE) == code);
        generate(code, i * 13, 70, 0);
        MUST(mprotect(code, SIZE, PROT_READ | PROT_EXEC) == 0);
        for (int k = 0; k < 4; k++) sum = mix(sum + check((function *)code, sum, i * 13, 70));
        if (i % 5 == 0) { /* moved away: the same bytes elsewhere, nothing at the old place */
            uint8_t *moved = mremap(code, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, map(0, PROT_NONE));
            MUST(moved != MAP_FAILED);
            sum = mix(sum + check((function *)moved, sum, i * 13, 70));
            munmap(moved, SIZE);
        }
    }
    munmap(code, SIZE);
    return sum;
}

int main(void) {
    uint64_t rounds = scaled(5000);
    printf("stores %016lx\n", stores(rounds * 4));
    printf("flips %016lx\n", flips(rounds));
    printf("aliases %016lx\n", aliases(rounds * 2));
    printf("replaced %016lx\n", replaced(rounds));
    return 0;
}
