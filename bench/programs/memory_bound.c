/* memory_bound KIND ROUNDS: five ways to wait for memory, each by turns with work that does not. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART __attribute__((noinline, noclone))

enum { WORDS = 1 << 23, SIDE = 2048 };

static uint64_t words[WORDS];
static volatile uint64_t kept;

PART void compute(long rounds) {
    uint64_t x = kept | 1;
    for (long i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    kept = x;
}

/* Each word holds the number of the next: all in one circle. */
PART void chase(long steps) {
    uint64_t at = kept % WORDS;
    for (long i = 0; i < steps; i++)
        at = words[at];
    kept = at;
}

PART void fill(long times) {
    for (long i = 0; i < times; i++)
        memset(words, (int)i, sizeof words);
}

PART void scatter(long steps) {
    uint64_t at = kept | 1;
    for (long i = 0; i < steps; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        words[at >> 41] += i;
    }
    kept = at;
}

/* A table with open addressing, half full. */
PART void look_up(long steps) {
    uint64_t key = kept | 1, found = 0;
    for (long i = 0; i < steps; i++) {
        key = key * 2862933555777941757u + 3037000493u;
        uint64_t at = (key * 0x9e3779b97f4a7c15u) >> 41;
        while (words[at] & 1)
            at = (at + 1) % WORDS;
        found += words[at];
    }
    kept = found;
}

PART void walk_columns(long columns) {
    uint64_t sum = 0;
    for (long column = 0; column < columns; column++)
        for (long row = 0; row < SIDE; row++)
            sum += words[row * SIDE + column % SIDE];
    kept = sum;
}

PART void prepare(void) {
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = (i * 1664525u + 1013904223u) % WORDS;
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "";
    long rounds = count > 2 ? atol(arguments[2]) : 10;
    prepare();
    for (long i = 0; i < rounds; i++) {
        if (!strcmp(kind, "chase"))
            chase(200000);
        else if (!strcmp(kind, "fill"))
            fill(1);
        else if (!strcmp(kind, "scatter"))
            scatter(1000000);
        else if (!strcmp(kind, "look-up"))
            look_up(500000);
        else if (!strcmp(kind, "columns"))
            walk_columns(1000);
        else
            return 2;
        compute(8000000);
    }
    return 0;
}
