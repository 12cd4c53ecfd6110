/* Known loops, repeated references and slow code, so that each experiment has something to find. */
#include <stdio.h>
#include <stdlib.h>

#define NODES 31
#define CELLS 50

struct node { struct node *next; long value; char rest[112]; };
static struct node nodes[NODES];
static volatile long cells[CELLS];
static volatile unsigned long divisor = 3;

__attribute__((noinline)) static long inner(void) {
    long sum = 0;
    for (int i = 0; i < CELLS; i++) sum += cells[i];
    return sum;
}

__attribute__((noinline)) static long outer(void) {
    long sum = 0;
    for (int i = 0; i < 20; i++) sum += inner();
    return sum;
}

__attribute__((noinline)) static long chase(void) {
    long sum = 0;
    for (struct node *n = nodes; n; n = n->next) sum += n->value;
    return sum;
}

/* Few instructions, much time. */
__attribute__((noinline)) static unsigned long divide(long times) {
    unsigned long x = 1;
    for (long i = 0; i < times; i++) x = (x + 0x123456789abcdefUL) / divisor / divisor / divisor / divisor;
    return x;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 100, times = argc > 2 ? atol(argv[2]) : 0, sum = 0;
    for (int i = 0; i < NODES; i++) {
        nodes[i].next = i + 1 < NODES ? &nodes[i + 1] : NULL;
        nodes[i].value = 7;
    }
    for (int i = 0; i < CELLS; i++) cells[i] = i % 5 ? 0 : i;
    for (long i = 0; i < rounds; i++) sum += outer() + chase();
    printf("%ld %lu\n", sum, divide(times));
    return 0;
}
