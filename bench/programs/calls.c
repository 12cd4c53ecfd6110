/* calls ROUNDS FILE: the same work in two functions, one before and one behind a system call, each on data of its own. */
#include "truth.h"
#include <fcntl.h>
#include <unistd.h>

static uint64_t first_table[512], second_table[512];

#define WORK(table)                                                                                                     \
    __asm__ volatile("1: add (%2,%3,8), %0\n\timul $29, %0, %0\n\tinc %3\n\tand $511, %3\n\tdec %1\n\tjnz 1b"          \
                     : "+r"(sum), "+r"(rounds)                                                                          \
                     : "r"(table), "r"(at)                                                                              \
                     : "cc", "memory")

PART uint64_t behind(long rounds) {
    uint64_t sum = 1, at = 0;
    WORK(first_table);
    return sum;
}

PART uint64_t before(long rounds) {
    uint64_t sum = 1, at = 0;
    WORK(second_table);
    return sum;
}

PART uint64_t turn(int file, struct clock *clock) {
    uint64_t begin = now();
    uint64_t sum = behind(3000);
    uint64_t between = now();
    sum += before(3000);
    add_round(clock, begin, between, now());
    if (write(file, &sum, 1) != 1)
        exit(3);
    return sum;
}

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    int null = open("/dev/null", O_WRONLY);
    struct clock clock = {0};
    for (long i = atol(arguments[1]); i > 0; i--)
        turn(null, &clock);
    uint64_t look = time_of_a_look();
    double first = first_share(&clock, look), second = second_share(&clock, look), both = first + second;
    FILE *file = truth_file(count, arguments);
    const char *sections[] = {"functions", "loops", "contexts"};
    for (int i = 0; i < 3; i++)
        fprintf(file, "%s behind %.6f\n%s before %.6f\n", sections[i], first, sections[i], second);
    fprintf(file, "objects first_table %.6f\nobjects second_table %.6f\n", first / both, second / both);
    return 0;
}
