// By turns a loop that was compiled and the same loop in memory that the program wrote itself. Tells which share of the time
// the latter took, by the processor's own clock.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

// mov %rdi,%rcx; 1: dec %rcx; jnz 1b; ret
static const unsigned char code[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};

__attribute__((noinline)) static void compiled(long rounds) {
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(rounds));
}

int main(int argc, char **argv) {
    long turns = argc > 1 ? atol(argv[1]) : 100;
    char *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    memcpy(memory, code, sizeof code);
    if (mprotect(memory, 4096, PROT_READ | PROT_EXEC)) return 1;
    void (*generated)(long) = (void (*)(long))memory;
    unsigned long long first = 0, second = 0;
    for (long i = 0; i < turns; i++) {
        unsigned long long a = __rdtsc();
        generated(300000);
        unsigned long long b = __rdtsc();
        compiled(300000);
        first += b - a;
        second += __rdtsc() - b;
    }
    printf("%.4f\n", (double)first / (double)(first + second));
}
