/* turns STEPS ROUNDS_OF_COMPUTE TURNS FILE: follows pointers through 64 MiB and computes, by turns. Both loops are written in
   machine code, so that how many of their instructions load is known: one of three, and one of six. */
#include "truth.h"

enum { NODES = 1 << 20, TABLE = 512 };

struct node {
    struct node *next;
    char rest[56];
};

static struct node nodes[NODES] __attribute__((aligned(64)));
static uint64_t table[TABLE];

PART struct node *chase(struct node *node, long steps) {
    __asm__ volatile("1: mov (%0), %0\n\tdec %1\n\tjnz 1b" : "+r"(node), "+r"(steps) : : "cc", "memory");
    return node;
}

PART uint64_t compute(long rounds) {
    uint64_t sum = 1, at = 0;
    __asm__ volatile("1: add (%2,%3,8), %0\n\timul $29, %0, %0\n\tinc %3\n\tand $511, %3\n\tdec %1\n\tjnz 1b"
                     : "+r"(sum), "+r"(rounds)
                     : "r"(table), "r"(at)
                     : "cc", "memory");
    return sum;
}

/* A turn begins where the one before ended, so that no time is left out. */
PART uint64_t turn(struct node **node, long steps, long rounds, struct clock *clock, uint64_t begin) {
    *node = chase(*node, steps);
    uint64_t between = now();
    compute(rounds);
    uint64_t end = now();
    add_round(clock, begin, between, end);
    return end;
}

int main(int count, char **arguments) {
    if (count != 5)
        return 2;
    long steps = atol(arguments[1]), rounds = atol(arguments[2]), turns = atol(arguments[3]);
    // All nodes in one circle (a generator of full period), which no processor foresees; quickly made, so that it takes no share.
    for (uint32_t i = 0; i < NODES; i++)
        nodes[i].next = &nodes[(i * 1664525u + 1013904223u) % NODES];
    struct clock clock = {0};
    struct node *node = nodes;
    uint64_t look = time_of_a_look(), at = now();
    for (long i = 0; i < turns; i++)
        at = turn(&node, steps, rounds, &clock, at);
    double first = first_share(&clock, look), second = second_share(&clock, look);
    // Loads by instruction; each function returns, too, by a load from the stack.
    double of_nodes = first * steps / (3.0 * steps + 2), of_table = second * rounds / (6.0 * rounds + 4);
    double loads = of_nodes + of_table + first / (3.0 * steps + 2) + second / (6.0 * rounds + 4);
    FILE *file = truth_file(count, arguments);
    const char *sections[] = {"functions", "loops", "contexts"};
    for (int i = 0; i < 3; i++)
        fprintf(file, "%s chase %.6f\n%s compute %.6f\n", sections[i], first, sections[i], second);
    fprintf(file, "objects nodes %.6f\nobjects table %.6f\n", of_nodes / loads, of_table / loads);
    return 0;
}
