/* Lock-prefixed counters, compare-exchange loops and a spin lock shared by several threads; sums must be exact. */
#include "common.h"
#include <pthread.h>

enum { THREADS = 4 };
static volatile uint64_t counter, swapped, guarded, xadded;
static volatile uint32_t narrow;
static volatile uint8_t bits[16], bytes;
static volatile int lock;

static void *worker(void *id) {
    uint64_t local = (uintptr_t)id, rounds = scaled(250000);
    for (uint64_t i = 0; i < rounds; i++) {
        asm volatile("lock incq %0" : "+m"(counter)::"cc");
        asm volatile("lock addl $3, %0" : "+m"(narrow)::"cc");
        asm volatile("lock decb %0" : "+m"(bytes)::"cc");
        uint64_t one = 2;
        asm volatile("lock xaddq %0, %1" : "+r"(one), "+m"(xadded)::"cc");
        local ^= one & 1;
        uint64_t old = swapped, new;
        do {
            new = old * 1 + 5;
        } while (!__atomic_compare_exchange_n(&swapped, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        uint64_t bit = (uintptr_t)id + 100;
        asm volatile("lock btcq %1, %0" : "+m"(bits) : "r"(bit) : "cc");
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) asm volatile("pause");
        guarded += i & 3;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    return (void *)local;
}

int main(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], 0, worker, (void *)i) == 0);
    uint64_t locals = 0;
    for (int i = 0; i < THREADS; i++) {
        void *local;
        MUST(pthread_join(threads[i], &local) == 0);
        locals += (uintptr_t)local;
    }
    printf("%lu %u %u %lu %lu %lu %lu %d\n", counter, narrow, bytes, xadded, swapped, guarded, locals, bits[12]);
    return 0;
}
