/* A program that uses the gs segment itself: base set by arch_prctl, before, between and after bursts, per thread. */
#include "common.h"
#include <asm/prctl.h>
#include <pthread.h>
#include <sys/syscall.h>

static uint64_t read_gs(uint64_t index) {
    uint64_t value;
    asm volatile("movq %%gs:(,%1,8), %0" : "=r"(value) : "r"(index) : "memory");
    return value;
}
static void add_gs(uint64_t index, uint64_t value) { asm volatile("addq %1, %%gs:(,%0,8)" ::"r"(index), "r"(value) : "memory", "cc"); }

static void *user(void *number) {
    uint64_t area[2][64], sum = (uintptr_t)number, rounds = scaled(900);
    unsigned long base = 1;
    MUST(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == 0);
    sum = churn(sum, 50000);
    memset(area, 0, sizeof area);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t *mine = area[i / 50 % 2];
        MUST(syscall(SYS_arch_prctl, ARCH_SET_GS, mine) == 0);
        for (int k = 0; k < 200; k++) {
            add_gs(k % 64, sum);
            sum = mix(sum) + read_gs((k + 1) % 64);
        }
        sum = churn(sum, 3000);
        MUST(syscall(SYS_arch_prctl, ARCH_GET_GS, &base) == 0 && base == (uintptr_t)mine);
        MUST(read_gs(3) == mine[3]);
    }
    MUST(syscall(SYS_arch_prctl, ARCH_SET_GS, 0) == 0);
    return (void *)churn(sum, 100000);
}

int main(void) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) MUST(pthread_create(&threads[i], 0, user, (void *)i) == 0);
    printf("%016lx\n", (uint64_t)user((void *)9));
    for (int i = 0; i < 2; i++) {
        void *sum;
        MUST(pthread_join(threads[i], &sum) == 0);
        printf("%016lx\n", (uint64_t)sum);
    }
    return 0;
}
