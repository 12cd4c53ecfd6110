/* Reads standard input to its end; writes to both outputs in turn, line by line and unbuffered. */
#include "common.h"

int main(void) {
    uint64_t lines = 0, sum = 0;
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        lines++;
        for (char *c = line; *c; c++) sum = mix(sum ^ (uint8_t)*c);
        sum = churn(sum, scaled(60000));
        if (lines % 2) {
            printf("out %lu %016lx\n", lines, sum);
            fflush(stdout);
        } else {
            fprintf(stderr, "error %lu %016lx\n", lines, sum);
        }
    }
    printf("end %lu %d\n", lines, feof(stdin) != 0);
    return lines & 0x7f;
}
