/* Walks a list of so many nodes of 64 bytes, in the order of memory or shuffled, for about a second of CPU time. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct node {
    struct node *next;
    unsigned long value;
    char rest[48];
};

__attribute__((noinline)) unsigned long walk(const struct node *node) {
    unsigned long sum = 0;
    for (; node; node = node->next)
        sum += node->value;
    return sum;
}

int main(int argc, char **argv) {
    unsigned long count = argc > 1 ? strtoul(argv[1], 0, 10) : 500;
    int shuffled = argc > 2 && argv[2][0] == 's';
    struct node *nodes = aligned_alloc(64, count * sizeof *nodes);
    unsigned long *order = malloc(count * sizeof *order);
    unsigned long random = 1;
    for (unsigned long i = 0; i < count; i++)
        order[i] = i;
    for (unsigned long i = count - 1; shuffled && i > 0; i--) {
        random = random * 6364136223846793005ul + 1442695040888963407ul;
        unsigned long j = (random >> 33) % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
    for (unsigned long i = 0; i < count; i++) {
        nodes[order[i]].next = i + 1 < count ? &nodes[order[i + 1]] : 0;
        nodes[order[i]].value = i;
    }
    unsigned long sum = 0;
    while (clock() < CLOCKS_PER_SEC)
        for (unsigned long i = 0; i < 1 + 500000 / count; i++)
            sum += walk(nodes + order[0]);
    printf("%d\n", sum != 0);
    return 0;
}
