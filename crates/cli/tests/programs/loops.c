// Loops whose executions and iterations are known. Each function is named in the test; what its loops do follows from
// the numbers here. `keep` hides values from the optimizer.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>

#define APART __attribute__((noinline, noclone, noipa))
static volatile unsigned long sink;
static unsigned long keep(unsigned long n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

// 10 executions of 7 iterations within 1 of 10.
APART void nested(unsigned long n, unsigned long m) {
    for (unsigned long i = 0; i < n; i++)
        for (unsigned long j = 0; j < m; j++) sink += i ^ j;
}

// 1 execution of 25 iterations, the header is the latch.
APART void do_while(unsigned long n) {
    do {
        sink += n;
    } while (--n);
}

// Not entered, or entered for nothing.
APART void never(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
}

// Depth d: d + 1 activations, each with 1 execution of 3 iterations, the loop active in all outer ones.
APART void recursive(unsigned long d) {
    for (unsigned long i = 0, n = keep(3); i < n; i++) {
        sink += i;
        if (i == 1 && d) recursive(d - 1);
    }
}

// A loop of 20 iterations that calls one of 5, and one of 4 behind it.
APART void leaf(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sink += i;
}
APART void caller(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) leaf(keep(5));
    for (unsigned long i = 0, m = keep(4); i < m; i++) sink += i;
}

// Left by break in iteration 13 of 100.
APART void breaks(unsigned long n, unsigned long last) {
    for (unsigned long i = 0; i < n; i++) {
        sink += i;
        if (i == last) break;
        sink ^= i;
    }
    sink++;
}

// Left by return in iteration 9 of 50, of an inner loop in iteration 3 of an outer one.
APART unsigned long returns(unsigned long n, unsigned long i_last, unsigned long j_last) {
    for (unsigned long i = 0; i < n; i++)
        for (unsigned long j = 0; j < n; j++) {
            sink += j;
            if (i == i_last && j == j_last) return j;
            sink ^= j;
        }
    return 0;
}

// Each of 6 iterations is left by longjmp in iteration 4 of a called loop, 2 calls down.
static jmp_buf back;
APART void jumps_inner(unsigned long n, unsigned long last) {
    for (unsigned long i = 0; i < n; i++) {
        sink += i;
        if (i == last) longjmp(back, 1);
        sink ^= i;
    }
}
APART void jumps_middle(unsigned long n) {
    jumps_inner(n, keep(3));
    sink++;
}
APART void jumps(unsigned long n) {
    for (volatile unsigned long i = 0; i < n; i++) {
        if (setjmp(back) == 0) jumps_middle(keep(30));
        sink++;
    }
}

// Continue: 40 iterations, every other is short.
APART void continues(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) {
        sink += i;
        if (i & 1) continue;
        sink ^= i;
        if (i == 1000) sink = 5;
    }
}

// Each of 3 threads: 1 execution of 100 iterations.
APART void *threaded(void *n) {
    for (unsigned long i = 0; i < (unsigned long)n; i++) sink += i;
    return 0;
}

int main(void) {
    nested(keep(10), keep(7));
    do_while(keep(25));
    for (unsigned long i = 0; i < 11; i++) never(keep(0));
    recursive(keep(5));
    caller(keep(20));
    breaks(keep(100), keep(12));
    returns(keep(50), keep(2), keep(8));
    jumps(keep(6));
    continues(keep(40));
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, threaded, (void *)keep(100));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
