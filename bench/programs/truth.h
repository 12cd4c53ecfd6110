/* Programs that know the truth about themselves write it as lines: section, name, share. */
#ifndef TRUTH_H
#define TRUTH_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define PART __attribute__((noinline, noclone))

/* A round that took so many times the shortest one was interrupted: its time is not the program's. */
#define INTERRUPTED 20

/* Time of two parts, one after the other, without the rounds in which something else had the processor; and of looking at the
   clock, which is in both. */
struct clock {
    uint64_t shortest;
    double first, second, looks;
};

/* The time, when all before is done. */
static inline uint64_t now(void) {
    _mm_lfence();
    return __rdtsc();
}

static inline uint64_t time_of_a_look(void) {
    uint64_t least = -1;
    for (int i = 0; i < 1000; i++) {
        uint64_t begin = now(), took = now() - begin;
        least = took < least ? took : least;
    }
    return least;
}

static inline void add_round(struct clock *clock, uint64_t begin, uint64_t between, uint64_t end) {
    uint64_t took = end - begin;
    if (clock->shortest == 0 || took < clock->shortest)
        clock->shortest = took;
    if (took < INTERRUPTED * clock->shortest) {
        clock->first += between - begin;
        clock->second += end - between;
        clock->looks++;
    }
}

/* Their shares of all. */
static inline double first_share(const struct clock *clock, uint64_t look) {
    return (clock->first - clock->looks * look) / (clock->first + clock->second);
}

static inline double second_share(const struct clock *clock, uint64_t look) {
    return (clock->second - clock->looks * look) / (clock->first + clock->second);
}

static inline FILE *truth_file(int count, char **arguments) {
    FILE *file = count > 1 ? fopen(arguments[count - 1], "w") : 0;
    if (!file) {
        fprintf(stderr, "the last argument is the file for the truth\n");
        exit(2);
    }
    return file;
}

#endif
