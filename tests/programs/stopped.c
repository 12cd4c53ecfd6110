/* Stops itself, and is continued by a child that knows nothing but its parent: nobody else has to do anything. */
#include "common.h"
#include <signal.h>
#include <sys/wait.h>

static int is_stopped(pid_t pid) {
    char path[64], text[512] = {0}, *state;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "r");
    MUST(file && fread(text, 1, sizeof text - 1, file) > 0 && (state = strrchr(text, ')')));
    fclose(file);
    return state[2] == 'T' || state[2] == 't';
}

int main(void) {
    uint64_t sum = 5;
    for (uint64_t i = 0, rounds = scaled(6); i < rounds; i++) {
        sum = churn(sum, 20000);
        pid_t me = getpid(), child = fork();
        MUST(child >= 0);
        if (child == 0) {
            /* A thread that is traced shows as stopped for moments, too: three times in a row is no such moment. */
            for (int seen = 0; seen < 3; usleep(5000)) seen = is_stopped(me) ? seen + 1 : 0;
            kill(me, SIGCONT);
            _exit(0);
        }
        MUST(raise(SIGSTOP) == 0);
        int status;
        MUST(waitpid(child, &status, 0) == child && status == 0);
        sum = churn(sum, 20000);
        printf("went on, %016lx\n", sum);
    }
    return 7;
}
