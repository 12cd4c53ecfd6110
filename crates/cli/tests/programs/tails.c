/* Functions that end with a call, which compilers turn into a jump; each kind a known number of times. Prints where its
   functions lie, then makes them. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static volatile long sink;
static volatile long rarely = 7;

APART static void last(long n) {
    for (long i = 0; i < 3; i++) sink += n;
}
/* A jump to it. */
APART static void direct(long n) {
    sink++;
    last(n);
}
APART static int odd(long n);
APART static int even(long n) {
    sink += 3;
    return n == 0 ? 1 : odd(n - 1);
}
APART static int odd(long n) {
    sink++;
    return n == 0 ? 0 : even(n - 1);
}
/* A jump through a pointer. */
static void (*volatile chosen)(long) = last;
APART static void pointed(long n) {
    sink += 2;
    chosen(n);
}
/* A jump to a stub. */
APART static int library(void) {
    sink++;
    return rand();
}
/* The same, to one that is looked up on its first call. */
APART static long late(void) {
    sink++;
    return lrand48();
}
/* A part that is hardly ever run is put elsewhere; going there and back is no call. */
__attribute__((cold)) APART static void rare(long n) { sink += n; }
APART static long split(long n) {
    if (n % rarely == 0) {
        rare(n);
        sink++;
    }
    return sink + n;
}
/* A table of jumps within the function. */
APART static long table(long n) {
    switch (n & 7) {
    case 0: return sink + 11;
    case 1: return sink * 3;
    case 2: return sink ^ 77;
    case 3: return sink - 5;
    case 4: sink = 4; return 1;
    case 5: sink++; return 2;
    case 6: return sink / 3;
    default: return n;
    }
}
APART static void work(void) {
    for (long i = 0; i < 100; i++) {
        direct(i);
        sink += even(10);
    }
    for (long i = 0; i < 50; i++) pointed(i);
    for (long i = 0; i < 40; i++) sink += library();
    for (long i = 0; i < 40; i++) sink += late();
    for (long i = 0; i < 70; i++) sink += split(i);
    for (long i = 0; i < 80; i++) sink += table(i);
}

int main(void) {
    printf("last %p direct %p even %p odd %p pointed %p library %p late %p rare %p split %p table %p work %p main %p rand %p\n",
           (void *)last, (void *)direct, (void *)even, (void *)odd, (void *)pointed, (void *)library,
           (void *)late, (void *)rare, (void *)split,
           (void *)table, (void *)work, (void *)main, (void *)rand);
    fflush(stdout);
    work();
    return 0;
}
