// The program of the README's tour: it walks a linked list and counts letters.
#include <stdio.h>
#include <stdlib.h>

// Walks through the list in each round; the tour compares two builds.
#ifndef WALKS
#define WALKS 40
#endif

struct node { struct node *next; long value; };

static long walk(const struct node *n) {
    long sum = 0;
    while (n) { sum += n->value; n = n->next; }
    return sum;
}

static long histogram(const unsigned char *text, long length, long *counts) {
    long most = 0;
    for (long i = 0; i < length; i++)
        if (++counts[text[i]] > most) most = counts[text[i]];
    return most;
}

int main(void) {
    enum { NODES = 20000, LENGTH = 1 << 20 };
    struct node *nodes = calloc(NODES, sizeof *nodes), *head = 0;
    for (long i = 0; i < NODES; i++) {
        struct node *n = &nodes[i * 7919 % NODES];
        n->value = i % 3 ? 0 : i;
        n->next = head;
        head = n;
    }
    unsigned char *text = malloc(LENGTH);
    for (long i = 0; i < LENGTH; i++) text[i] = "etaoin shrdlu"[i * i % 13];
    static long counts[256];
    long total = 0;
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < WALKS; i++) total += walk(head);
        total += histogram(text, LENGTH, counts);
    }
    printf("%ld\n", total);
    return 0;
}
