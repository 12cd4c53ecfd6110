/* References that are known by construction: a list walked again and again in a fixed order that is not the order of its
   nodes, an array visited at equal distances, and a walk that never repeats itself. */
#include <stdio.h>

#define NODES 31
#define ROUNDS 400
#define ELEMENTS 24
#define CELLS 65536

struct node {
    struct node *next;
    unsigned long value;
    unsigned long room[30];
};

static struct node nodes[NODES];
static volatile unsigned long array[ELEMENTS * 32];
static volatile unsigned long cells[CELLS];

__attribute__((noinline)) static unsigned long walk(const struct node *node) {
    unsigned long sum = 0;
    for (; node; node = *(struct node *const volatile *)&node->next)
        sum += *(const volatile unsigned long *)&node->value;
    return sum;
}

__attribute__((noinline)) static unsigned long stride(void) {
    unsigned long sum = 0;
    for (int i = 0; i < ELEMENTS; i++) sum += array[i * 32];
    return sum;
}

__attribute__((noinline)) static unsigned long wander(unsigned long steps) {
    unsigned long at = 1, sum = 0;
    while (steps--) {
        at = at * 6364136223846793005UL + 1442695040888963407UL;
        sum += cells[at >> 48];
    }
    return sum;
}

int main(void) {
    for (int i = 0; i < NODES; i++) {
        struct node *next = i + 1 < NODES ? &nodes[(i + 1) * 7 % NODES] : 0;
        nodes[i * 7 % NODES].next = next;
    }
    printf("%p %p %p\n", (void *)nodes, (void *)array, (void *)cells);
    fflush(stdout);
    unsigned long sum = 0;
    for (int i = 0; i < ROUNDS; i++) sum += walk(&nodes[0]);
    for (int i = 0; i < ROUNDS; i++) sum += stride();
    sum += wander(20000);
    return sum != 0;
}
